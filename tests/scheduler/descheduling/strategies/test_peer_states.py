"""Kubernetes' descheduler's cases of strategies about one pod: its age, its restarts, its failure.

Facts in tables: a state, arguments, who goes.
"""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from tests.kit.descheduling import Body, ago, containers, evicted, node, pod, policy

LIFE, RESTARTS, FAILED = "PodLifeTime", "RemovePodsHavingTooManyRestarts", "RemoveFailedPods"
OURS, INIT, DEBUG = "containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"
INITS, DEBUGS = {"includingInitContainers": True}, {"includingEphemeralContainers": True}
TERMINATING: Body = {"deletionTimestamp": "2020-01-01T00:00:00Z"}
NODES = [node("n1"), node("n2")]
TAINT = {"key": "hardware", "value": "gpu", "effect": "NoSchedule"}
FIT: Body = {"nodeFit": True}


def waits(reason: str, where: str = OURS) -> Body:
    """A container that waits."""
    return {where: containers(waiting={"reason": reason})}


def ended(reason: str = "", code: int = 0, where: str = OURS) -> Body:
    """A container that has ended."""
    return {where: containers(terminated={"reason": reason, "exitCode": code})}


def condition(reason: str, seconds: float | None, status: str = "True", of: str = "Ready") -> Body:
    """A condition that has been so for some seconds."""
    since = {} if seconds is None else {"lastTransitionTime": ago(seconds)}
    return {"type": of, "status": status, "reason": reason, **since}


# PodLifeTime.


@pytest.mark.parametrize(
    ("status", "states", "more", "goes"),
    [
        *((waits(reason), [reason], {}, True) for reason in (
            "ContainerCreating", "PodInitializing", "ImagePullBackOff", "CrashLoopBackOff",
            "CreateContainerConfigError", "ErrImagePull", "CreateContainerError",
            "InvalidImageName")),
        *(({"reason": reason}, [reason], {}, True) for reason in (
            "NodeLost", "NodeAffinity", "Shutdown", "UnexpectedAdmissionError")),
        *(({"phase": phase}, [phase], {}, True) for phase in (
            "Pending", "Running", "Succeeded", "Failed", "Unknown")),
        ({}, ["Pending"], {}, False),
        ({}, ["ContainerCreating"], {}, False),
        (waits("ImagePullBackOff"), ["ContainerCreating"], {}, False),
        (waits("CreateContainerError", INIT), ["CreateContainerError"], {}, False),
        (waits("CreateContainerError", INIT), ["CreateContainerError"], INITS, True),
        (waits("CreateContainerError", DEBUG), ["CreateContainerError"], {}, False),
        (waits("CreateContainerError", DEBUG), ["CreateContainerError"], DEBUGS, True),
        (ended("NodeAffinity"), ["NodeAffinity"], {}, True),
        (ended("CreateContainerConfigError", 0, INIT), ["CreateContainerConfigError"], INITS, True),
        (ended("CreateContainerConfigError", 0, INIT), ["CreateContainerConfigError"], {}, False),
        (ended("OOMKilled", 0, DEBUG), ["OOMKilled"], DEBUGS, True),
        (ended("OOMKilled", 0, DEBUG), ["OOMKilled"], {}, False),
        ({"phase": "Failed", **ended("", 1)}, ["Failed"], {"exitCodes": [1]}, True),
        ({"phase": "Failed", **ended("", 1)}, ["Failed"], {"exitCodes": [2]}, False),
    ],
)  # fmt: skip
def test_life_time_by_state(status: Body, states: list[str], more: Body, *, goes: bool) -> None:
    """Phases, reasons of the pod, and what its containers wait for or ended with."""
    for age in ({}, {"maxPodLifeTimeSeconds": 600}):
        chosen = evicted(
            [*NODES, pod("p", "n1", status=status)],
            policy({LIFE: {"states": states, **age, **more}}),
        )
        assert chosen == (["p"] if goes else [])


DONE = {"reason": "PodCompleted", "status": "True"}
SINCE = "minTimeSinceLastTransitionSeconds"
OLD, YOUNG = 7200.0, 60.0


