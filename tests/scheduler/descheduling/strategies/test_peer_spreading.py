"""Kubernetes' descheduler's cases of RemovePodsViolatingTopologySpreadConstraint.

Facts in tables: nodes in zones, pods on them, how many go, and who where that is not all the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from tests.kit.descheduling import Body, evicted, node, pod, policy

NAME = "RemovePodsViolatingTopologySpreadConstraint"
SOFT = "ScheduleAnyway"
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"


def rule(skew: int = 1, over: str = ZONE, when: str = "DoNotSchedule", **more: Any) -> Body:
    """A constraint of pods with the label of all."""
    return {
        "maxSkew": skew, "topologyKey": over, "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"foo": "bar"}}, **more,
    }  # fmt: skip


def shape(*rules: Body, owner: str = "ReplicaSet/rs", labels: Body | None = None,
          terminating: bool = False, **spec: Any) -> Body:  # fmt: skip
    """What pods of one shape have in common."""
    ends = {"meta": {"deletionTimestamp": "2020-01-01T00:00:00Z"}} if terminating else {}
    return {
        "owner": owner,
        "labels": {"foo": "bar", **(labels or {})},
        "spec": {"topologySpreadConstraints": list(rules), **spec},
        **ends,
    }


#: How many, where, and of which shape.
Group = tuple[int, str, Body]


def pods(*groups: Group) -> list[Body]:
    """Pods ``p0``, ``p1``, …."""
    every = [(on, more) for count, on, more in groups for _ in range(count)]
    return [pod(f"p{place}", on, **more) for place, (on, more) in enumerate(every)]


def zone(name: str, **more: Any) -> Body:
    """The label of a zone, and other fields of a node."""
    return {**more, "labels": {ZONE: name, **more.get("labels", {})}}


A, B, C, D = (node(name, **zone(name)) for name in "abcd")
HARD, PLAIN, BARE = shape(rule()), shape(), shape(owner="")


def sizes(*counts: int, skew: int = 1) -> list[Body]:
    """Zones a, b, … with so many pods, of which the first has the constraint."""
    groups = [(count, name, PLAIN) for count, name in zip(counts, "abcd", strict=False)]
    bodies = pods(*groups)
    bodies[0]["spec"] |= shape(rule(skew))["spec"]
    return [*(A, B, C, D)[: len(counts)], *bodies]


@pytest.mark.parametrize(
    ("bodies", "args", "count"),
    [
        (sizes(2, 1), {}, 0),
        (sizes(3, 1), {}, 1),
        (sizes(3, 1), {"namespaces": {"exclude": ["kube-system"]}}, 1),
        (sizes(4, 0), {"namespaces": {"exclude": ["default"]}}, 0),
        (sizes(5, 2), {}, 1),
        (sizes(4, 0), {}, 2),
        (sizes(0, 1, 100), {}, 66),
        (sizes(0, 1, 3, 5), {}, 3),
        (sizes(2, 6, skew=2), {}, 1),
        (sizes(8, 7, 0), {}, 5),
        (sizes(5, 5, 5), {}, 0),
        *(
            ([A, B, *pods((1, "a", shape(rule(when=SOFT))), (2, "a", PLAIN), (1, "b", PLAIN))],
             {"constraints": actions}, count)
            for actions, count in (
                (["DoNotSchedule", SOFT], 1), ([SOFT], 1), (["DoNotSchedule"], 0), ([], 0))
        ),
        ([A, B, *pods((1, "a", shape(rule(), owner="")), (2, "a", BARE), (1, "b", BARE))], {}, 0),
        # The labels of the strategy.
        *(
            (sizes(2, 0), {"labelSelector": {"matchExpressions": [
                {"key": "foo", "operator": operator, "values": [value]}]}}, count)
            for operator, value, count in (
                ("In", "baz", 0), ("In", "bar", 1), ("NotIn", "baz", 1))
        ),
        # Two of four leave already.
        ([A, B, *pods((2, "a", HARD), (2, "a", shape(rule(), terminating=True)), (2, "b", HARD))],
         {}, 0),
    ],
)  # fmt: skip
def test_sizes(bodies: list[Body], args: Body, count: int) -> None:
    """As many as leave no more skew than is allowed."""
    assert len(evicted(bodies, policy({NAME: args}))) == count


# Three nodes of Linux, three or four of Windows; each is its own domain.


def windows(*counts: int, on: str = "w0") -> list[Body]:
    """Pods of Windows on its nodes; ``on``: what those of the first select, of their nodes."""
    constraint = rule(over=HOST)
    some = shape(constraint, nodeSelector={"os": "windows"})
    first = some if on == "w0" else shape(constraint, nodeSelector={HOST: on})
    groups = [
        (count, f"n{place + 4}", some if place else first) for place, count in enumerate(counts)
    ]
    return [
        *(node(f"n{place}", labels={"os": "linux"}) for place in (1, 2, 3)),
        *(node(f"n{place + 4}", labels={"os": "windows"}) for place in range(len(counts))),
        *pods(*groups),
    ]


@pytest.mark.parametrize(
    ("bodies", "evictor", "count"),
    [
        (windows(3, 3, 2), {}, 0),
        (windows(3, 3, 2, 0), {}, 2),
        (windows(4, 3, 1), {}, 1),
        (windows(4, 3, 1, on="n4"), {"nodeFit": True}, 0),
    ],
)
def test_nodes_that_the_pods_do_not_select_are_no_domains(
    bodies: list[Body], evictor: Body, count: int
) -> None:
    """They are short of nothing."""
    assert len(evicted(bodies, policy({NAME: {}}, evictor))) == count


TAINT = {"key": "hardware", "value": "gpu", "effect": "NoSchedule"}
TOLERATES: Body = {"tolerations": [{**TAINT, "operator": "Equal"}]}
IN_A: Body = {"nodeSelector": {ZONE: "a"}}
BOSTON: Body = {"nodeSelector": {"region": "boston"}}
NOWHERE: Body = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "foo", "operator": "In", "values": ["bar"]}]}
                ]
            }
        }
    }
}
TAINTED = node("b", **zone("b", taints=[TAINT]))
AVOIDED = node("b", **zone("b", taints=[{**TAINT, "effect": "PreferNoSchedule"}]))
FIT, BLIND = {"nodeFit": True}, {"topologyBalanceNodeFit": False}
SMALL = [node("a", "250m", **zone("a")), node("b", "1", **zone("b")), node("c", "1", **zone("c"))]
TWO_THREE_FOUR = pods((2, "a", HARD), (3, "b", HARD), (4, "c", HARD))
PAIRS = [
    node(f"{name}{place}", cpu, **zone(name))
    for place, cpus in ((1, ("150m", "1", "1")), (2, ("50m", "1", "1")))
    for name, cpu in zip("abc", cpus, strict=True)
]
EVEN = [node(f"{name}{place}", "1", **zone(name)) for name in "ab" for place in (1, 2)]
HASH = "pod-template-hash"
BY_HASH = rule(matchLabelKeys=[HASH])
ANY = rule(nodeAffinityPolicy="Ignore")
ARM: Body = {"kubernetes.io/arch": "arm64"}


@pytest.mark.parametrize(
    ("bodies", "args", "evictor", "names"),
    [
        # Of four, three can be nowhere else.
        (
            [A, B, *pods((2, "a", shape(rule(), **IN_A)), (1, "a", shape(rule(), **NOWHERE)),
                         (1, "a", HARD))],
            {}, FIT, ["p3"],
        ),
        # A selector that both zones meet.
        (
            [node("a", **zone("a", labels={"region": "boston"})),
             node("b", **zone("b", labels={"region": "boston"})),
             *pods((1, "a", shape(rule(), **BOSTON)), (3, "a", shape(**BOSTON)))],
            {}, {}, 2,
        ),
        ([TAINTED, node("d", **zone("d")), *pods((2, "b", shape(rule(2))), (6, "d", PLAIN))],
         {}, FIT, []),
        ([node("b", "200m", **zone("b")), D, *pods((2, "b", shape(rule(2))), (6, "d", PLAIN))],
         {}, FIT, []),
        # A taint that one of two tolerates, that none does, that only warns.
        ([A, TAINTED, *pods((1, "a", shape(rule(), **TOLERATES)), (1, "a", shape(**IN_A)))],
         {}, {}, ["p0"]),
        ([A, TAINTED, *pods((1, "a", HARD), (1, "a", shape(**IN_A)))], {}, {}, []),
        ([A, TAINTED, *pods((1, "a", HARD), (1, "a", shape(**IN_A)))], {}, FIT, []),
        ([A, AVOIDED, *pods((1, "a", HARD), (1, "a", shape(**IN_A)))], {}, {}, ["p0"]),
        # Too little CPU in the zone that is short.
        ([*SMALL, *TWO_THREE_FOUR], {}, FIT, []),
        (
            [*PAIRS, *pods((1, "a1", HARD), (1, "b1", HARD), (1, "b2", HARD), (2, "c1", HARD),
                           (1, "c2", HARD))],
            {}, FIT, [],
        ),
        ([*EVEN, *pods((1, "a1", HARD), (4, "a2", HARD), (2, "b1", HARD), (1, "b2", HARD))],
         {}, FIT, ["p4"]),
        # Replicas of one ReplicaSet, and of two.
        ([A, B, *pods((2, "a", shape(BY_HASH, labels={HASH: "foo"})))], {}, {}, ["p1"]),
        (
            [A, B, *pods((1, "a", shape(BY_HASH, labels={HASH: "foo"})),
                         (1, "a", shape(BY_HASH, labels={HASH: "bar"})))],
            {}, {}, [],
        ),
        # The affinity of pods is not to count: one of two is in its zone by its selector.
        (
            [*(node(name, "1", **zone(name, labels=ARM)) for name in "abc"),
             *pods((1, "a", shape(ANY, nodeSelector=ARM)),
                   (1, "a", shape(ANY, nodeSelector={ZONE: "a", **ARM})),
                   (1, "b", shape(ANY, nodeSelector=ARM)))],
            {}, {}, ["p0"],
        ),
    ],
)  # fmt: skip
def test_who_can_go(bodies: list[Body], args: Body, evictor: Body, names: list[str] | int) -> None:
    """A pod that fits a domain that is short."""
    chosen = evicted(bodies, policy({NAME: args}, evictor))
    assert (len(chosen) if isinstance(names, int) else chosen) == names


def test_a_pod_goes_although_no_domain_has_room() -> None:
    """So that a cluster grows; but not with ``nodeFit``, which asks for spreading, too.

    The peer's asks for any node with room.
    """
    bodies = [*SMALL, *TWO_THREE_FOUR]
    assert len(evicted(bodies, policy({NAME: BLIND}))) == 1
    assert evicted(bodies, policy({NAME: BLIND}, FIT)) == []


def test_two_constraints_of_the_same_pods() -> None:
    """Hosts are even, zones are not: three and one."""
    both = shape(rule(when=SOFT), rule(over=HOST))
    names = ("a1", "a2", "a3", "b1", "b2", "b3")
    bodies = [
        *(node(name, **zone(name[0])) for name in names),
        *pods(*((1, name, both) for name in names[:4])),
    ]
    args = {"constraints": ["DoNotSchedule", SOFT]}
    assert len(evicted(bodies, policy({NAME: args}))) == 1
    assert evicted(bodies, policy({NAME: {}})) == []


def test_nodes_that_the_affinity_excludes_are_no_domains() -> None:
    """Two hosts with two pods each are even, whatever is tainted beside them."""
    app = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [app]}}
    service = shape(rule(over=HOST), affinity={"nodeAffinity": rules})
    bodies = [
        node("master", **zone("a", taints=[{"key": "master", "effect": "NoSchedule"}])),
        node("infra", **zone("a", taints=[{"key": "infra", "effect": "NoSchedule"}])),
        *(node(name, **zone(name[-1], labels={"app": "x"})) for name in ("app-a", "app-b")),
        *pods((2, "app-a", service), (2, "app-b", service)),
    ]
    assert evicted(bodies, policy({NAME: {}}, FIT)) == []


def test_a_constraint_that_does_not_exist_is_refused() -> None:
    """The peer does, too."""
    with pytest.raises(errors.ConfigError) as caught:
        evicted([A, B], policy({NAME: {"constraints": ["Maybe"]}}))
    assert "Maybe" in str(caught.value)
