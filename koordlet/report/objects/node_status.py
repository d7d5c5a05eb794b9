"""The Node's status: batch and mid resources, and our conditions. Pure.

Covers: what shall stand there, what of it differs enough to be written.
Does not cover: when it is written (``report.writing``), computing the offer (``policy``).

Rules:
1. Our conditions have a prefix: the kubelet owns ``MemoryPressure`` and its like, and would write
   over them. A condition that we do not see any more is ``False``, not gone.
2. A resource that is not offered any more is taken away, which is how the peer degrades.
3. A resource is written when it comes, goes, or moves by more than a part of its old value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from koordlet.model import decision, resources
from koordlet.report import view
from koordlet.report.objects import metric_object

PREFIX = "koordlet.io/"
ORIGIN = "node.koordinator.sh/originExtendedAllocatable"
OFFERED = (
    *(resources.BATCH_CPU, resources.BATCH_MEMORY),
    *(resources.MID_CPU, resources.MID_MEMORY),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What shall stand in the status."""

    #: ``None``: nobody of ours decides about these resources, and they are left alone.
    offered: resources.Amounts | None = None
    original: resources.Amounts | None = None
    #: Type without its prefix to the condition.
    conditions: Mapping[str, decision.Condition] | None = None


def wanted(now: view.View) -> Wanted:
    """Of this view. Of conditions about the node with one type, one that holds counts."""
    found: dict[str, decision.Condition] = {}
    for one in now.plan.conditions:
        if one.subject == "node" and (one.status or one.type not in found):
            found[one.type] = one
    found["Ready"] = decision.Condition(
        type="Ready",
        status=now.ready,
        reason="Verified" if now.ready else "Starting",
        message=f"the agent runs in the mode {now.mode}",
    )
    offer = now.plan.offer
    if offer is None:
        return Wanted(conditions=found)
    third = dict(offer.original) if offer.original and offer.original != offer.amounts else None
    return Wanted(
        offered={name: offer.amounts[name] for name in OFFERED if name in offer.amounts},
        original=third,
        conditions=found,
    )


def patch(
    there: Mapping[str, Any], want: Wanted, *, wall: float, tolerance: float
) -> dict[str, Any] | None:
    """The strategic merge patch for a Node that says ``there``; ``None``: it is good as it is."""
    status = _mapping(there, "status")
    made: dict[str, Any] = {}
    amounts = _amounts(status, want, tolerance)
    if amounts:
        made["status"] = {"capacity": amounts, "allocatable": amounts}
        if want.original is not None:
            origin = {"resources": resources.texts(want.original)}
            text = json.dumps(origin, separators=(",", ":"))
            made["metadata"] = {"annotations": {ORIGIN: text}}
    conditions = _conditions(status, want, wall)
    if conditions:
        made.setdefault("status", {})["conditions"] = conditions
    return made or None


def _amounts(status: Mapping[str, Any], want: Wanted, tolerance: float) -> dict[str, str | None]:
    if want.offered is None:
        return {}
    found: dict[str, str | None] = {}
    allocatable = _mapping(status, "allocatable")
    before = resources.read({n: allocatable[n] for n in OFFERED if n in allocatable}, [], "")
    for name in OFFERED:
        old, new = before.get(name), want.offered.get(name)
        if new is None:
            if name in allocatable:
                found[name] = None
        elif old is None or abs(new - old) > tolerance * old:
            found[name] = str(new)
    if not found:
        return found
    # What is written is written together: both halves of an offer are of one moment.
    return {**{name: str(value) for name, value in want.offered.items()}, **found}


def _conditions(status: Mapping[str, Any], want: Wanted, wall: float) -> list[dict[str, str]]:
    listed = status.get("conditions")
    there = {
        str(one.get("type")): one
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, Mapping)
    }
    shall = {f"{PREFIX}{name}": one for name, one in (want.conditions or {}).items()}
    past = decision.Condition(type="", status=False, reason="NotSeen", message="")
    for kind in there:
        if kind.startswith(PREFIX) and kind not in shall:
            shall[kind] = past
    made = []
    for kind, one in shall.items():
        before = there.get(kind, {})
        text = "True" if one.status else "False"
        # API servers leave out a text that is empty.
        said = (before.get("status"), before.get("reason") or "", before.get("message") or "")
        if said == (text, one.reason, one.message) or (one is past and said[0] == text):
            continue
        now = metric_object.time_text(wall)
        since = before.get("lastTransitionTime") if before.get("status") == text else None
        made.append(
            {
                "type": kind,
                "status": text,
                "reason": one.reason,
                "message": one.message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": since or now,
            }
        )
    return made


def _mapping(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key)
    return value if isinstance(value, Mapping) else {}
