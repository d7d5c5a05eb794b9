"""ReservedResources: pods that take what a node reserves for others are told, or go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.scheduler.descheduling import round as rounds
from tests.kit.descheduling import evicted, node, play, pod, policy

ACTS = {"ReservedResources": {"dryRun": False}}


def reserving(name: str = "a", cpu: str = "4", **annotation: Any) -> dict[str, Any]:
    """A node that reserves something."""
    notes = {"node.koordinator.sh/reservation": json.dumps(annotation)}
    return node(name, cpu=cpu, memory="4Gi", annotations=notes)


def cpus(text: str) -> dict[str, str]:
    """The annotation of a pod that holds CPUs by number."""
    return {"scheduling.koordinator.sh/resource-status": json.dumps({"cpuset": text})}


def held(name: str, where: str, text: str, **more: Any) -> dict[str, Any]:
    """A pod that is bound to CPUs."""
    labels = {"koordinator.sh/qosClass": "LSR"}
    return pod(name, where, cpu="1", labels=labels, annotations=cpus(text), priority=9500, **more)


def moves(result: rounds.RoundResult) -> list[tuple[str, str, bool]]:
    """Who goes, why, and whether that is only shown."""
    assert result.failures == []
    return [(each.resident.pod.name, each.reason, each.shadow) for each in result.evicted]


def test_the_least_important_pods_go_until_the_reservation_is_free() -> None:
    """Three CPUs are requested of four, of which two are reserved: one of a CPU goes."""
    bodies = [
        reserving(resources={"cpu": "2"}), node("b", cpu="8"),
        pod("low", "a", cpu="1", priority=1), pod("mid", "a", cpu="1", priority=2),
        pod("high", "a", cpu="1", priority=3), pod("bytes", "a", cpu="0", memory="1Gi"),
    ]  # fmt: skip
    reason = "pods take cpu 1 of the resources that are reserved on the node"
    assert moves(play(bodies, policy(ACTS))) == [("low", reason, False)]


def test_memory_counts_for_itself_and_only_who_asks_for_it_goes() -> None:
    """The amounts are as Kubernetes spells them."""
    bodies = [
        reserving(resources={"cpu": "1", "memory": "2Gi"}), node("b", cpu="8", memory="8Gi"),
        pod("cpu", "a", cpu="1", priority=1),
        pod("bytes", "a", cpu="0", memory="2560Mi", priority=5),
    ]  # fmt: skip
    reason = "pods take memory 512Mi of the resources that are reserved on the node"
    assert moves(play(bodies, policy(ACTS))) == [("bytes", reason, False)]


def test_a_pod_on_a_reserved_cpu_goes_first_whatever_its_priority() -> None:
    """Also where the amounts are the kubelet's affair, and then nobody else."""
    inside, low = held("inside", "a", "1-2"), pod("low", "a", cpu="3", priority=1)
    beside, target = held("beside", "a", "3"), node("b", cpu="8")
    bodies = [
        reserving(reservedCPUs="0-1", applyPolicy="ReservedCPUsOnly"),
        *(target, inside, low, beside),
    ]
    reason = "pods take CPUs 1 of the resources that are reserved on the node"
    assert moves(play(bodies, policy(ACTS))) == [("inside", reason, False)]
    assert evicted([reserving(reservedCPUs="0-1"), *bodies[1:]], policy(ACTS)) == ["inside", "low"]


@pytest.mark.parametrize("band", ["koord-batch", "koord-free"])
def test_batch_and_free_pods_neither_count_nor_go(band: str) -> None:
    """They take what is left over."""
    labels = {"koordinator.sh/priority-class": band}
    for prod, gone in (("2", []), ("3", ["prod"])):
        bodies = [
            reserving(resources={"cpu": "2"}), node("b", cpu="8"),
            pod("prod", "a", cpu=prod, priority=9000), pod("batch", "a", cpu="1", labels=labels),
        ]  # fmt: skip
        assert evicted(bodies, policy(ACTS)) == gone


def test_a_node_that_reserves_nothing_or_what_nobody_can_read_is_left_alone() -> None:
    """However full it is."""
    full = pod("p", "a", cpu="9")
    assert evicted([node("a", cpu="4"), node("b", cpu="16"), full], policy(ACTS)) == []
    unread = node("a", cpu="4", annotations={"node.koordinator.sh/reservation": "{"})
    assert evicted([unread, node("b", cpu="16"), full], policy(ACTS)) == []


def test_it_runs_in_each_profile_and_only_shows_unless_it_is_told_otherwise() -> None:
    """And not where the profile disables it."""
    bodies = [reserving(resources={"cpu": "2"}), node("b", cpu="8"), pod("p", "a", cpu="3")]
    (shown,) = moves(play(bodies, policy()))
    assert shown[::2] == ("p", True)
    body = policy()
    body["profiles"][0]["plugins"]["balance"]["disabled"] = ["ReservedResources"]
    assert evicted(bodies, body) == []
    body["profiles"][0]["plugins"]["balance"]["disabled"] = [{"name": "*"}]
    assert evicted(bodies, body) == []
    assert evicted(bodies, policy({"ReservedResources": {"paused": True}})) == []


def test_what_it_only_shows_takes_no_place_of_a_strategy_that_acts() -> None:
    """Neither in the limits of a round, nor on a node, nor the pod itself."""
    started = {"phase": "Running", "startTime": "2020-01-01T00:00:00Z"}
    bodies = [
        reserving(resources={"cpu": "3"}), node("b", cpu="2"),
        pod("p", "a", cpu="2", priority=1, age=9e6, status=started),
    ]  # fmt: skip
    body = policy(evictor={"nodeFit": True}, maxNoOfPodsToEvictTotal=1)
    second = policy({"PodLifeTime": {"maxPodLifeTimeSeconds": 60}}, {"nodeFit": True})
    (acting,) = second["profiles"]
    body["profiles"].append({**acting, "name": "q"})
    result = play(bodies, body)
    assert [(each.strategy, each.profile) for each in result.evicted] == [
        ("ReservedResources", "p"), ("PodLifeTime", "q"),
    ]  # fmt: skip
