"""The history: spaces side by side."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.history import series
from koordlet.model import meter, pod, qos, snapshot
from tests.kit import counting, moments, views


def test_each_reading_goes_to_its_space() -> None:
    """What was read of one kind of subject is not asked of another."""
    past = series.History()
    past.take({"cpus": counting.reading(0, {meter.PIDS: [7.0]}, names=("3",))})

    assert past.cpus.last("3", meter.PIDS) == 7
    assert past.groups.last("3", meter.PIDS) is None
    assert past.usage().cpus.value("3", meter.PIDS) == 7
    assert past.usage().node.slots == {}


def learned(
    *pods: pod.Pod, node: snapshot.NodeInfo | None = None, root: str = "", outside: float = 0.0
) -> series.History:
    """What is known after four minutes in which each uses a core and 100 bytes, the node four.

    ``root``: the CPUs of the cgroup tree, where these are not all; beside them so much is used.
    """
    past, names = series.History(), [str(workload.group) for workload in pods]
    # Then it slept for two days, so that nobody is too young to be judged.
    seen = dataclasses.replace(views.view(pods).snapshot, topology=views.machine(9, 1))
    if node is not None:
        seen = dataclasses.replace(seen, node=node)
    if root:
        seen = dataclasses.replace(seen, groups={"": moments.group("", root, unified=True)})
    each = len(pods)
    for at in range(250):
        slept = 0.0 if at < 130 else 48 * 3600.0
        groups = counting.reading(
            at,
            {
                meter.CPU: [1.0 * at] * each,
                meter.MEMORY_ANON: [100.0] * each,
            },
            names=names,
            suspended=slept,
        )
        total = {
            meter.CPU: [(4.0 + outside) * at],
            meter.WORKING_SET: [500.0],
            meter.MEMORY_TOTAL: [1e9],
        }
        node_read = counting.reading(at, total, names=("",), suspended=slept)
        cpus = {meter.CPU: [outside * at]}
        cpus_read = counting.reading(at, cpus, names=("7",), suspended=slept)
        past.take({"groups": groups, "node": node_read, "cpus": cpus_read})
        past.share(groups, pods)
        past.learn(groups, seen)
    return past


def test_what_is_expected_is_learned_in_turns() -> None:
    """Every workload is sampled once a minute; then there is a prediction, once it is known."""
    past = learned(*views.pods(3))

    assert len(past.expectation) == 5
    # Three cores of prod and one of the system, a tenth more, rounded up to a bucket.
    assert 4.4 <= past.predicted.peak["cpu"] <= 4.8
    assert past.predicted.reclaimable["cpu"] == 0


def test_what_nobody_counts_is_not_learned_as_nothing() -> None:
    """Without the use of any workload there is no prediction; without workloads there is one."""
    pods = views.pods(2)
    seen = dataclasses.replace(views.view(pods).snapshot, topology=views.machine(9, 1))
    known = []
    for listed in (pods, ()):
        past, now = series.History(), dataclasses.replace(seen, pods=tuple(listed))
        for at in range(250):
            total = {meter.CPU: [4.0 * at], meter.WORKING_SET: [500.0], meter.MEMORY_TOTAL: [1e9]}
            node_read = counting.reading(at, total, names=("",))
            past.take({"node": node_read})
            past.share(node_read, now.pods)
            past.learn(node_read, now)
        known.append(past.predicted.reclaimable.keys())

    assert [set(), {"cpu", "memory"}] == known


def test_nobody_is_expected_twice() -> None:
    """Who is part of the system is no part of prod, nor is who is inside another workload."""
    first, second, third = views.pods(3)
    past = learned(
        first,
        dataclasses.replace(second, qos=qos.Qos.SYSTEM),
        dataclasses.replace(third, group=f"{first.group}/inner"),
    )

    # One core of prod, three of the system.
    assert 4.4 <= past.predicted.peak["cpu"] <= 4.8


def test_a_night_is_not_forgotten() -> None:
    """Who was there before the machine slept is there after it: nobody could be seen meanwhile."""
    many = views.pods(45)
    past = learned(*many)

    assert len(many) + 2 == len(past.expectation)
    first = min(past.expectation._models[workload.uid].first for workload in many)
    assert all(past.expectation._models[workload.uid].first - first < 60 for workload in many)


@pytest.mark.parametrize(
    ("allocatable", "raw", "cores"),
    [({}, {}, 8.0), ({"cpu": 6000}, {}, 6.0), ({"cpu": 12000}, {"cpu": 5000}, 5.0)],
)
def test_no_more_than_may_be_given_to_pods(
    allocatable: dict[str, int], raw: dict[str, int], cores: float
) -> None:
    """The machine, less what the Node keeps back; without what its manager amplified."""
    asks = dataclasses.replace(views.pods(1)[0], requests={"cpu": 64_000, "memory": 1 << 40})
    node = snapshot.NodeInfo(name="n", allocatable=allocatable, raw_allocatable=raw)
    past = learned(asks, node=node)

    # Three cores of the system, one of prod, a tenth more; nobody needs the rest of what it asked.
    assert past.predicted.peak["cpu"] == pytest.approx(4.4, rel=0.06)
    assert past.predicted.reclaimable["cpu"] == pytest.approx(cores - 4.4, abs=0.3)


@pytest.mark.parametrize("outside", [0.0, 0.9])
def test_nothing_is_expected_of_cpus_outside_of_the_tree(outside: float) -> None:
    """Two of eight CPUs are in another program's partition, idle or busy."""
    asks = dataclasses.replace(views.pods(1)[0], requests={"cpu": 64_000, "memory": 1 << 40})
    past = learned(asks, root="0-5", outside=outside)

    assert past.predicted.peak["cpu"] == pytest.approx(4.4, rel=0.06)
    assert past.predicted.reclaimable["cpu"] == pytest.approx(6.0 - 4.4, abs=0.3)
