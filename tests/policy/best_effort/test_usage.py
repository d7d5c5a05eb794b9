"""Sums of CPU use where a part of the machine is outside of the cgroup tree."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.history import series
from koordlet.model import cpuset, ledger, meter, resources, snapshot, strategies
from koordlet.policy.best_effort import batch_formulas, batch_resources, usage
from tests.kit import colocation, counting, moments
from tests.kit.colocation import KubeQos, Qos

#: Eight CPUs in two NUMA nodes, of which another program's partition has the last four.
EIGHT = moments.machine(2, 4, threads=1)
LS = colocation.kube("ls", KubeQos.BURSTABLE, Qos.LS)
BE = colocation.kube("be", KubeQos.BEST_EFFORT, Qos.BE)


def moment(root: str, held: str | None = None) -> snapshot.Snapshot:
    """The root of the tree has some of the CPUs."""
    claims = None if held is None else {ledger.Owner.RESERVED: held}
    now = colocation.moment(EIGHT, [LS, BE], layout=colocation.V2, claims=claims)
    return replace(now, groups={**now.groups, "": moments.group("", root, unified=True)})


def past(cpus: dict[str, float]) -> series.History:
    """The service used 1.5 cores, best-effort work 0.5, the whole node all and half a core more."""
    use = {"": 2.5 + sum(cpus.values())}
    groups = {str(LS.group): 1.5, str(BE.group): 0.5}
    made = series.History()
    for second in (0, 1):
        made.take(
            {
                kind: counting.reading(
                    99.0 + second,
                    {meter.CPU: [50.0 + second * each for each in several.values()]},
                    names=tuple(several),
                )
                for kind, several in (("node", use), ("groups", groups), ("cpus", cpus))
                if several
            }
        )
    return made


PARTITION = {"4": 1.0, "5": 1.0, "6": 0.5, "7": 0.25}


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
