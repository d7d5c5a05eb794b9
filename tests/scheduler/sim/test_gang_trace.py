"""Sizes of gangs as training clusters have them."""

from __future__ import annotations

import collections
import itertools

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import gang_trace, shapes, simulation


def test_most_jobs_have_one_worker_and_few_have_up_to_64() -> None:
    """The shares of a thousand jobs are those of the trace, and a short prefix has nearly them."""
    several = collections.Counter(itertools.islice(gang_trace.sizes(), 1000))

    assert several == {1: 700, 2: 100, 4: 150, 8: 27, 16: 13, 32: 7, 64: 3}
    first = collections.Counter(itertools.islice(gang_trace.sizes(), 50))
    assert 33 <= first[1] <= 37
    assert max(first) > 8


def test_gangs_of_mixed_sizes_are_placed_whole_or_not_at_all() -> None:
    """On too few nodes some gangs wait, and none of those has a single pod on a node."""
    loaded = inventory.load(shapes.generate("SchedulingGangs", 10, 200))
    result = simulation.Simulation(loaded).run()

    assert len(result.placements) + len(result.pending) == 200
    assert sum(gang["pods"] for gang in result.gangs) == 200
    shares = {(gang["placed"] == 0, gang["placed"] >= gang["min"]) for gang in result.gangs}
    assert shares == {(True, False), (False, True)}
    assert all(gang["message"] for gang in result.gangs if not gang["placed"])
