"""Waiting behind oneself: by the CPUs that a workload may use, not by those of the machine."""

from __future__ import annotations

import math

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.model import cpuset
from koordlet.policy.best_effort import own_waiting

parse = cpuset.CPUSet.parse
SETS = st.sampled_from([parse(text) for text in ("0", "1", "0-1", "0-7", "4-7", "2-63")])


def test_the_queue_of_random_arrivals() -> None:
    """On one CPU the approximation is exact: half full, work waits as long as it runs."""
    assert own_waiting.alone(0.5, 1) == pytest.approx(1.5 * 1.0)
    assert own_waiting.alone(0, 4) == 0
    assert own_waiting.alone(4, 4) == math.inf


def test_a_workload_on_one_cpu_of_many_waits_for_itself() -> None:
    """It is the CPU that counts, and not the machine of 64 around it."""
    confined = own_waiting.among([(0.9, parse("5"))])

    assert confined == pytest.approx(own_waiting.alone(0.9, 1))
    assert confined > 100 * own_waiting.among([(0.9, parse("0-63"))])


def test_each_counts_by_what_it_uses() -> None:
    """Two on CPUs of their own: the mean over the seconds that they ran."""
    both = own_waiting.among([(0.9, parse("0")), (0.1, parse("1"))])

    assert both == pytest.approx(0.9 * own_waiting.alone(0.9, 1) + 0.1 * own_waiting.alone(0.1, 1))


def test_neighbours_on_the_same_cpus_count() -> None:
    """Whoever shares a set waits for all that runs there."""
    alone = own_waiting.among([(0.5, parse("0-1"))])
    beside = own_waiting.among([(0.5, parse("0-1")), (2.0, parse("0-3"))])

    assert beside > 2 * alone
    assert own_waiting.among([(1.2, parse("0-1")), (1.6, parse("0-3"))]) == math.inf


def test_nobody_waits_where_nobody_runs() -> None:
    """Nor does a workload without any CPU count."""
    assert own_waiting.among([]) == 0
    assert own_waiting.among([(0.0, parse("0"))]) == 0
    assert own_waiting.among([(1.0, cpuset.CPUSet())]) == 0


@hypothesis.given(
    parts=st.lists(st.tuples(st.floats(0, 3), SETS), max_size=6), more=st.floats(0, 1), who=SETS
)
def test_more_work_never_waits_less(
    parts: list[tuple[float, cpuset.CPUSet]], more: float, who: cpuset.CPUSet
) -> None:
    """Where everybody's use grows alike; and it is never negative."""
    small = own_waiting.among(parts)
    large = own_waiting.among([(cores * (1 + more), cpus) for cores, cpus in parts])

    assert 0 <= small <= large * (1 + 1e-9)
    assert own_waiting.among([(0.2, who)]) >= own_waiting.among([(0.2, parse("0-63"))])
