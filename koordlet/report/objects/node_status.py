"""The Node's status: batch and mid resources, our conditions, and the ratios of its CPUs. Pure.

Covers: what shall stand there, what of it differs enough to be written.
Does not cover: when it is written (``report.writing``), computing the offer (``policy``).

Rules:
1. Our conditions have a prefix: the kubelet owns ``MemoryPressure`` and its like, and would write
   over them. A condition that we do not see any more is ``False``, not gone.
2. A resource that is not offered any more is taken away, which is how the peer degrades; not where
   another program owns it and still writes.
3. A resource is written when it comes, goes, or moves by more than a part of its old value.
4. While nobody of ours decides about resources (the policy is off, or has seen too little yet),
   those that we have applied stay as they are.
5. A ratio that somebody else has a right to is theirs, whenever it was written: people annotate a
   node once. What differs from ours is a condition. Ours go when the table is empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from koordlet.model import decision, moment, node_ratios, resources
from koordlet.model.record import dataclass
from koordlet.report import documents, view
from koordlet.report.objects import holders, metric_object

PREFIX = "koordlet.io/"
ORIGIN = "node.koordinator.sh/originExtendedAllocatable"
OFFERED = (
    *(resources.BATCH_CPU, resources.BATCH_MEMORY),
    *(resources.MID_CPU, resources.MID_MEMORY),
)
_PLACES = ("capacity", "allocatable")
#: Present while other programs own ratios that differ from ours.
_OTHER_RATIOS = "CPURatiosNotReported"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedStatus:
    """Desired content of the Node's status."""

    #: ``None``: nobody of ours decides about these resources, and they are left alone.
    offered: resources.Amounts | None = None
    original: resources.Amounts | None = None
    #: Ratios of the node, if any; ``known`` is false while its labels are not known, which decide.
    ratios: node_ratios.NodeRatios | None = None
    known: bool = False
    #: Type without its prefix to the condition.
    conditions: Mapping[str, decision.Condition] | None = None


def wanted(
    now: view.ReportView,
    *,
    offering: bool = True,
    lacking: metric_object.Lacking | None = None,
) -> WantedStatus:
    """Desired status of this view. Among node conditions of one type, a true one wins.

    Without ``offering`` the resources are left alone.
    """
    conditions: dict[str, decision.Condition] = {}
    for condition in now.plan.conditions:
        if condition.subject == "node" and (condition.status or condition.type not in conditions):
            conditions[condition.type] = condition
    conditions["Ready"] = decision.Condition(
        type="Ready",
        status=now.ready,
        reason="Verified" if now.ready else "Starting",
        message=f"the agent runs in mode {now.mode}",
    )
    if lacking is not None:
        conditions["UseWindowShort"] = decision.Condition(
            type="UseWindowShort",
            status=lacking is not metric_object.Lacking.NOTHING,
            reason=f"Lacking{lacking.name.capitalize()}",
            message=lacking.value,
        )
    offer = now.plan.offer if offering else None
    node = now.snapshot.node
    always = WantedStatus(conditions=conditions, ratios=node.ratios, known=node.known)
    if offer is None:
        return always
    third = dict(offer.original) if offer.original and offer.original != offer.amounts else None
    return replace(
        always,
        offered={name: offer.amounts[name] for name in OFFERED if name in offer.amounts},
        original=third,
    )


def patch(
    there: Mapping[str, Any], want: WantedStatus, *, wall: float, tolerance: float
) -> dict[str, Any] | None:
    """All that is ours of a Node that says ``there``; ``None``: it is good as it is.

    What has not moved is named with the value that it has: what an apply leaves out goes.
    """
    status = documents.part(there, "status")
    amounts, moved = _amounts(there, want, tolerance)
    ratios, marked, contested = _ratios(there, want)
    shown = {**(want.conditions or {}), **contested}
    conditions, changed = _conditions(status, shown, wall)
    if not moved and not changed and not marked:
        return None
    if want.offered is None:
        made = _standing(there, _applied, ORIGIN, keep=True)
    else:
        made = {"status": {"capacity": amounts, "allocatable": amounts}} if amounts else {}
    if want.original is not None and want.offered is not None:
        text = json.dumps({"resources": resources.texts(want.original)}, separators=(",", ":"))
        made["metadata"] = {"annotations": {ORIGIN: text}}
    if ratios:
        made.setdefault("metadata", {}).setdefault("annotations", {}).update(ratios)
    made.setdefault("status", {})["conditions"] = conditions
    return made


def _ratios(
    there: Mapping[str, Any], want: WantedStatus
) -> tuple[dict[str, str | None], bool, dict[str, decision.Condition]]:
    """Annotations of ours, whether one of them changes, and what other programs have (rule 5)."""
    annotations = documents.part(there, "metadata", "annotations")
    stands = {key: str(annotations[key]) for key in node_ratios.ANNOTATIONS if key in annotations}
    mine = {key for key in stands if _alone(there, "metadata", "annotations", key)}
    if not want.known:
        return {key: stands[key] for key in mine}, False, {}
    foreign = {key: text for key, text in stands.items() if key not in mine}
    computed = {} if want.ratios is None else want.ratios.annotations(foreign)
    made = {
        **dict.fromkeys(mine),
        **{key: text for key, text in computed.items() if key not in foreign},
    }
    marked = any(stands.get(key) != text for key, text in made.items())
    return made, marked, _other_ratios(foreign, computed)


