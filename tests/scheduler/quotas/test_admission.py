"""Whether a quota admits a pod: Koordinator's own cases, by their numbers."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas import admission
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.settings import QuotaSettings
from tests.kit import clusters
from tests.kit.quotas import KEY, spec

_DECODER = Decoder({})
FIXED: dict[str, Any] = {f"{KEY}preemptible": "false"}


def _book(total: tuple[int, int], *quotas: Any, **settings: Any) -> QuotaBook:
    """Quotas over one node with these CPUs and bytes."""
    book = QuotaBook(QuotaSettings(**settings))
    cpu, memory = total
    book.put_node(
        None, nodes.decode(clusters.node("n", cpu=str(cpu), allocatable={"memory": str(memory)}))
    )
    for each in quotas:
        book.put_quota(each)
    book.settle()
    return book


def _pod(name: str, quota: str, cpu: int, memory: int, *, on: str = "", **labels: str) -> Pod:
    body = clusters.pod(
        name, cpu=str(cpu), memory=str(memory), on=on, labels={f"{KEY}name": quota, **labels}
    )
    return _DECODER.decode(body, 0)


@pytest.mark.parametrize(("ignores", "used"), [(False, 1250), (True, 1000)])
def test_what_a_runtime_takes_for_itself_counts_unless_the_gate_leaves_it_out(
    *, ignores: bool, used: int
) -> None:
    """A pod of one CPU with a quarter of overhead, used and asked for; the bound is 2.2 CPUs."""
    book = _book(
        (10, 100), spec("q", {}, {"cpu": "2200m"}), ignores_overhead=ignores, uses_runtime=False
    )

    def pod(name: str, on: str = "") -> Pod:
        overhead = {"overhead": {"cpu": "250m"}}
        body = clusters.pod(name, cpu="1", on=on, labels={f"{KEY}name": "q"}, **overhead)
        return _DECODER.decode(body, 0)

    book.put(pod("there", on="n"))
    assert book.nodes["q"].used == {"cpu": used}
    assert bool(_refusal(book, pod("more"))) is not ignores


def _refusal(book: QuotaBook, pod: Pod) -> str:
    book.put(pod)
    return admission.refusal(book, pod.pod_class, pod.priority)


@pytest.mark.parametrize(
    ("most", "message"),
    [
        ((10, 20), ""),
        ((0, 20), "runtime: cpu:0,memory:3, used: cpu:0,memory:0,"),
        ((10, 2), "runtime: cpu:1,memory:2, used: cpu:0,memory:0,"),
    ],
)
def test_a_pod_is_compared_by_each_name_that_its_quota_bounds(
    most: tuple[int, int], message: str
) -> None:
    """One CPU and 3 bytes, in a quota with room, without CPUs, without the bytes."""
    cpu, memory = most
    book = _book((10, 20), spec("q", {}, {"cpu": cpu, "memory": memory}))
    why = _refusal(book, _pod("p", "q", 1, 3))
    which = "cpu" if cpu == 0 else "memory"
    expected = f"Insufficient quotas, quotaName: q, {message} pod's request: cpu:1,memory:3,"
    assert why == (f"{expected} exceedDimensions: [{which}]" if message else "")


def test_where_the_runtime_does_not_bound_the_maximum_does() -> None:
    """The cluster has 1 CPU and the maximum is 10: room there is none, but the quota admits."""
    quota = spec("q", {}, {"cpu": 10, "memory": 20})
    pod = _pod("p", "q", 2, 3)
    assert "exceedDimensions: [cpu memory]" in _refusal(_book((1, 2), quota), pod)
    assert _refusal(_book((1, 2), quota, uses_runtime=False), pod) == ""


def test_a_refusal_of_a_quota_above_names_the_way_from_it_to_the_pods_own() -> None:
    """The root is not named, nor what is between it and the one that refuses."""
    above = spec("top", {}, {"cpu": 10, "memory": 30}, is_parent=True)
    middle = spec("test", {}, {"cpu": 10, "memory": 2}, parent="top", is_parent=True)
    child = spec("test-child", {}, {"cpu": 10, "memory": 30}, parent="test")
    book = _book((10, 30), above, middle, child, uses_runtime=False)
    assert _refusal(book, _pod("p", "test-child", 1, 3)) == (
        "Insufficient quotas, quotaNameTopo: [test test-child], runtime: cpu:10,memory:2,"
        " used: cpu:0,memory:0, pod's request: cpu:1,memory:3, exceedDimensions: [memory]"
    )


@pytest.mark.parametrize(
    ("total", "most", "running", "new", "message"),
    [
        ((10, 10), (10, 10), [(2, 1, 0), (1, 1, 0), (1, 1, 0)], (2, 2), ""),
        (
            *((8, 5), (10, 8), [(2, 1, 0), (2, 1, 1), (2, 1, 1)], (2, 2)),
            (
                "Insufficient non-preemptible quotas, quotaName: q, min: cpu:5,memory:5,"
                " nonPreemptibleUsed: cpu:4,memory:2, pod's request: cpu:2,memory:2,"
                " exceedDimensions: [cpu]"
            ),
        ),
        (
            *((7, 5), (10, 8), [(2, 1, 0), (2, 1, 0), (2, 2, 1)], (2, 1)),
            (
                "Insufficient quotas, quotaName: q, runtime: cpu:7,memory:5,"
                " used: cpu:6,memory:4, pod's request: cpu:2,memory:1, exceedDimensions: [cpu]"
            ),
        ),
    ],
)
def test_a_pod_that_may_not_be_preempted_needs_room_in_the_runtime_and_in_the_minimum(
    total: tuple[int, int],
    most: tuple[int, int],
    running: list[tuple[int, int, int]],
    new: tuple[int, int],
    message: str,
) -> None:
    """Pods that run are CPUs, bytes, and whether they may not be preempted; the minimum is 5."""
    bound = {"cpu": most[0], "memory": most[1]}
    book = _book(total, spec("q", {"cpu": 5, "memory": 5}, bound))
    for place, (cpu, memory, fixed) in enumerate(running):
        book.put(_pod(f"r{place}", "q", cpu, memory, on="n", **(FIXED if fixed else {})))
    assert _refusal(book, _pod("p", "q", *new, **FIXED)) == message
