"""Sums of CPU use where a part of the machine is outside of the cgroup tree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.model import cpuset, resources, strategies
from koordlet.policy.best_effort import batch_formulas, batch_resources, usage
from tests.kit.partitioned import PARTITION, moment, past


@pytest.mark.parametrize(
    ("root", "cpus", "sums"),
    [
        pytest.param("0-7", {}, (8000, 2500, 500), id="all inside"),
        pytest.param("0-3", PARTITION, (4000, 2500, 500), id="a busy partition"),
        pytest.param("0-3", {"4": 0.0}, (4000, 2500, 500), id="an idle one, partly read"),
    ],
)
def test_neither_capacity_nor_use_is_outside(
    root: str, cpus: dict[str, float], sums: tuple[int, int, int]
) -> None:
    """Whatever a partition does, best-effort work is judged by the rest of the machine alone."""
    use = usage.measure(moment(root), past(cpus))

    assert sums == (use.capacity, use.node, use.system)


def test_cpus_that_are_outside_are_not_reserved_as_well() -> None:
    """They are no capacity already: of four reserved CPUs one is inside."""
    assert usage.measure(moment("0-3", held="3-6"), past({})).reserved == 1000


@pytest.mark.parametrize("declared", [None, 8000, 7000])
def test_the_declared_capacity_is_cut_to_what_is_inside(declared: int | None) -> None:
    """The kubelet knows nothing of the partition; what it keeps for the system stays kept."""
    now = moment("0-3")
    if declared is not None:
        node = replace(
            now.node,
            capacity={resources.CPU: declared},
            allocatable={resources.CPU: declared - 600},
        )
        now = replace(now, node=node)
    use = usage.measure(now, past(PARTITION))

    assert (use.capacity, use.reserved) == (4000, 0 if declared is None else 600)


@pytest.mark.parametrize("seed", [False, True])
def test_no_batch_cpu_is_offered_outside(*, seed: bool) -> None:
    """What the node offers is of the CPUs inside, less what is used there."""
    strategy = strategies.Colocation(metric_aggregate_duration_seconds=1)
    seen = batch_resources.measured(
        moment("0-3"), past(PARTITION), resources.CPU, strategy, seed=seed
    )
    assert seen is not None
    assert (seen.base, seen.node, seen.system) == (4000, 2500, 500)


def test_a_numa_node_outside_has_no_part() -> None:
    """All of what is offered is on the node whose CPUs can be had."""
    parts = batch_formulas.parts(moment("0-3"), resources.CPU)

    assert {node: (part.own, part.whole) for node, part in parts.items()} == {0: (4, 4), 1: (0, 4)}
    assert moment("0-3").outside == cpuset.CPUSet.parse("4-7")
