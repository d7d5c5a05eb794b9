"""Shares of the node: classes, and the system, which is never below zero nor counted twice."""

from __future__ import annotations

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import meter, pod, qos
from tests.kit import counting, views


def shared(node: float, *used: tuple[pod.Pod, float]) -> series.History:
    """A history in which the node and these workloads use so many cores."""
    past, names = series.History(), [str(workload.group) for workload, _ in used]
    for at in (0, 1):
        groups = counting.reading(at, {meter.CPU: [at * cores for _, cores in used]}, names=names)
        past.take(
            {"groups": groups, "node": counting.reading(at, {meter.CPU: [at * node]}, names=("",))}
        )
        past.share(groups, tuple(workload for workload, _ in used))
    return past


def test_the_system_is_the_rest() -> None:
    """The node without its workloads; each class is the sum of its own."""
    past = shared(
        10.0,
        (views.workload("a"), 2.0),
        (views.workload("b"), 1.0),
        (views.workload("c", qos.Qos.BE), 4.0),
    )
    shown = {name: past.shares.last(name, meter.CPU_SHARE) for name in past.shares.subjects}

    assert shown == {"LSE": 0, "LSR": 0, "LS": 3, "BE": 4, "system": 3}


def test_a_workload_inside_another() -> None:
    """What is below another workload's group is counted there."""
    outer = views.workload("a")
    inner = dataclasses.replace(views.workload("b", qos.Qos.BE), group="shop/a/inner")
    past = shared(5.0, (outer, 3.0), (inner, 2.0))

    assert tuple(past.shares.last(name, meter.CPU_SHARE) for name in ("LS", "BE", "system")) == (
        3,
        0,
        2,
    )


def test_active_page_cache_is_nobodys() -> None:
    """The kernel calls it available, so it is no part of the node's use, nor of a workload's."""
    past, workload = series.History(), views.workload("a")
    of_group = {
        meter.MEMORY: [28.0],
        meter.MEMORY_INACTIVE_FILE: [0.0],
        meter.MEMORY_CACHE: [20.0],
        meter.MEMORY_ANON: [8.0],
    }
    groups = counting.reading(1, of_group, names=(str(workload.group),))
    node = counting.reading(1, {meter.MEMORY: [33.0], meter.WORKING_SET: [10.0]}, names=("",))
    past.take({"groups": groups, "node": node})
    past.share(groups, (workload,))

    assert tuple(past.shares.last(name, meter.MEMORY_SHARE) for name in ("LS", "system")) == (8, 2)


def test_workloads_of_the_system() -> None:
    """The class SYSTEM is part of the system."""
    past = shared(5.0, (views.workload("a", qos.Qos.SYSTEM), 3.0))

    assert past.shares.last("system", meter.CPU_SHARE) == 5


def test_a_workload_that_is_not_known_yet() -> None:
    """Without it the system would be too much, so it is not known either."""
    past = shared(5.0, (views.workload("a"), float("nan")))

    assert past.shares.last("system", meter.CPU_SHARE) is None
    assert past.shares.last("BE", meter.CPU_SHARE) == 0


@hypothesis.given(node=st.floats(0, 512), used=st.lists(st.floats(0, 512), max_size=5))
def test_never_below_zero(node: float, used: list[float]) -> None:
    """Counters are read one after the other: workloads may seem to use more than the node."""
    past = shared(node, *((views.workload(f"w{n}"), cores) for n, cores in enumerate(used)))

    assert max(0.0, node - sum(used)) == pytest.approx(
        past.shares.last("system", meter.CPU_SHARE), abs=1e-9
    )


def test_what_a_class_does_beside() -> None:
    """Tasks and I/O are summed, throttling is of all periods, and the most stalled one counts."""
    past, pods = series.History(), (views.workload("a"), views.workload("b"), views.workload("c"))
    names = [str(workload.group) for workload in pods]
    nothing = float("nan")
    for at in (0, 10):
        groups = counting.reading(
            at,
            {
                meter.PIDS: [3, 4, nothing],
                meter.IO_READ: [at * 100.0, at * 50.0, nothing],
                meter.PERIODS: [at * 10.0, at * 30.0, nothing],
                meter.THROTTLED_PERIODS: [at * 10.0, 0.0, nothing],
                meter.PRESSURE_IO.some[3]: [at * 0.5, at * 0.25, nothing],
            },
            names=names,
        )
        past.take({"groups": groups, "node": counting.reading(at, {meter.CPU: [at]}, names=("",))})
        for _ in range(10):
            past.share(groups, pods)
    shown = past.shares.table()

    assert shown.value("LS", meter.PIDS_SHARE) == 7
    assert shown.value("LS", meter.IO_READ_SHARE) == 150
    assert shown.value("LS", meter.THROTTLED_SHARE) == 0.25
    assert shown.value("LS", meter.STALLED_SHARES[2]) == 0.5
    assert shown.value("BE", meter.PIDS_SHARE) is None
    assert shown.value("system", meter.PIDS_SHARE) is None


def test_what_a_class_moves() -> None:
    """Bytes through the networks of a class: of those that have one of their own, known or not."""
    past = series.History()
    pods = (*map(views.workload, "abc"), views.workload("d", qos.Qos.BE))
    groups = counting.reading(
        0, {meter.CPU: [0.0] * 4}, names=[str(workload.group) for workload in pods]
    )
    for at in (0, 30):
        moved = {meter.POD_RECEIVED: [at * 100.0, at * 20.0], meter.POD_SENT: [at, float("nan")]}
        names = [str(workload.group) for workload in pods[:2]]
        past.take({"groups": groups, "traffic": counting.reading(at, moved, names=names)})
        for _ in range(30):
            past.share(counting.reading(at, {}), pods)
    shown = past.shares.table()

    assert tuple(
        shown.value("LS", share) for share in (meter.RECEIVED_SHARE, meter.SENT_SHARE)
    ) == (
        120,
        1,
    )
    assert shown.value("BE", meter.RECEIVED_SHARE) is None
    assert shown.value("system", meter.SENT_SHARE) is None


@pytest.mark.parametrize("lost", ["groups", "node"])
def test_what_is_old_is_no_part_of_a_difference(lost: str) -> None:
    """The node of now less the workloads of then is the use of nobody."""
    past, who = series.History(), (views.workload("a"),)
    for at in range(30):
        read = {
            "groups": counting.reading(at, {meter.CPU: [1.0 * at]}, names=["shop/a"]),
            "node": counting.reading(at, {meter.CPU: [4.0 * at]}, names=("",)),
        }
        if at > 15:
            read[lost] = dataclasses.replace(read[lost], batches=())
        past.take(read)
        past.share(read["groups"], who)
        if at == 20:
            assert past.shares.last("system", meter.CPU_SHARE) == 3

    assert past.shares.last("system", meter.CPU_SHARE) is None
    assert past.shares.last("LS", meter.CPU_SHARE) == (None if lost == "groups" else 1)
