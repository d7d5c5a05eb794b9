"""A log of changes: each reader goes on where he was, or is told that he cannot; small numbers."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from koordlet.scheduler.cluster import vectors


def test_each_reader_gets_what_came_since_his_own_position() -> None:
    """In order; who has seen everything gets nothing."""
    log: vectors.ChangeLog[str] = vectors.ChangeLog()
    log.append("a")
    middle = log.end
    log.append("b")
    assert (log.since(0), log.since(middle), log.since(log.end)) == (["a", "b"], ["b"], [])


def test_a_reader_who_is_far_behind_cannot_go_on() -> None:
    """The log keeps a bounded number; who is near goes on."""
    log: vectors.ChangeLog[int] = vectors.ChangeLog()
    for number in range(3 * vectors.MEMORY):
        log.append(number)
    assert log.since(0) is None
    assert log.since(log.end - 1) == [3 * vectors.MEMORY - 1]


def test_a_log_that_forgets_tells_each_reader_so_once() -> None:
    """Also the one who had seen everything."""
    log: vectors.ChangeLog[str] = vectors.ChangeLog()
    for start in (0, log.end):
        log.forget()
        assert log.since(start) is None
    end = log.end
    log.append("a")
    assert log.since(end) == ["a"]


@pytest.mark.parametrize("least", [0, -1, -(2**7) - 1, -(2**31) - 1, -(2**63)])
@pytest.mark.parametrize("most", [0, 2**8, 2**16, 2**31, 2**32, 2**53 + 1, 2**63 - 1])
def test_numbers_that_are_kept_small_are_the_same(least: int, most: int) -> None:
    """Whole ones, of either sign, however large."""
    kept = vectors.compact(np.array([least, most], np.int64))
    assert np.issubdtype(kept.dtype, np.integer)
    assert kept.astype(np.int64).tolist() == [least, most]


@pytest.mark.parametrize("numbers", [[], [0], [7, 3, 3, 300, 0, 7]])
def test_distinct_numbers_come_in_order(numbers: list[int]) -> None:
    """Each once."""
    assert vectors.distinct(np.array(numbers, np.intp)).tolist() == sorted(set(numbers))


_LIFE = """
import sys
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import shapes, simulation

for shape in sys.argv[1:]:
    simulation.Simulation(inventory.load([*shapes.generate(shape, 40, 60)])).run(print)
print("numpy.ma" in sys.modules)
"""


def test_deciding_loads_no_masked_arrays() -> None:
    """Spreading, preemption, devices of both kinds: half a megabyte of code and a dozen ms."""
    several = ["TopologySpreading", "PreemptionBasic", "PreferredTopologySpreading"]
    several += ["SchedulingWithResourceClaimTemplate", "SchedulingWithExtendedResource"]
    ran = subprocess.run(
        [sys.executable, "-c", _LIFE, *several], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "False"