@pytest.mark.parametrize(
    ("conditions", "wanted", "goes"),
    [
        ([condition("PodCompleted", OLD)], DONE, True),
        ([condition("OtherReason", OLD)], DONE, False),
        ([condition("", OLD, "False")], {"type": "Ready"}, True),
        ([condition("SomethingElse", None)], {"reason": "PodCompleted"}, False),
        ([condition("PodCompleted", OLD)], {**DONE, SINCE: 300}, True),
        ([condition("PodCompleted", YOUNG)], {**DONE, SINCE: 300}, False),
        ([condition("", YOUNG, "False")], {SINCE: 14400}, False),
        # Only the time of a condition that is meant counts.
        (
            [condition("PodCompleted", OLD), condition("OtherReason", YOUNG)],
            {"reason": "PodCompleted", SINCE: 300}, True,
        ),
        (
            [condition("PodCompleted", YOUNG), condition("OtherReason", OLD)],
            {"reason": "PodCompleted", SINCE: 300}, False,
        ),
        ([], {SINCE: 300}, False),
        ([condition("PodCompleted", None)], {**DONE, SINCE: 300}, False),
    ],
)  # fmt: skip
def test_life_time_by_condition(conditions: list[Body], wanted: Body, *, goes: bool) -> None:
    """One condition must be all that is asked of it, its age included."""
    body = pod("p", "n1", status={"phase": "Succeeded", "conditions": conditions})
    args = {"states": ["Succeeded"], "conditions": [wanted]}
    assert evicted([*NODES, body], policy({LIFE: args})) == (["p"] if goes else [])


@pytest.mark.parametrize(
    ("kinds", "names"),
    [({"exclude": ["Job"]}, ["rs"]), ({"include": ["Job"]}, ["job"]), ({}, ["job", "rs"])],
)
def test_life_time_by_the_kind_of_the_owner(kinds: Body, names: list[str]) -> None:
    """Each group that is given must agree: no age, no other state."""
    failed = {"phase": "Failed", **ended("Error", 1)}
    bodies = [
        pod("job", "n1", owner="Job/j", status=failed),
        pod("rs", "n1", status=failed),
        pod("runs", "n1"),
    ]
    args = {"states": ["Failed"], "maxPodLifeTimeSeconds": 0, "ownerKinds": kinds}
    assert sorted(evicted([*NODES, *bodies], policy({LIFE: args}))) == names


@pytest.mark.parametrize(
    ("bodies", "limits", "names"),
    [
        ([pod("new", "n1", age=0), pod("old", "n1")], {}, ["old"]),
        ([pod("new", "n1", age=0), pod("newer", "n1", age=0)], {}, []),
        ([pod("new", "n1", age=0), pod("old", "n1", age=605)], {}, ["old"]),
        ([pod("new", "n1", age=0), pod("old", "n1", age=595)], {}, []),
        ([pod("a", "n1", meta=TERMINATING), pod("b", "n1", meta=TERMINATING)], {}, []),
        (
            [pod("a", "n1"), pod("b", "n1", age=9000, status={"phase": "Pending"})], {}, ["b", "a"],
        ),
        ([pod("a", "n1"), pod("b", "n1", age=9000)], {"maxNoOfPodsToEvictPerNamespace": 1}, ["b"]),
        ([pod("a", "n1"), pod("b", "n1", age=9000)], {"maxNoOfPodsToEvictPerNode": 1}, ["b"]),
        (
            [pod("a", "n1"), pod("b", "n1", age=9000)],
            {"maxNoOfPodsToEvictPerNamespace": 2, "maxNoOfPodsToEvictTotal": 1}, ["b"],
        ),
        # A node that is full of evictions does not end the strategy.
        (
            [pod("a", "n1"), pod("b", "n1", age=9000), pod("c", "n2", age=60_000)],
            {"maxNoOfPodsToEvictPerNode": 1}, ["c", "b"],
        ),
    ],
)  # fmt: skip
def test_life_time_by_age(bodies: list[Body], limits: Body, names: list[str]) -> None:
    """The oldest first, within the limits of the round."""
    strategies = {LIFE: {"maxPodLifeTimeSeconds": 600}}
    assert evicted([*NODES, *bodies], policy(strategies, **limits)) == names


# RemovePodsHavingTooManyRestarts: ten pods, of which the n-th restarted 20 n times and 5 n times
# in its init container. The sixth is a DaemonSet's, the seventh has local storage, the eighth is
# the kubelet's mirror.

