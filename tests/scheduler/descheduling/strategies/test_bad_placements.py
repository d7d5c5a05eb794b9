"""Workloads avoid a node that rejects their pods, or sends them away often; nobody moves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from koordlet.kubeapi.node_avoidances import Avoidance
from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.disruption.tracker import Pressed
from tests.kit.descheduling import NOW, ago, everybody, node, pod, policy

NODES = [node("a"), node("b")]
ACTS = policy({"PoorService": {"dryRun": False}})
#: An entry: the newest pod, minutes, the pods that are removed.
Entry = tuple[str, float, tuple[str, ...]]


def rejected(name: str, seconds: float = 60, reason: str = "OutOfcpu", **more: Any) -> Any:
    """A pod that the kubelet of node a rejected so long ago, as its status says it."""
    status = {"phase": "Failed", "reason": reason, "startTime": ago(seconds)}
    return pod(name, more.pop("on", "a"), status={**status, "conditions": []}, **more)


def evicted(name: str, seconds: float, **more: Any) -> Any:
    """A pod that the kubelet evicted so long ago."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "lastTransitionTime": ago(seconds),
    }
    status = {"phase": "Failed", "reason": "Evicted", "conditions": [condition]}
    return pod(name, "a", status=status, age=10 * 86400, **more)


def played(*bodies: Any, body: Any = ACTS, **state: Any) -> rounds.RoundResult:
    """One round; ``state``: what else it sees."""
    settings = configuration.read(body, "test")
    seen, _ = dump.state([*NODES, *bodies], NOW)
    seen = dataclasses.replace(seen, **state)
    result = rounds.DeschedulingRound(settings.profiles, settings.limits, seen).play(everybody)
    assert (result.failures, result.evicted) == ([], [])
    return result


def avoided(*bodies: Any, **state: Any) -> list[Entry]:
    """The entries that are to be written."""
    return [
        (
            each.resident.pod.name,
            each.avoid_seconds / 60,
            tuple(removed.pod.name for removed in each.removes or ()),
        )
        for each in played(*bodies, **state).avoided
    ]


@pytest.mark.parametrize(
    "reason",
    ["OutOfcpu", "OutOfpods", "UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity"],
)
def test_a_node_that_rejects_two_pods_is_avoided(reason: str) -> None:
    """Within ten minutes; those that a ReplicaSet leaves are removed."""
    entry = [("q", 30.0, ("p", "q"))]
    assert avoided(rejected("p", 590, reason), rejected("q", 10, reason)) == entry
    assert avoided(rejected("p", 600, reason), rejected("q", 10, reason)) == []


def test_other_failures_and_other_workloads_do_not_count() -> None:
    """Two of one workload, on one node, for a reason of the node's."""
    assert avoided(rejected("p"), rejected("q", owner="ReplicaSet/other")) == []
    assert avoided(rejected("p"), rejected("q", on="b")) == []
    assert avoided(rejected("p"), rejected("q", reason="DeadlineExceeded")) == []
    assert avoided(rejected("p", owner=""), rejected("q", owner="")) == []


def test_what_other_controllers_count_is_not_removed() -> None:
    """A Job counts its failures; a StatefulSet removes its own."""
    job = "Job/j"
    assert avoided(rejected("p", owner=job), rejected("q", 30, owner=job)) == [("q", 30.0, ())]


def test_repeated_evictions_under_pressure() -> None:
    """Within six hours; by the time of the eviction, not that of the start. Nobody is removed."""
    entry = [("q", 360.0, ())]
    assert avoided(evicted("p", 6 * 3600 - 1), evicted("q", 10)) == entry
    assert avoided(evicted("p", 6 * 3600), evicted("q", 10)) == []


def test_evictions_by_an_agent_count_with_those_of_a_kubelet() -> None:
    """Its pods are gone; one that both show is one."""
    gone, _ = dump.state([*NODES, pod("p", "a"), pod("q", "a"), pod("r", "b")], NOW)
    (p, q), (r,) = (list(pods.values()) for pods in gone.columns.pods[:2])
    seen = [Pressed(p, NOW - 3000), Pressed(r, NOW - 10)]
    assert avoided(pressed=seen) == []
    assert avoided(pressed=[*seen, Pressed(q, NOW - 5)]) == [("q", 360.0, ())]
    assert avoided(evicted("x", 10), pressed=seen) == [("x", 360.0, ())]
    assert avoided(evicted("p", 10), pressed=seen) == []


def test_evictions_by_agents_are_read_once_a_round() -> None:
    """There may be thousands of both, evictions and nodes."""
    reads = []

    class Evictions(list[Pressed]):
        def __iter__(self) -> Iterator[Pressed]:
            reads.append(self)
            return super().__iter__()

    avoided(pressed=Evictions())
    assert len(reads) == 1


def test_what_an_entry_was_written_for_counts_no_more() -> None:
    """Else each round would write it again, and double it."""
    entry = Avoidance(workload=("default", "ReplicaSet", "rs"), since=NOW - 100, until=NOW + 100)
    before = [rejected("p", 200), rejected("q", 100), rejected("r", 50)]
    after = [*before, rejected("s", 20)]
    known: Any = lambda _pod_class: {"a": entry}  # noqa: E731
    assert avoided(*before, avoids=known) == []
    assert avoided(*after, avoids=known) == [("s", 30.0, ("r", "s"))]
    elsewhere: Any = lambda _pod_class: {"b": entry}  # noqa: E731
    assert len(avoided(*before, avoids=elsewhere)) == 1


def test_it_only_shows_unless_it_is_told_to_act() -> None:
    """Shadow first."""
    several = rejected("p"), rejected("q", 30)
    assert [each.shadow for each in played(*several).avoided] == [False]
    shown = played(*several, body=policy({"PoorService": None}))
    assert [each.shadow for each in shown.avoided] == [True]
