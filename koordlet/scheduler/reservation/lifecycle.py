"""What becomes of a reservation: phases, conditions, expiry, removal.

Covers: one step of one reservation, from what it is and what the book derives. Pure.
Does not cover: when to look (the caller), writing it.

========== ==================================== ========== ======================================
from       event                                to         conditions
========== ==================================== ========== ======================================
Pending    no node serves                       Pending    Scheduled False/Unschedulable, message
Pending    bound                                Available  Scheduled True, Ready True/Available
Pending    bound, room not yet released         Waiting    Scheduled True, Ready False/Waiting
Pending    expired                              Failed     Ready False/Expired
Waiting    enough released or free              Available  Ready True/Available
Available  allocate once, and a pod draws on it Succeeded  Ready False/Succeeded
any of 3   expired, or its node is gone         Failed     Ready False/Expired
========== ==================================== ========== ======================================

Succeeded and Failed are final. Transition times move when the status of a condition does; the peer
leaves Ready's where it was on success, and its removal counts from the last probe; so does ours.
"""

from __future__ import annotations

import dataclasses

from koordlet.model import moment, spelling
from koordlet.model.record import dataclass
from koordlet.scheduler.reservation.held import Held
from koordlet.scheduler.reservation.spec import Condition, Phase, Spec, Status

SCHEDULED, READY = "Scheduled", "Ready"


@dataclass(frozen=True, slots=True)
class Rules:
    """How long what is over is kept."""

    gc_seconds: float = 86400.0
    collects: bool = True


def expired(spec: Spec, phase: Phase, now: float) -> bool:
    """Whether its time is up."""
    end = spec.expires_at
    return not phase.over and end is not None and now > end


def advanced(held: Held, now: float, *, node_exists: bool, room_released: bool = True) -> Phase:
    """The phase that it should be in now."""
    phase = held.phase
    if phase.over:
        return phase
    if expired(held.spec, phase, now) or (phase.holds and not node_exists):
        return Phase.FAILED
    if phase is Phase.WAITING and room_released:
        phase = Phase.AVAILABLE
    if (
        phase is Phase.AVAILABLE
        and held.spec.once
        and (held.consumers if held.adopted else held.owners)
    ):
        return Phase.SUCCEEDED
    return phase


def status(held: Held, now: float, message: str = "") -> Status:
    """The status that should be stored now; equal to the stored one where nothing changed."""
    stored = held.stored
    if stored.phase.over:
        return stored
    if held.phase is Phase.PENDING:
        return _pending(stored, now, message)
    if not held.node:
        return _unplaced(held, now)
    conditions = _conditions(held, now)
    return Status(
        phase=held.phase,
        node=held.node,
        conditions=conditions,
        allocatable=spelling.resources(held.spec.allocatable, held.spec.decimal),
        allocated=spelling.resources(held.allocated, held.spec.decimal),
        owners=owners(held),
    )


def owners(held: Held) -> tuple[dict[str, str], ...]:
    """Who draws on it, by UID."""
    ordered = sorted(held.owners.values(), key=lambda pod: pod.uid)
    return tuple({"namespace": one.namespace, "name": one.name, "uid": one.uid} for one in ordered)


def _pending(stored: Status, now: float, message: str) -> Status:
    if not message:
        return stored
    made = Condition(type=SCHEDULED, status=False, reason="Unschedulable", message=message)
    return dataclasses.replace(stored, conditions=_with(stored.conditions, made, now))


def _unplaced(held: Held, now: float) -> Status:
    """It ended before it ever had a node."""
    made = Condition(type=READY, status=False, reason="Expired", message=_why(held, now))
    found = _with(held.stored.conditions, made, now)
    return dataclasses.replace(held.stored, phase=held.phase, conditions=found)


def _conditions(held: Held, now: float) -> tuple[Condition, ...]:
    stored = held.stored.conditions if held.stored.phase is not Phase.PENDING else ()
    found = _with(stored, Condition(type=SCHEDULED, status=True, reason="Scheduled"), now)
    made = {
        Phase.AVAILABLE: Condition(type=READY, status=True, reason="Available"),
        Phase.WAITING: Condition(
            type=READY, status=False, reason="Waiting", message="waiting for room to be released"
        ),
        Phase.SUCCEEDED: Condition(type=READY, status=False, reason="Succeeded"),
    }.get(held.phase)
    if made is None:
        made = Condition(type=READY, status=False, reason="Expired", message=_why(held, now))
    return _with(found, made, now)


def _why(held: Held, now: float) -> str:
    if expired(held.spec, Phase.PENDING, now):
        return f"its time was up at {moment.spell(held.spec.expires_at or now)}"
    return f"node {held.node} is gone" if held.node else ""


def _with(conditions: tuple[Condition, ...], made: Condition, now: float) -> tuple[Condition, ...]:
    """One condition in its place; times move only when something did."""
    spelled = moment.spell(now)
    old = next((one for one in conditions if one.type == made.type), None)
    if old is None:
        return (*conditions, dataclasses.replace(made, probed=spelled, changed=spelled))
    same = (old.status, old.reason, old.message) == (made.status, made.reason, made.message)
    if same:
        return conditions
    keeps = old.status is made.status or made.reason == "Succeeded"
    new = dataclasses.replace(made, probed=spelled, changed=old.changed if keeps else spelled)
    return tuple(new if one is old else one for one in conditions)


def removable(stored: Status, rules: Rules, now: float, *, node_exists: bool) -> bool:
    """Whether one that is over has been kept long enough; at once where its node is gone."""
    ready = stored.condition(READY)
    if not rules.collects or not stored.phase.over or ready is None:
        return False
    if ready.reason not in {"Expired", "Succeeded"}:
        return False
    if stored.node and not node_exists:
        return True
    spelled = ready.changed if ready.reason == "Expired" else ready.probed
    return bool(spelled) and now - moment.parse(spelled) > rules.gc_seconds
