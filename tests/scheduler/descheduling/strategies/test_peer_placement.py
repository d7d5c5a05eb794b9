"""Kubernetes' descheduler's cases of strategies about a pod and its node, and about its neighbours.

Facts in tables: RemovePodsViolatingNodeAffinity, RemovePodsViolatingNodeTaints,
RemovePodsViolatingInterPodAntiAffinity.
"""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from tests.kit.descheduling import Body, evicted, node, pod, policy

AFFINITY, TAINTS = "RemovePodsViolatingNodeAffinity", "RemovePodsViolatingNodeTaints"
ANTI, DUPLICATES = "RemovePodsViolatingInterPodAntiAffinity", "RemoveDuplicates"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
FIT: Body = {"nodeFit": True}
CORDONED: Body = {"unschedulable": True}
CRITICAL: Body = {"namespace": "kube-system", "priority": 2_000_000_000}
LOCAL: Body = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
MIRROR: Body = {"annotations": {"kubernetes.io/config.mirror": "x"}}
DAEMON: Body = {"owner": "DaemonSet/d"}
TERMINATING: Body = {"meta": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}
TO_WEST: Body = {"spec": {"nodeSelector": {"datacenter": "west"}}}
EAST: Body = {"labels": {"datacenter": "east"}}
NODE, SPACE, TOTAL = (
    f"maxNoOfPodsToEvict{each}" for each in ("PerNode", "PerNamespace", "Total")
)  # fmt: skip


# RemovePodsViolatingNodeAffinity.

DESIRED: Body = {"labels": {"kubernetes.io/desiredNode": "yes"}}
TERM = {
    "matchExpressions": [{"key": "kubernetes.io/desiredNode", "operator": "In", "values": ["yes"]}]
}
NEEDS: dict[str, Body] = {
    REQUIRED: {REQUIRED: {"nodeSelectorTerms": [TERM]}},
    PREFERRED: {PREFERRED: [{"weight": 10, "preference": TERM}]},
}


@pytest.mark.parametrize("kind", [REQUIRED, PREFERRED])
@pytest.mark.parametrize(
    ("nodes", "more", "evictor", "limits", "goes"),
    [
        ([node("n1", **DESIRED), node("n2")], {}, {}, {}, False),
        ([node("n1"), node("n2", **DESIRED)], {}, {}, {}, True),
        ([node("n1"), node("n2", **DESIRED)], {}, {}, {NODE: 1}, True),
        ([node("n1"), node("n2", **DESIRED)], {}, {}, {NODE: 0}, False),
        ([node("n1"), node("n2", **DESIRED)], TERMINATING, {}, {NODE: 1}, False),
        ([node("n1"), node("n2", **DESIRED)], {}, {}, {SPACE: 1}, True),
        ([node("n1"), node("n2", **DESIRED)], {}, {}, {SPACE: 0}, False),
        ([node("n1"), node("n2", **DESIRED)], {}, {}, {SPACE: 1, TOTAL: 0}, False),
        ([node("n1"), node("n2", **DESIRED)], TERMINATING, {}, {SPACE: 1}, False),
        ([node("n1"), node("n2", **DESIRED, **CORDONED)], {}, FIT, {}, False),
        ([node("n2", **DESIRED), node("n3", **DESIRED, **CORDONED)], {}, FIT, {NODE: 1}, False),
    ],
)  # fmt: skip
def test_node_affinity(
    kind: str, nodes: list[Body], more: Body, evictor: Body, limits: Body, *, goes: bool
) -> None:
    """Of both kinds; two pods beside it want nothing. A node that is gone has no pods."""
    wish = {"affinity": {"nodeAffinity": NEEDS[kind]}}
    bodies = [pod("p", "n1", spec=wish, **more), pod("a", "n1", **more), pod("b", "n1", **more)]
    chosen = evicted(
        [*nodes, *bodies], policy({AFFINITY: {"nodeAffinityType": [kind]}}, evictor, **limits)
    )
    assert chosen == (["p"] if goes else [])


# RemovePodsViolatingNodeTaints.


def taint(place: int, effect: str = "NoSchedule") -> Body:
    """One of the taints."""
    return {"key": f"taint{place}", "value": f"test{place}", "effect": effect}


def bears(*taints: Body) -> Body:
    """A pod that tolerates these."""
    return {"spec": {"tolerations": list(taints)}}


FIRST, BOTH = [taint(1)], [taint(1), taint(2)]
SOFT = [taint(1, "PreferNoSchedule")]
GOOD, BAD = bears(taint(1)), bears({**taint(1), "key": "other"})
PROTECTED = [
    *(pod("critical", "n1", **CRITICAL), pod("daemon", "n1", **DAEMON)),
    *(pod("local", "n1", **LOCAL), pod("mirror", "n1", **MIRROR)),
]


