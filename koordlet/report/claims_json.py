"""Prepared resource claims as ``v1`` documents: what each has, and which containers use it. Pure.

Covers: the claims of ``/api/v1/node`` and of ``/api/v1/pod``.
Does not cover: what is offered to claims (``objects.resource_slices``).
"""

from __future__ import annotations

from typing import Any

from koordlet.model import pod, prepared_claim, snapshot
from koordlet.report import documents, view


def of_node(now: view.ReportView) -> list[dict[str, Any]]:
    """All claims of the node, by the time of their preparation."""
    return [_claim(now, claim) for claim in now.snapshot.claims]


def of_pod(now: view.ReportView, workload: pod.Pod) -> list[dict[str, Any]]:
    """Those that a pod's containers use."""
    mine = f"{workload.namespace}/{workload.name}"
    return [each for each in of_node(now) if any(u["pod"] == mine for u in each["usedBy"])]


def _claim(now: view.ReportView, claim: prepared_claim.PreparedClaim) -> dict[str, Any]:
    row = now.plan.ledger.of(claim.uid)
    return {
        **documents.fields(claim, "namespace name uid since"),
        "cpus": None if row is None else str(row.cpus),
        "devices": [
            *documents.each(claim.cpus, "request device cpus=count"),
            *documents.each(claim.caches, "request device cache ways mbaPercent=percent"),
        ],
        "usedBy": _users(now.snapshot, claim),
    }


def _users(seen: snapshot.Snapshot, claim: prepared_claim.PreparedClaim) -> list[dict[str, str]]:
    return [
        {"pod": workload.key, "container": box.name}
        for workload in seen.pods
        for box in workload.containers
        if box.claims and claim.of(workload.namespace, box.claims, claim.shares)
    ]
