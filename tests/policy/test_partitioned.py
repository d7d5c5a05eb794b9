"""Thresholds of policies where a part of the machine is outside of the cgroup tree.

Covers: bursts, evictions by use and by satisfaction. Does not cover: best-effort sums
(``best_effort.test_usage``), what is expected (``tests.history.test_series``).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.model import resources, strategies
from koordlet.policy.best_effort import satisfaction
from koordlet.policy.cpu import cpu_burst
from koordlet.policy.cpu.cpu_burst import Pool
from koordlet.policy.eviction import cpu_evict
from tests.kit.partitioned import PARTITION, moment, past

IDLE = dict.fromkeys(PARTITION, 0.0)


@pytest.mark.parametrize("cpus", [PARTITION, IDLE], ids=["busy", "idle"])
@pytest.mark.parametrize(
    ("percent", "state"), [(50, Pool.OVERLOADED), (55, Pool.COOLING), (60, Pool.IDLE)]
)
def test_limits_burst_by_the_pool_that_is_inside(
    cpus: dict[str, float], percent: int, state: Pool
) -> None:
    """Two of its four CPUs are in use, whatever the partition does."""
    assert cpu_burst.pool_state(moment("0-3"), past(cpus, 5), percent) is state


@pytest.mark.parametrize("seconds", [1, 30])
@pytest.mark.parametrize("cpus", [PARTITION, IDLE], ids=["busy", "idle"])
@pytest.mark.parametrize("declared", [None, 8000])
def test_pods_go_by_the_use_of_what_is_inside(
    cpus: dict[str, float], seconds: int, declared: int | None
) -> None:
    """2.5 of four CPUs, in the newest sample and over a window."""
    now = moment("0-3")
    if declared is not None:
        now = replace(now, node=replace(now.node, capacity={resources.CPU: declared}))
    settings = strategies.Threshold(
        enable=True,
        cpu_evict_threshold_percent=62,
        evict_enabled_priority_threshold=9000,
        cpu_evict_time_window_seconds=seconds,
    )
    [signal] = cpu_evict.decide(now, past(cpus, seconds), settings, None).signals

    assert (signal.observed, signal.met) == ("62%", True)


def test_without_a_set_best_effort_work_has_what_is_inside() -> None:
    """A limit that nobody can read is no more than the machine that it may have."""
    now = moment("0-3")
    groups = {path: replace(group, values={}) for path, group in now.groups.items() if path}
    now = replace(now, groups={**groups, "": now.groups[""]})
    seen = satisfaction.sample(now, past(PARTITION), None)

    assert isinstance(seen, satisfaction.Sample)
    assert seen.limit == 4000
