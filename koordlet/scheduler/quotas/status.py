"""What the scheduler writes back to an ElasticQuota: amounts that differ from the stored ones.

Covers: annotations and ``status.used`` of one quota. Does not cover: when, and writing
(``loop.quota_controller``).

Zeros count for nothing: an amount of zero and one that is missing are the same.
"""

from __future__ import annotations

import json
from typing import Any

from koordlet.kubeapi import elastic_quotas
from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.scheduler.quotas.amounts import Amounts, quantities
from koordlet.scheduler.quotas.tree import QuotaNode


def amounts(node: QuotaNode, runtime: Amounts) -> dict[str, Amounts]:
    """The amounts of a quota, by the peer's names for them."""
    return {
        "runtime": runtime,
        "request": node.request,
        "child-request": node.child_request,
        "guaranteed": node.guaranteed,
        "allocated": node.allocated,
        "non-preemptible-request": node.non_preemptible_request,
        "non-preemptible-used": node.non_preemptible_used,
    }


def changes(stored: ElasticQuota, node: QuotaNode, runtime: Amounts) -> dict[str, Any]:
    """What of a merge patch differs from the stored object: annotations, and ``status``."""
    notes: dict[str, str] = {}
    for amount, known in amounts(node, runtime).items():
        wanted = quantities(known)
        if _stored(stored.reported.get(amount, "")) != wanted:
            notes[elastic_quotas.REPORTED[amount]] = json.dumps(
                wanted, sort_keys=True, separators=(",", ":")
            )
    patch: dict[str, Any] = {"metadata": {"annotations": notes}} if notes else {}
    used = dict(node.used)
    if {name: much for name, much in stored.used.items() if much} != used:
        # A merge patch removes what is null.
        gone = dict.fromkeys(stored.used.keys() - used.keys())
        patch["status"] = {"used": {**gone, **quantities(used)}}
    return patch


def _stored(text: str) -> object:
    """What an annotation says, zeros left out; one that cannot be read equals nothing."""
    try:
        listed = json.loads(text) if text else {}
    except ValueError:
        return None
    if not isinstance(listed, dict):
        return None
    return {name: spelled for name, spelled in listed.items() if spelled not in {"0", 0}}
