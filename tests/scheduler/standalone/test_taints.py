"""Conditions become taints, taints drive pods away, tolerations hold them back for a while."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.standalone import taints

Body = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


def node(*conditions: tuple[str, str], has: list[Body] | None = None) -> Body:
    """A node with conditions and taints."""
    several = [{"type": kind, "status": status} for kind, status in conditions]
    return {"spec": {"taints": has or []}, "status": {"conditions": several}}


def keys(entries: list[Body] | None) -> set[tuple[str, str]]:
    """Keys without their prefix, and effects."""
    assert entries is not None
    return {(taint["key"].rpartition("/")[2], taint["effect"]) for taint in entries}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("MemoryPressure", "True"), {("memory-pressure", "NoSchedule")}),
        (("DiskPressure", "True"), {("disk-pressure", "NoSchedule")}),
        (("PIDPressure", "True"), {("pid-pressure", "NoSchedule")}),
        (("Ready", "False"), {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}),
        (("Ready", "Unknown"), {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}),
    ],
)
def test_each_condition_has_its_taints(
    condition: tuple[str, str], expected: set[tuple[str, str]]
) -> None:
    """Those of Kubernetes' node controllers."""
    assert keys(taints.wanted(node(condition), NOW)) == expected


def test_other_taints_stay_and_ours_go() -> None:
    """A condition that is over takes its taints with it; those of people are theirs."""
    own = {"key": "mine", "effect": "NoSchedule"}
    assert taints.wanted(node(("Ready", "True"), has=[own, NOT_READY]), NOW) == [own]
    assert taints.wanted(node(("Ready", "True"), has=[own]), NOW) is None


def test_what_lasts_keeps_its_time() -> None:
    """How long a pod bears it is counted from then."""
    has = [{**NOT_READY, "timeAdded": "2025"}, {**NOT_READY, "effect": "NoSchedule"}]
    assert taints.wanted(node(("Ready", "False"), has=has), NOW) is None


def pod(*tolerations: Body) -> Body:
    """A pod that bears this much."""
    return {"spec": {"tolerations": list(tolerations)}}


def test_when_a_pod_leaves() -> None:
    """At once, after the shortest of its patiences, or never; NoSchedule drives nobody away."""
    since = {**NOT_READY, "timeAdded": "1970-01-01T00:01:40Z"}
    bears = {"key": NOT_READY["key"], "operator": "Exists"}

    assert taints.leaves(pod(), [since], 500.0) == 500.0
    assert taints.leaves(pod({**bears, "tolerationSeconds": 300}), [since], 500.0) == 400.0
    assert taints.leaves(pod(bears), [since], 500.0) is None
    assert taints.leaves(pod(), [{**since, "effect": "NoSchedule"}], 500.0) is None
    both = ({**bears, "tolerationSeconds": 9}, {"operator": "Exists", "tolerationSeconds": 60})
    assert taints.leaves(pod(*both), [since], 500.0) == 109.0


def test_what_every_pod_is_given() -> None:
    """Five minutes for a node that is not heard; memory pressure, for who asks for something."""
    plain = taints.tolerations({}, best_effort=True)
    assert [toleration["tolerationSeconds"] for toleration in plain] == [300, 300]
    assert len(taints.tolerations({}, best_effort=False)) == 3
    own = {"tolerations": [{"operator": "Exists"}]}
    assert taints.tolerations(own, best_effort=False) == own["tolerations"]


def test_a_taint_that_ends_pods_says_since_when_it_is_there() -> None:
    """Handed in again it keeps its time, another value is another taint; others have no time."""
    other = {"key": "k", "effect": "NoSchedule"}
    made = taints.dated({"name": "d", "taints": [NOT_READY, other]}, {}, NOW)
    assert made == {"name": "d", "taints": [{**NOT_READY, "timeAdded": NOW}, other]}
    later = "2026-01-02T00:00:00Z"
    assert taints.dated({"taints": [NOT_READY]}, made, later)["taints"][0]["timeAdded"] == NOW
    valued = {**NOT_READY, "value": "v"}
    assert taints.dated({"taints": [valued]}, made, later)["taints"][0]["timeAdded"] == later
    own = {**NOT_READY, "timeAdded": "2025-01-01T00:00:00Z"}
    assert taints.dated({"taints": [own]}, made, later)["taints"] == [own]
    assert taints.dated({"name": "d"}, made, later) == {"name": "d"}
