"""Prepared claims on the agent's page: what each has, and who uses it."""

from __future__ import annotations

import dataclasses

from koordlet.cli import explain_pod
from koordlet.model import cpuset, ledger, prepared_claim
from koordlet.report import claims_json, node_json, view
from tests.kit import prepared_claims, views

CACHE = prepared_claim.CacheShare(request="cache", device="cache-0", cache=0, ways=4, percent=20)


def view_with_claim() -> view.ReportView:
    """A node with a claim, its pod, and another pod."""
    claim = prepared_claims.claim("a", prepared_claims.cpus("0-3", 2), CACHE)
    user = prepared_claims.using("db", {"main": ("a/cpus",), "side": ()})
    row = ledger.Claim(
        owner=ledger.Owner.LSE,
        cpus=cpuset.CPUSet.parse("2-3"),
        holder=claim.holder,
        policy="exclusive_cpus",
        reason="resource claim",
        uid=claim.uid,
    )
    base = views.view((user, prepared_claims.using("web", {"main": ()})))
    plan = dataclasses.replace(base.plan, ledger=ledger.Ledger(claims=(row,)))
    snapshot = dataclasses.replace(base.snapshot, claims=(claim,))
    return dataclasses.replace(base, plan=plan, snapshot=snapshot)


def test_a_claim_with_its_devices_and_containers() -> None:
    """In the node's document; a pod's has its own claims."""
    expected = {
        "namespace": "t",
        "name": "a",
        "uid": "claim-a",
        "since": 1.0,
        "cpus": "2-3",
        "devices": [
            {"request": "cpus", "device": "numa-0", "cpus": 2},
            {"request": "cache", "device": "cache-0", "cache": 0, "ways": 4, "mbaPercent": 20},
        ],
        "usedBy": [{"pod": "t/db", "container": "main"}],
    }
    now = view_with_claim()
    assert node_json.document(now, "1.0")["claims"] == [expected]
    user, other = now.snapshot.pods
    assert claims_json.of_pod(now, user) == [expected]
    assert claims_json.of_pod(now, other) == []


def test_a_pods_explanation_names_its_claims() -> None:
    """With amounts in words."""
    document = node_json.pod(view_with_claim(), "t/db")
    assert document is not None
    lines = list(explain_pod.lines(document))

    assert (
        "  claim      a: CPUs 2-3 alone: 2 CPUs of numa-0,"
        " 4 ways alone, 20 % of bandwidth at most of cache-0"
    ) in lines