@pytest.mark.parametrize(
    ("taints", "bodies", "args", "limits", "names"),
    [
        (FIRST, [pod("a", "n1", **GOOD), pod("b", "n1"), pod("c", "n1", **GOOD)], {}, {}, ["b"]),
        (FIRST, [pod("a", "n1", **GOOD), pod("b", "n1", **BAD)], {}, {}, ["b"]),
        (FIRST, [pod("a", "n1"), pod("b", "n1")], {}, {NODE: 2, TOTAL: 1}, ["a"]),
        (FIRST, [pod("a", "n1"), pod("b", "n1")], {}, {NODE: 1}, ["a"]),
        (FIRST, [pod("a", "n1"), pod("b", "n1")], {}, {SPACE: 1}, ["a"]),
        (FIRST, PROTECTED, {}, {}, []),
        (FIRST, [*PROTECTED, pod("p", "n1")], {}, {}, ["p"]),
        (SOFT, [pod("p", "n1", **bears(taint(0, "PreferNoSchedule")))], {}, {}, []),
        (
            SOFT, [pod("p", "n1", **bears(taint(0, "PreferNoSchedule")))],
            {"includePreferNoSchedule": True}, {}, ["p"],
        ),
        (FIRST, [pod("p", "n1")], {"excludedTaints": ["other", "taint1"]}, {}, []),
        (FIRST, [pod("p", "n1")], {"excludedTaints": ["taint1=test1"]}, {}, []),
        (FIRST, [pod("p", "n1")], {"excludedTaints": ["taint1=test2"]}, {}, ["p"]),
        (BOTH, [pod("p", "n1", **GOOD)], {"includedTaints": ["taint1=test1"]}, {}, []),
        (
            FIRST, [pod("a", "n1", **GOOD), pod("b", "n1"), pod("c", "n1", **BAD)],
            {"includedTaints": ["taint2=test2"]}, {}, [],
        ),
        (
            FIRST, [pod("a", "n1", **GOOD), pod("b", "n1")],
            {"includedTaints": ["taint1=test1"]}, {}, ["b"],
        ),
        (
            BOTH, [pod("a", "n1", **GOOD), pod("b", "n1", **bears(*BOTH))], {}, {}, ["a"],
        ),
    ],
)  # fmt: skip
def test_taints(
    taints: list[Body], bodies: list[Body], args: Body, limits: Body, names: list[str]
) -> None:
    """A taint that counts and is not tolerated."""
    nodes = [node("n1", taints=taints), node("n2")]
    assert evicted([*nodes, *bodies], policy({TAINTS: args}, **limits)) == names


@pytest.mark.parametrize(
    ("evictor", "names"),
    [
        ({"evictLocalStoragePods": True}, ["local"]),
        ({"evictSystemCriticalPods": True}, ["critical"]),
        ({"evictSystemCriticalPods": True, **FIT}, ["critical"]),
    ],
)
def test_taints_and_protected_pods(evictor: Body, names: list[str]) -> None:
    """As the evictor says."""
    nodes = [node("n1", taints=FIRST), node("n2")]
    assert evicted([*nodes, *PROTECTED], policy({TAINTS: None}, evictor)) == names


@pytest.mark.parametrize(
    ("other", "more"),
    [
        (node("n2", taints=[taint(2)]), {}),
        (node("n2", **EAST), TO_WEST),
        (node("n2", **CORDONED), {}),
        (node("n2", cpu="1m", memory="1", pods=1, taints=SOFT), {}),
    ],
)
def test_taints_where_the_pod_must_fit_elsewhere(other: Body, more: Body) -> None:
    """Another taint, label, a cordon, too little room."""
    bodies = [node("n1", taints=FIRST), other, pod("p", "n1", **more), pod("a", "n1", **GOOD)]
    assert evicted(bodies, policy({TAINTS: None}, FIT)) == []
    assert evicted(bodies, policy({TAINTS: None})) == ["p"]


@pytest.mark.parametrize(
    ("toleration", "tainted", "goes"),
    [
        ({"key": "foo", "operator": "Exists", "effect": "NoSchedule"}, {"key": "foo"}, False),
        ({"key": "foo", "operator": "Exists", "effect": "NoSchedule"}, {}, False),
        ({"operator": "Exists", "effect": "NoSchedule"}, {}, False),
        ({"key": "foo", "operator": "Equal", "value": "bar", "effect": "NoSchedule"}, {}, False),
        ({"key": "foo", "operator": "Equal", "value": "no", "effect": "NoSchedule"}, {}, True),
        ({"key": "foo", "operator": "Equal", "value": "bar", "effect": "NoExecute"}, {}, True),
    ],
)  # fmt: skip
def test_taints_and_tolerations(toleration: Body, tainted: Body, *, goes: bool) -> None:
    """By key, value, operator and effect."""
    on = {"effect": "NoSchedule", **(tainted or {"key": "foo", "value": "bar"})}
    bodies = [node("n1", taints=[on]), node("n2"), pod("p", "n1", **bears(toleration))]
    assert evicted(bodies, policy({TAINTS: None})) == (["p"] if goes else [])


# RemovePodsViolatingInterPodAntiAffinity.


