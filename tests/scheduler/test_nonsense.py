"""Whatever is in a field, the simulation says what it makes of it, and ends."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import simulation
from tests.oracle.furnishing import NOW, Furnisher

ORDINARY, SOAK = 24, 4000
NONSENSE: tuple[Any, ...] = (
    *(None, [], {}, "", "x", "1e400", "9" * 50, "node-\x00", "\ud800"),
    *(-1, 0, 2**70, 1.5, True, [None], ["a"], {"a": 1}, [{}]),
)


def places(body: Any) -> Iterator[tuple[Any, Any]]:
    """Every field of an object, and every element of a list."""
    several = body.items() if isinstance(body, dict) else enumerate(body)
    for key, value in [*several]:
        yield body, key
        if isinstance(value, dict | list):
            yield from places(value)


def bear(seed: int) -> None:
    """A cluster with nonsense in one field or in three."""
    roll = random.Random(seed)
    bodies = copy.deepcopy(Furnisher(seed % 200).bodies())
    for _ in range(roll.choice((1, 1, 3))):
        where, key = roll.choice([place for body in bodies for place in places(body)])
        where[key] = copy.deepcopy(roll.choice(NONSENSE))
    loaded = inventory.load(bodies)
    pods = [pod.key for pod in loaded.pending] or [""]
    result = simulation.Simulation(loaded, scores=True, now=NOW, explain=roll.choice(pods)).run()

    told = result.placements + result.pending
    assert {pod.key for pod in loaded.pending} <= {entry["pod"] for entry in told}, seed


def test_nonsense_costs_its_own_object_only() -> None:
    """Every pod is placed, or it is said why not."""
    for seed in range(ORDINARY):
        bear(seed)


@pytest.mark.soak
def test_a_soak_of_nonsense() -> None:
    """The same, more often."""
    for seed in range(SOAK):
        bear(seed)
