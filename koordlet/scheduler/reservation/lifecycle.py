"""What becomes of a reservation: phases, conditions, expiry, removal.

Covers: one step of one reservation, from what it is and what the cache derives. Pure.
Does not cover: when to look, writing it (``loop.reservation_controller``).

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
from dataclasses import field

from koordlet.model import moment, resources
from koordlet.model.record import dataclass
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import (
    Condition,
    Phase,
    ReservationSpec,
    ReservationStatus,
    with_condition,
)

SCHEDULED, READY = "Scheduled", "Ready"
#: Status, reason and message of Ready, by phase; in all others it has expired.
_READY = {
    Phase.AVAILABLE: (True, "Available", ""),
    Phase.WAITING: (False, "Waiting", "waiting until the adopted pods release their resources"),
    Phase.SUCCEEDED: (False, "Succeeded", ""),
}


@dataclass(frozen=True, slots=True)
class GarbageCollection:
    """Whether, and after how long, reservations that have ended are deleted."""

    gc_seconds: float = 86400.0
    collects: bool = True


def expired(spec: ReservationSpec, phase: Phase, now: float) -> bool:
    """Whether its time is up."""
    end = spec.expires_at
    return not phase.over and end is not None and now > end


def advanced(
    info: ReservationInfo, now: float, *, node_exists: bool, room_released: bool = True
) -> Phase:
    """The phase that it should be in now."""
    phase = info.phase
    if phase.over:
        return phase
    if expired(info.spec, phase, now) or (phase.holds and not node_exists):
        return Phase.FAILED
    if phase is Phase.WAITING and room_released:
        phase = Phase.AVAILABLE
    return Phase.SUCCEEDED if phase is Phase.AVAILABLE and info.used_up else phase


def status(info: ReservationInfo, now: float, message: str = "") -> ReservationStatus:
    """The status that should be stored now; equal to the stored one where nothing changed."""
    stored = info.stored
    if stored.phase.over:
        return stored
    if info.phase is Phase.PENDING:
        if not message:
            return stored
        made = Condition(type=SCHEDULED, status=False, reason="Unschedulable", message=message)
        return dataclasses.replace(stored, conditions=with_condition(stored.conditions, made, now))
    holds, reason, why = _READY.get(info.phase) or (False, "Expired", _why(info, now))
    ready = Condition(type=READY, status=holds, reason=reason, message=why)
    if not info.node:
        # It ended before it ever had a node.
        conditions = with_condition(stored.conditions, ready, now)
        return dataclasses.replace(stored, phase=info.phase, conditions=conditions)
    conditions = stored.conditions if stored.phase is not Phase.PENDING else ()
    placed = Condition(type=SCHEDULED, status=True, reason="Scheduled")
    return ReservationStatus(
        phase=info.phase,
        node=info.node,
        conditions=with_condition(with_condition(conditions, placed, now), ready, now),
        allocatable=resources.canonical(info.spec.allocatable, info.spec.decimal),
        allocated=resources.canonical(info.allocated, info.spec.decimal),
        owners=tuple(
            {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
            for pod in sorted(info.owners.values(), key=lambda pod: pod.uid)
        ),
    )


def _why(info: ReservationInfo, now: float) -> str:
    if expired(info.spec, Phase.PENDING, now):
        return f"expired at {moment.spell(info.spec.expires_at or now)}"
    return f"node {info.node} was deleted" if info.node else ""


def removable(
    stored: ReservationStatus, rules: GarbageCollection, now: float, *, node_exists: bool
) -> bool:
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


@dataclass(slots=True)
class RejectedReservation:
    """An object that cannot be read, and why."""

    name: str
    uid: str
    error: str
    stored: ReservationStatus = field(default_factory=ReservationStatus)
    revision: str = ""

    def status(self, now: float) -> ReservationStatus:
        """The status to store: what is there, and the error as its condition."""
        spec = ReservationSpec(name=self.name, uid=self.uid, template={})
        return status(ReservationInfo(spec, self.stored, phase=self.stored.phase), now, self.error)