LIMIT = {"maxNoOfPodsToEvictPerNode": 3}
UNLIKE: dict[int, Body] = {
    6: {"owner": "DaemonSet/d"},
    7: {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
    8: {"annotations": {"kubernetes.io/config.mirror": "x"}},
}


def ten(phase: str = "Running", init: Body | None = None, **state: Any) -> list[Body]:
    """The ten pods; ``init``: the state of the init container, which then restarted never."""
    bodies = []
    for place in range(10):
        inits = containers(5 * place) if init is None else containers(**init)
        status = {"phase": phase, INIT: inits, OURS: 2 * containers(10 * place, **state)}
        bodies.append(pod(f"p{place}", "n1", status=status, **UNLIKE.get(place, {})))
    return bodies


LOOPS: Body = {"waiting": {"reason": "CrashLoopBackOff"}}
LOOPING = {"states": ["CrashLoopBackOff"]}


@pytest.mark.parametrize(
    ("bodies", "args", "limits", "names"),
    [
        (ten(), {"podRestartThreshold": 10_000, **INITS}, {}, ""),
        (ten(), {"podRestartThreshold": 1, **INITS}, {}, "954321"),
        (ten(), {"podRestartThreshold": 25, **INITS}, {}, "954321"),
        (ten(), {"podRestartThreshold": 25}, {}, "95432"),
        (ten(), {"podRestartThreshold": 20, **INITS}, {}, "954321"),
        (ten(), {"podRestartThreshold": 20}, {}, "954321"),
        (ten(), {"podRestartThreshold": 126, **INITS}, {}, "9"),
        (ten(), {"podRestartThreshold": 101}, {}, "9"),
        (ten(), {"podRestartThreshold": 1, **INITS}, LIMIT, "954"),
        (
            ten(), {"podRestartThreshold": 1, **INITS},
            {"maxNoOfPodsToEvictPerNamespace": 3}, "954",
        ),
        (ten(**LOOPS), {"podRestartThreshold": 1, **LOOPING}, LIMIT, "954"),
        (ten(), {"podRestartThreshold": 1, **LOOPING}, LIMIT, ""),
        (ten(), {"podRestartThreshold": 1, "states": ["Running"]}, LIMIT, "954"),
        (ten("Pending"), {"podRestartThreshold": 1, "states": ["Running"]}, LIMIT, ""),
        (ten("Pending", LOOPS), {"podRestartThreshold": 1, **LOOPING, **INITS}, LIMIT, "954"),
        (ten("Pending", LOOPS), {"podRestartThreshold": 1, **LOOPING}, LIMIT, ""),
    ],
)  # fmt: skip
def test_restarts(bodies: list[Body], args: Body, limits: Body, names: str) -> None:
    """The most first, of pods that may go; the threshold itself is enough."""
    chosen = evicted([*NODES, *bodies], policy({RESTARTS: args}, **limits))
    assert chosen == [f"p{name}" for name in names]


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ([node("n2", taints=[TAINT])], []),
        ([node("n2", unschedulable=True)], []),
        ([node("n2", cpu="200m"), pod("eats", "n2", "150m", "100")], []),
        ([node("n2"), pod("eats", "n2", "150m", "100")], ["p9", "p5", "p4"]),
    ],
)
def test_restarts_where_a_pod_must_fit_elsewhere(other: list[Body], names: list[str]) -> None:
    """A taint, a cordon and too little CPU leave no node."""
    args = {"podRestartThreshold": 1, **INITS}
    chosen = evicted([node("n1"), *other, *ten()], policy({RESTARTS: args}, FIT, **LIMIT))
    assert chosen == names


# RemoveFailedPods. The peer's cases are about pods that failed just now.

CONFIG = "CreateContainerConfigError"