def _other_ratios(
    foreign: Mapping[str, str], computed: Mapping[str, str]
) -> dict[str, decision.Condition]:
    """The condition about ratios of other programs that differ from ours, by its type."""
    differ = [
        f"{key} is {text[:40]}, koordlet computes {computed[key]}"
        for key, text in foreign.items()
        if key in computed and not node_ratios.alike(text, computed[key])
    ]
    if not differ:
        return {}
    message = f"another program wrote {'; '.join(differ)}: remove the annotation, or the table"
    condition = decision.Condition(
        type=_OTHER_RATIOS, status=True, reason="OtherWriter", message=message
    )
    return {_OTHER_RATIOS: condition}


def rivals(there: Mapping[str, Any]) -> tuple[str, ...]:
    """Other programs that own a resource of ours and still write, by name."""
    return tuple(sorted({other for name in OFFERED for other in _others(there, name)}))


def _others(there: Mapping[str, Any], name: str) -> set[str]:
    """Other programs that own one resource and still write."""
    managers = {
        holder.manager
        for place in _PLACES
        for holder in holders.writing(there, "status", place, name)
    }
    return managers - {holders.MANAGER}


def withdrawn(there: Mapping[str, Any]) -> dict[str, Any]:
    """Strategic patch that removes what only koordlet owns; empty if there is nothing."""
    made = _standing(there, _alone, ORIGIN, *node_ratios.ANNOTATIONS, keep=False)
    kinds = [
        str(condition.get("type"))
        for condition in documents.rows(documents.part(there, "status"), "conditions")
        if str(condition.get("type")).startswith(PREFIX)
    ]
    if kinds:
        gone = [{"type": kind, "$patch": "delete"} for kind in kinds]
        made.setdefault("status", {})["conditions"] = gone
    return made


def _standing(
    there: Mapping[str, Any], chosen: Callable[..., bool], *marks: str, keep: bool
) -> dict[str, Any]:
    """The resources and annotations of ours that are chosen by their owners: as is, or gone."""
    made: dict[str, Any] = {}
    for place in _PLACES:
        amounts = documents.part(there, "status", place)
        names = (n for n in OFFERED if n in amounts and chosen(there, "status", place, n))
        mine = {name: amounts[name] if keep else None for name in names}
        if mine:
            made.setdefault("status", {})[place] = mine
    annotations = documents.part(there, "metadata", "annotations")
    own = {
        key: annotations[key] if keep else None
        for key in marks
        if key in annotations and chosen(there, "metadata", "annotations", key)
    }
    if own:
        made["metadata"] = {"annotations": own}
    return made


def _alone(there: Mapping[str, Any], *path: str) -> bool:
    """True if koordlet is the only owner of a field."""
    return {holder.manager for holder in holders.of(there, *path)} == {holders.MANAGER}


def _applied(there: Mapping[str, Any], *path: str) -> bool:
    """True if koordlet has applied a field."""
    owners = ((holder.manager, holder.operation) for holder in holders.of(there, *path))
    return (holders.MANAGER, "Apply") in owners


def _amounts(
    there: Mapping[str, Any], want: WantedStatus, tolerance: float
) -> tuple[dict[str, str | None], bool]:
    """Desired resources, and whether the change justifies a write."""
    if want.offered is None:
        return {}, False
    allocatable = documents.part(documents.part(there, "status"), "allocatable")
    before = resources.read({n: allocatable[n] for n in OFFERED if n in allocatable}, [], "")
    gone = [
        name
        for name in OFFERED
        if name in allocatable and name not in want.offered and not _others(there, name)
    ]
    moved = [
        name
        for name, new in want.offered.items()
        if (old := before.get(name)) is None or abs(new - old) > tolerance * old
    ]
    if not gone and not moved:
        return {name: str(allocatable[name]) for name in want.offered}, False
    # What is written is written together: both halves of an offer are of one moment.
    offered = {name: str(value) for name, value in want.offered.items()}
    return {**offered, **dict.fromkeys(gone)}, True


def _conditions(
    status: Mapping[str, Any], shown: Mapping[str, decision.Condition], wall: float
) -> tuple[list[Mapping[str, Any]], bool]:
    """All conditions of ours, and whether one of them is another one than stands there."""
    there = {str(row.get("type")): row for row in documents.rows(status, "conditions")}
    shall = {f"{PREFIX}{name}": condition for name, condition in shown.items()}
    past = decision.Condition(type="", status=False, reason="NotSeen", message="")
    for kind in there:
        if kind.startswith(PREFIX) and kind not in shall:
            shall[kind] = past
    made: list[Mapping[str, Any]] = []
    changed = False
    for kind, condition in shall.items():
        before = there.get(kind, {})
        if _says(before, condition, past):
            made.append(before)
            continue
        changed = True
        text, now = _status(condition), moment.spell(wall)
        since = before.get("lastTransitionTime") if before.get("status") == text else None
        words = {"type": kind, "status": text, **documents.fields(condition, "reason message")}
        made.append({**words, "lastHeartbeatTime": now, "lastTransitionTime": since or now})
    return made, changed


def _status(condition: decision.Condition) -> str:
    return "True" if condition.status else "False"


def _says(
    before: Mapping[str, Any], condition: decision.Condition, past: decision.Condition
) -> bool:
    """True if the condition is present; API servers omit empty texts."""
    if condition is past and before.get("status") == _status(condition):
        return True
    stands = (before.get("status"), before.get("reason") or "", before.get("message") or "")
    return stands == (_status(condition), condition.reason, condition.message)
