"""Domains that have too many of some pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.descheduling import Body, evicted, node, pod, policy

NAME = "RemovePodsViolatingTopologySpreadConstraint"


def spread(skew: int = 1, when: str = "DoNotSchedule", **more: Any) -> Body:
    """A constraint over zones."""
    constraint = {
        "maxSkew": skew,
        "topologyKey": "zone",
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"foo": "bar"}},
        **more,
    }
    return {"topologySpreadConstraints": [constraint]}


def domains(sizes: tuple[int, ...], spec: Body, **more: Any) -> list[Body]:
    """One node for each zone, with so many pods; the first pod has the constraint."""
    bodies = [node(f"n{zone}", labels={"zone": f"z{zone}"}) for zone in range(len(sizes))]
    count = 0
    for zone, size in enumerate(sizes):
        for _ in range(size):
            own = {"spec": spec} if not count else {}
            bodies.append(pod(f"p{count}", f"n{zone}", labels={"foo": "bar"}, **{**own, **more}))
            count += 1
    return bodies


@pytest.mark.parametrize(
    ("sizes", "skew", "moves"),
    [
        ((2, 1), 1, 0),
        ((3, 1), 1, 1),
        ((5, 2), 1, 1),
        ((4, 0), 1, 2),
        ((3, 3, 3, 0, 0), 1, 3),
        ((6, 0, 0), 1, 4),
        ((2, 1, 0), 2, 0),
        ((2, 2, 2, 6), 2, 2),
    ],
)
def test_so_many_pods_move_that_no_skew_is_left(
    sizes: tuple[int, ...], skew: int, moves: int
) -> None:
    """Sizes and moves of upstream's table."""
    assert len(evicted(domains(sizes, spread(skew)), policy({NAME: {}}))) == moves


def test_soft_constraints_count_where_they_are_wanted() -> None:
    """By default only hard ones do."""
    bodies = domains((3, 1), spread(when="ScheduleAnyway"))
    assert evicted(bodies, policy({NAME: {}})) == []
    assert len(evicted(bodies, policy({NAME: {"constraints": ["ScheduleAnyway"]}}))) == 1


def test_protected_pods_are_counted_and_stay() -> None:
    """The peer does not count them, so that it sees no skew, or a false one."""
    bodies = domains((4, 0), spread())
    for body in bodies:
        if body["metadata"]["name"] in {"p2", "p3"}:
            del body["metadata"]["ownerReferences"]
    assert sorted(evicted(bodies, policy({NAME: {}}))) == ["p0", "p1"]
    assert evicted(domains((4, 0), spread(), owner=""), policy({NAME: {}})) == []


def test_a_pod_that_fits_no_smaller_domain_stays_and_counts_as_moved() -> None:
    """Three pods must be in the first zone: one of two moves is made."""
    bodies = domains((4, 0), spread())
    for body in bodies[2:]:
        body["spec"] |= spread(nodeAffinityPolicy="Ignore")
    for body in bodies[2:5]:
        body["spec"]["nodeSelector"] = {"zone": "z0"}
    assert evicted(bodies, policy({NAME: {}})) == ["p3"]
    blind = {"topologyBalanceNodeFit": False}
    assert len(evicted(bodies, policy({NAME: blind}))) == 2


def test_nodes_that_the_policies_leave_out_are_no_domains() -> None:
    """A zone that the pod's selector excludes is not short of pods."""
    bodies = domains((2, 0), {**spread(), "nodeSelector": {"zone": "z0"}})
    assert evicted(bodies, policy({NAME: {}})) == []
    tainted = domains((2, 0), spread(nodeTaintsPolicy="Honor"))
    tainted[1]["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    assert evicted(tainted, policy({NAME: {"topologyBalanceNodeFit": False}})) == []


@pytest.mark.parametrize(
    ("sizes", "beside", "moves"),
    [
        # The only node of its domain is left out; with pods it is a domain all the same.
        ((3, 0), 0, 1),
        ((2, 1), 0, 0),
        # A node that counts beside it: all pods of the domain do.
        ((3, 0), 1, 1),
    ],
)
def test_pods_on_nodes_that_the_policies_leave_out_count(
    sizes: tuple[int, ...], beside: int, moves: int
) -> None:
    """They may leave as others may."""
    bodies = domains(sizes, spread(nodeTaintsPolicy="Honor"))
    bodies[0]["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
    bodies += [node(f"more{number}", labels={"zone": "z0"}) for number in range(beside)]
    assert len(evicted(bodies, policy({NAME: {}}))) == moves


def test_the_least_important_go_first() -> None:
    """Of one domain, lower priority before higher."""
    bodies = domains((3, 1), spread())
    for body, priority in zip(bodies[2:], (5, 1, 9, 0), strict=True):
        body["spec"]["priority"] = priority
    assert evicted(bodies, policy({NAME: {}})) == ["p1"]