@pytest.mark.parametrize(
    ("status", "args", "goes"),
    [
        (ended("NodeAffinity"), {}, True),
        (ended("", 1), {"exitCodes": [1]}, True),
        (ended("NodeAffinity", 1), {"exitCodes": [1]}, True),
        (ended("", 1), {"exitCodes": [2]}, False),
        (ended("", 2), {"exitCodes": [1, 2, 3]}, True),
        (ended("NodeAffinity", 0, INIT), INITS, True),
        (ended("", 1), {"exitCodes": [1], **INITS}, True),
        (ended("", 2), {"exitCodes": [1], **INITS}, False),
        (waits(CONFIG, INIT), INITS, True),
        (ended(CONFIG), {"reasons": [CONFIG]}, True),
        (ended(CONFIG), {"reasons": [CONFIG, "NodeAffinity"]}, True),
        (ended("NodeAffinity"), {"reasons": [CONFIG]}, False),
        (waits(CONFIG, INIT), {"reasons": [CONFIG]}, False),
        (waits(CONFIG), {"reasons": [CONFIG]}, True),
        ({"reason": "NodeAffinity"}, {"reasons": []}, True),
        (ended("NodeAffinity"), {"labelSelector": {"matchLabels": {"app": "x"}}}, False),
        (ended("NodeAffinity"), {"minPodLifetimeSeconds": 3600}, False),
        (ended("NodeAffinity", 0, INIT), {**INITS, "excludeOwnerKinds": ["ReplicaSet"]}, False),
        (ended("NodeAffinity", 0, INIT), {**INITS, "excludeOwnerKinds": ["DaemonSet"]}, True),
        ({"reason": "Shutdown"}, {"reasons": ["Shutdown"]}, True),
    ],
)  # fmt: skip
def test_failed_pods(status: Body, args: Body, *, goes: bool) -> None:
    """By reason, exit code, age and kind of the owner."""
    bodies = [
        pod("p", "n1", age=1, status={"phase": "Failed", **status}),
        pod("q", "n2", age=1, status={"phase": "Failed", **status}),
        pod("leaves", "n1", age=1, meta=TERMINATING, status={"phase": "Failed", **status}),
        pod("runs", "n1", age=1, status=status),
    ]
    strategies = {FAILED: {"minPodLifetimeSeconds": 0, **args}}
    assert evicted([*NODES, *bodies], policy(strategies)) == (["p", "q"] if goes else [])


@pytest.mark.parametrize(
    ("other", "goes"),
    [
        (node("n2"), True),
        (node("n2", unschedulable=True), False),
        (node("n2", cpu="0", memory="0"), False),
    ],
)
def test_a_failed_pod_that_must_fit_elsewhere(other: Body, *, goes: bool) -> None:
    """Its replacement does."""
    failed = pod("p", "n1", "1m", "1", status={"phase": "Failed", **ended("NodeAffinity")})
    chosen = evicted([node("n1"), other, failed], policy({FAILED: None}, FIT))
    assert chosen == (["p"] if goes else [])


# Arguments that are refused.


@pytest.mark.parametrize(
    ("strategy", "args", "message"),
    [
        (LIFE, {}, "at least one filtering criterion"),
        (LIFE, {"states": ["NotAState"]}, "'NotAState' is none of Completed, "),
        (LIFE, {"maxPodLifeTimeSeconds": 1, "states": ["NotAState"]}, "is none of"),
        (LIFE, {"states": ["Running"], "namespaces": {"include": ["a"], "exclude": ["b"]}},
         "only one of include and exclude"),
        (LIFE, {"states": ["Running"], "ownerKinds": {"include": ["Job"], "exclude": ["b"]}},
         "only one of include and exclude"),
        (LIFE, {"conditions": [{}]}, "at least one of type, status, reason"),
        (RESTARTS, {"podRestartThreshold": 0}, "must be at least 1"),
        (RESTARTS, {"podRestartThreshold": 1, "states": ["Failed"]},
         "'Failed' is none of CrashLoopBackOff, Running"),
    ],
)  # fmt: skip
def test_arguments_that_are_refused(strategy: str, args: Body, message: str) -> None:
    """Where the peer refuses."""
    with pytest.raises(errors.ConfigError, match=message):
        evicted(NODES, policy({strategy: args}))


@pytest.mark.parametrize(
    "args",
    [
        {"states": ["Running"]},
        {"conditions": [{"reason": "PodCompleted"}]},
        {"maxPodLifeTimeSeconds": 600},
        {"maxPodLifeTimeSeconds": 1, "states": ["Succeeded", "Failed"]},
        {"states": ["Succeeded"], "conditions": [{"reason": "PodCompleted"}]},
        {"exitCodes": [1]},
        {"conditions": [{SINCE: 300}]},
        {"conditions": [{"reason": "PodCompleted", SINCE: 300}]},
    ],
)
def test_any_one_criterion_of_life_time_is_enough(args: Body) -> None:
    """Where the peer accepts."""
    assert evicted(NODES, policy({LIFE: args})) == []