def shuns(key: str, value: str, over: str = "region", **more: Any) -> Body:
    """A pod that is to be beside no other with this label."""
    rule = {
        "labelSelector": {
            "matchExpressions": [{"key": key, "operator": "In", "values": [value]}]
        },
        "topologyKey": over,
    }  # fmt: skip
    return {"spec": {"affinity": {"podAntiAffinity": {REQUIRED: [rule]}}}, **more}


MAIN: Body = {"labels": {"region": "main-region"}}
FOO: Body = {"labels": {"foo": "bar"}}
FOO_1: Body = {"labels": {"foo1": "bar1"}}
SHY = shuns("foo", "bar")
FOUR = [
    *(pod("p1", "n1", **SHY), pod("p2", "n1", **FOO)),
    *(pod("p3", "n1", **SHY), pod("p4", "n1", **SHY)),
]
NO_OWNER: Body = {"owner": ""}
HOME = node("n1", **MAIN)


@pytest.mark.parametrize(
    ("bodies", "evictor", "limits", "names"),
    [
        ([node("n2"), *FOUR], {}, {}, ["p1", "p3", "p4"]),
        ([node("n2"), *FOUR], {}, {NODE: 3}, ["p1", "p3", "p4"]),
        ([node("n2"), *FOUR], {}, {SPACE: 3}, ["p1", "p3", "p4"]),
        ([node("n2"), *FOUR], {}, {SPACE: 3, TOTAL: 1}, ["p1"]),
        # Without the least important one of three, the others get along.
        (
            [node("n2"), pod("p5", "n1", priority=100, **shuns("foo1", "bar1", **FOO)),
             pod("p6", "n1", priority=50, **shuns("foo1", "bar1", **FOO)),
             pod("p7", "n1", priority=0, **shuns("foo", "bar", **FOO_1))],
            {}, {}, ["p7"],
        ),
        # Of two, one that may go: beside a critical one.
        (
            [node("n2"), pod("p1", "n1", **SHY),
             pod("c", "n1", priority=2_000_000_000, **FOO, **NO_OWNER)],
            {}, {NODE: 1}, ["p1"],
        ),
        (
            [node("n2", **EAST), pod("p8", "n1", **TO_WEST, **NO_OWNER),
             pod("c", "n1", priority=2_000_000_000, **FOO, **NO_OWNER)],
            FIT, {NODE: 1}, [],
        ),
        (
            [node("n2", **CORDONED), pod("p8", "n1", **TO_WEST, **NO_OWNER),
             pod("c", "n1", priority=2_000_000_000, **FOO, **NO_OWNER)],
            FIT, {NODE: 1}, [],
        ),
        (
            [node("n2"), pod("p9", "n1", **SHY, **FOO, **TERMINATING),
             pod("p10", "n1", **SHY, **FOO, **TERMINATING)],
            {}, {}, [],
        ),
        ([node("n2", cpu="2m", memory="2", pods=1), *FOUR], FIT, {NODE: 3}, []),
        # Another node of the same region.
        ([node("n2", cpu="200m", **MAIN), pod("p1", "n1", **SHY), pod("p11", "n2", **FOO)],
         {}, {}, ["p1"]),
    ],
)  # fmt: skip
def test_anti_affinity(bodies: list[Body], evictor: Body, limits: Body, names: list[str]) -> None:
    """A pod goes for its own rules, and then no longer counts."""
    assert evicted([HOME, *bodies], policy({ANTI: None}, evictor, **limits)) == names


# Arguments that are refused.

NEEDED: dict[str, Body] = {
    AFFINITY: {"nodeAffinityType": [REQUIRED]},
    TAINTS: {},
    ANTI: {},
    DUPLICATES: {},
    "PodLifeTime": {"maxPodLifeTimeSeconds": 1},
    "RemoveFailedPods": {},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 1},
    "RemovePodsViolatingTopologySpreadConstraint": {},
}


@pytest.mark.parametrize(
    ("strategy", "args", "message"),
    [
        *(
            (name, {**least, "namespaces": {"include": ["default"], "exclude": ["kube-system"]}},
             "only one of include and exclude")
            for name, least in NEEDED.items()
        ),
        *(
            (name, {**least, "labelSelector": {"matchExpressions": [{"operator": "In"}]}},
             "labelSelector")
            for name, least in NEEDED.items() if name != DUPLICATES
        ),
        (AFFINITY, {"nodeAffinityType": []}, "nodeAffinityType: is needed"),
        (AFFINITY, {"nodeAffinityType": ["requiredDuringSchedulingRequiredDuringExecution"]},
         "is neither"),
        (TAINTS, {"excludedTaints": ["a"], "includedTaints": ["b=c"]},
         "only one of includedTaints and excludedTaints"),
    ],
)  # fmt: skip
def test_arguments_that_are_refused(strategy: str, args: Body, message: str) -> None:
    """The peer accepts an affinity that does not exist, and does nothing."""
    with pytest.raises(errors.ConfigError) as caught:
        evicted([node("n1"), node("n2")], policy({strategy: args}))
    assert message in str(caught.value)
