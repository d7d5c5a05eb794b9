"""Strategies about one pod: age, restarts, failure."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.descheduling import Body, ago, containers, evicted, node, pod, policy

NODES = [node("n1"), node("n2")]


def chosen(strategy: str, pods: list[Body], evictor: dict[str, Any] | None = None, /, **args: Any
           ) -> list[str]:  # fmt: skip
    """The pods that a strategy evicts."""
    return evicted([*NODES, *pods], policy({strategy: args}, evictor))


def test_pod_life_time_is_strictly_greater_and_the_oldest_go_first() -> None:
    """605 seconds are more than 600; 595 and 600 are not."""
    pods = [pod(f"p{age}", "n1", age=age) for age in (595, 600, 605, 9000)]
    assert chosen("PodLifeTime", pods, maxPodLifeTimeSeconds=600) == ["p9000", "p605"]


@pytest.mark.parametrize(
    ("status", "args", "goes"),
    [
        ({"phase": "Pending"}, {"states": ["Pending"]}, True),
        ({"phase": "Pending"}, {"states": ["Running"]}, False),
        ({"phase": "Failed", "reason": "NodeLost"}, {"states": ["NodeLost"]}, True),
        (
            {"containerStatuses": containers(waiting={"reason": "ContainerCreating"})},
            {"states": ["ContainerCreating"]}, True,
        ),
        (
            {"containerStatuses": containers(terminated={"reason": "OOMKilled", "exitCode": 137})},
            {"states": ["OOMKilled"], "exitCodes": [137]}, True,
        ),
        (
            {"containerStatuses": containers(terminated={"reason": "OOMKilled", "exitCode": 1})},
            {"states": ["OOMKilled"], "exitCodes": [137]}, False,
        ),
        (
            {"initContainerStatuses": containers(waiting={"reason": "CrashLoopBackOff"})},
            {"states": ["CrashLoopBackOff"]}, False,
        ),
        (
            {"initContainerStatuses": containers(waiting={"reason": "CrashLoopBackOff"})},
            {"states": ["CrashLoopBackOff"], "includingInitContainers": True}, True,
        ),
        (
            {"ephemeralContainerStatuses": containers(terminated={"reason": "Error"})},
            {"states": ["Error"], "includingEphemeralContainers": True}, True,
        ),
        (
            {"conditions": [{"type": "Ready", "status": "False", "reason": "Done",
                             "lastTransitionTime": ago(7200)}]},
            {"conditions": [{"type": "Ready", "reason": "Done",
                             "minTimeSinceLastTransitionSeconds": 3600}]}, True,
        ),
        (
            {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago(60)}]},
            {"conditions": [{"type": "Ready", "minTimeSinceLastTransitionSeconds": 3600}]}, False,
        ),
        ({}, {"maxPodLifeTimeSeconds": 1, "ownerKinds": {"exclude": ["ReplicaSet"]}}, False),
        ({}, {"maxPodLifeTimeSeconds": 1, "ownerKinds": {"include": ["ReplicaSet"]}}, True),
        ({}, {"maxPodLifeTimeSeconds": 1, "ownerKinds": {"include": ["Job"]}}, False),
    ],
)  # fmt: skip
def test_pod_life_time_takes_pods_that_match_every_group(
    status: Body, args: dict[str, Any], goes: bool
) -> None:
    """States, conditions, exit codes and kinds of owners; init containers where it is wanted."""
    leaving = chosen("PodLifeTime", [pod("p", "n1", status=status)], **args)
    assert leaving == (["p"] if goes else [])


def test_restarts_are_summed_and_the_most_go_first() -> None:
    """Init containers count where it is wanted; the threshold itself is enough."""
    pods = [
        pod(f"p{count}", "n1", status={
            "containerStatuses": containers(count), "initContainerStatuses": containers(5)})
        for count in (10, 15, 20, 25)
    ]  # fmt: skip
    name = "RemovePodsHavingTooManyRestarts"
    assert chosen(name, pods, podRestartThreshold=20) == ["p25", "p20"]
    inits = {"podRestartThreshold": 20, "includingInitContainers": True}
    assert chosen(name, pods, **inits) == ["p25", "p20", "p15"]


def test_restarts_count_only_in_the_states_that_are_given() -> None:
    """A phase, or what a container waits for."""
    looping = containers(9, waiting={"reason": "CrashLoopBackOff"})
    pods = [
        pod("a", "n1", status={"phase": "Running", "containerStatuses": containers(9)}),
        pod("b", "n1", status={"phase": "Pending", "containerStatuses": looping}),
    ]
    name, args = "RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 5}
    assert chosen(name, pods, **args, states=["Running"]) == ["a"]
    assert chosen(name, pods, **args, states=["CrashLoopBackOff"]) == ["b"]


@pytest.mark.parametrize(
    ("more", "args", "goes"),
    [
        ({"reason": "Evicted"}, {}, True),
        ({"phase": "Running"}, {}, False),
        ({"reason": "Evicted"}, {"reasons": ["Evicted"]}, True),
        ({"reason": "Evicted"}, {"reasons": ["Other"]}, False),
        (
            {"containerStatuses": containers(terminated={"reason": "Config", "exitCode": 1})},
            {"reasons": ["Config"], "exitCodes": [1]}, True,
        ),
        (
            {"initContainerStatuses": containers(terminated={"reason": "Config", "exitCode": 1})},
            {"reasons": ["Config"]}, False,
        ),
        (
            {"initContainerStatuses": containers(terminated={"reason": "Config", "exitCode": 1})},
            {"exitCodes": [1], "includingInitContainers": True}, True,
        ),
        ({}, {"excludeOwnerKinds": ["ReplicaSet"]}, False),
        ({}, {"minPodLifetimeSeconds": 9000}, False),
    ],
)  # fmt: skip
def test_failed_pods_go_for_their_reasons(more: Body, args: dict[str, Any], goes: bool) -> None:
    """Any reason and any exit code of those that are given, after an hour unless said otherwise."""
    failed = pod("p", "n1", status={"phase": "Failed", **more})
    assert chosen("RemoveFailedPods", [failed], **args) == (["p"] if goes else [])


def test_a_young_failed_pod_waits_for_an_hour() -> None:
    """The default of the least age."""
    failed = pod("p", "n1", age=3599, status={"phase": "Failed"})
    assert chosen("RemoveFailedPods", [failed]) == []
    assert chosen("RemoveFailedPods", [failed], minPodLifetimeSeconds=3599) == ["p"]
