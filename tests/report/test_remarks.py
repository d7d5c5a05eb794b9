"""What is wrong with whose object, as values."""

from __future__ import annotations

import dataclasses

from koordlet.kubeapi import kinds
from koordlet.model import nodeslo, pod, reservation, snapshot
from koordlet.report import remarking
from tests.kit import views

SEEN = views.view().snapshot


def broken(name: str, *problems: str, source: str = "kubelet") -> pod.Pod:
    """A workload with mistakes."""
    return dataclasses.replace(views.workload(name), source=source, problems=problems)


def test_one_remark_for_each_object_and_mistake() -> None:
    """Two mistakes of two pods are four remarks; the same mistake twice is one."""
    pods = (broken("a", "x", "y", "x"), broken("b", "y", "x"))
    remarks = remarking.of(dataclasses.replace(SEEN, pods=pods))

    assert 4 == len({remark.ref for remark in remarks}) == len(remarks)
    assert {remark.subject.uid for remark in remarks} == {"uid-a", "uid-b"}
    again = remarking.of(dataclasses.replace(SEEN, pods=pods[::-1]))
    assert {remark.ref for remark in again} == {remark.ref for remark in remarks}


def test_a_pod_of_a_thousand_mistakes() -> None:
    """Eight are said, and how many more there are; the number is not part of the event's name."""
    many = [f"annotation {n:04}: no" for n in range(1000)]
    remarks, fewer = (
        remarking.of(dataclasses.replace(SEEN, pods=(broken("a", *many[:count]),)))
        for count in (1000, 500)
    )

    assert len(remarks) == 9
    assert remarks[-1].message.startswith("992 more")
    assert remarks[-1].ref == fewer[-1].ref


def test_a_container_that_did_not_start() -> None:
    """One event for its pod, and the same one for the next attempt; none for one that starts."""
    container = pod.Container(name="c", refused="cpuset.cpus: permission denied")
    started = dataclasses.replace(views.workload("b"), source="kubelet")
    failing = dataclasses.replace(views.workload("a"), source="kubelet", containers=(container,))
    (remark,) = remarking.of(dataclasses.replace(SEEN, pods=(failing, started)))

    assert (remark.reason, remark.subject.uid) == ("StartFailed", "uid-a")
    assert "Container c did not start" in remark.message
    assert remark.message.endswith("cpuset.cpus: permission denied")


def test_workloads_of_files_are_no_objects() -> None:
    """What a file of this machine says wrongly is in our log; the cluster has no object for it."""
    pods = (broken("a", "x", source="configuration"), broken("b", "x", source="manifest"))

    assert remarking.of(dataclasses.replace(SEEN, pods=pods)) == ()


def test_an_object_of_which_nothing_can_be_used() -> None:
    """One remark on it, by its name; what has no name, or is none of ours, has nobody to tell."""
    unread = (
        snapshot.Unread(kind="Pod", name="a", namespace="shop", uid="ua", why="TypeError: no"),
        snapshot.Unread(kind="NodeSLO", name="n1", why="KeyError: spec"),
        snapshot.Unread(kind="Pod", name="", namespace="shop", why="a Pod without metadata.name"),
        snapshot.Unread(kind="Secret", name="s", why="no"),
    )
    remarks = remarking.of(dataclasses.replace(SEEN, unread=unread))

    assert [
        (remark.subject.kind, remark.subject.namespace, remark.subject.name, remark.subject.uid)
        for remark in remarks
    ] == [(kinds.PODS, "shop", "a", "ua"), (kinds.NODE_SLOS, "", "n1", "")]
    assert remarks[0].message.startswith(
        "cannot be read: TypeError: no; koordlet uses the last valid version"
    )


def test_other_objects() -> None:
    """The NodeSLO or its map, reservations, the Node with its conditions: each on itself."""
    slo = dataclasses.replace(nodeslo.DEFAULTS, source="NodeSLO", uid="u", problems=("p",))
    held = reservation.Reservation(name="r", uid="ur", problems=("p",))
    node = dataclasses.replace(SEEN.node, problems=("p",))
    now = dataclasses.replace(SEEN, slo=slo, reservations=(held,), node=node)
    remarks = remarking.of(now, [("ReservedCPUsInvalid", "no CPUs left"), ("MemoryLimitHeld", "m")])

    assert [remark.subject.kind for remark in remarks] == [
        kinds.NODE_SLOS,
        kinds.RESERVATIONS,
        kinds.NODES,
        kinds.NODES,
    ]
    assert [remark.message for remark in remarks[2:]] == ["no CPUs left", "p"]
    by_map = dataclasses.replace(now, slo=dataclasses.replace(slo, source="slo-controller-config"))
    assert kinds.CONFIG_MAPS is remarking.of(by_map)[0].subject.kind
