"""A pod with scheduling gates: only what makes it stricter may change, as an API server has it."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import refusals
from koordlet.scheduler.standalone import gated_pod
from koordlet.scheduler.store import merging

Body = dict[str, Any]
NEEDS = "requiredDuringSchedulingIgnoredDuringExecution"
WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
GATE, OTHER = {"name": "example.com/quota"}, {"name": "example.com/license"}
ZONE = {"key": "zone", "operator": "In", "values": ["a", "b"]}
DISK = {"key": "disk", "operator": "Exists"}
ANTI = {"podAntiAffinity": {NEEDS: [{"topologyKey": "zone"}]}}


def gated(*, gates: list[Body] | None = None, terms: list[Body] | None = None, **spec: Any) -> Body:
    """A pod; ``terms`` of its required node affinity."""
    affinity = {"nodeAffinity": {NEEDS: {"nodeSelectorTerms": terms}}} if terms else {}
    known = {"schedulingGates": [GATE, OTHER] if gates is None else gates, "containers": []}
    return {"metadata": {"name": "p"}, "spec": {**known, "affinity": affinity, **spec}}


def term(*expressions: Body) -> Body:
    """One alternative of node affinity."""
    return {"matchExpressions": list(expressions)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (gated(), gated(gates=[])),
        (gated(), gated(gates=[OTHER])),
        (gated(), gated(nodeSelector={"disk": "ssd"})),
        (gated(nodeSelector={"a": "1"}), gated(nodeSelector={"a": "1", "b": "2"})),
        (gated(), gated(terms=[term(ZONE), term(DISK)])),
        (gated(terms=[term(ZONE)]), gated(terms=[term(ZONE, DISK)])),
        (
            gated(affinity={"nodeAffinity": {WISHES: [{"weight": 1, "preference": term(ZONE)}]}}),
            gated(affinity={"nodeAffinity": {WISHES: [{"weight": 9, "preference": term(DISK)}]}}),
        ),
        (
            gated(affinity={"nodeAffinity": {WISHES: [{"weight": 1, "preference": term(ZONE)}]}}),
            gated(),
        ),
        (gated(affinity=ANTI), gated(affinity={**ANTI, "nodeAffinity": {}})),
    ],
)
def test_what_is_stricter_or_preferred_is_taken(old: Body, new: Body) -> None:
    """The stored pod becomes the one that was handed in."""
    merged = merging.merge(old, gated_pod.patch(old, new))
    node = (new["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    assert merged["spec"]["schedulingGates"] == new["spec"]["schedulingGates"]
    assert merged["spec"].get("nodeSelector", {}) == new["spec"].get("nodeSelector", {})
    assert merged["spec"]["affinity"].get("nodeAffinity", {}) == node
    assert merged["spec"]["affinity"].get("podAntiAffinity") == old["spec"]["affinity"].get(
        "podAntiAffinity"
    )


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (gated(gates=[GATE]), gated(), "'example.com/license' is new"),
        (gated(nodeSelector={"a": "1"}), gated(), "may only gain keys, and 'a' is gone"),
        (gated(nodeSelector={"a": "1"}), gated(nodeSelector={"a": "2"}), "'a' is gone or another"),
        (gated(terms=[term(ZONE)]), gated(), "1 terms cannot become 0"),
        (gated(terms=[term(ZONE)]), gated(terms=[term(ZONE), term(DISK)]), "cannot become 2"),
        (gated(terms=[term(ZONE, DISK)]), gated(terms=[term(ZONE)]), "may only gain requirements"),
        (gated(terms=[term(ZONE)]), gated(terms=[term(DISK, ZONE)]), "at its end"),
        (gated(terms=[{}]), gated(terms=[term(ZONE)]), "may only gain requirements"),
        (gated(), gated(containers=[{"name": "c"}]), "spec.containers: of a pod with gates only"),
        (gated(), gated(affinity=ANTI), "spec.affinity: of a pod with gates only"),
        (gated(affinity=ANTI), gated(), "spec.affinity: of a pod with gates only"),
    ],
)
def test_what_is_looser_or_another_wish_is_refused(old: Body, new: Body, why: str) -> None:
    """The fault names the field."""
    with pytest.raises(refusals.Invalid, match=why):
        gated_pod.patch(old, new)
