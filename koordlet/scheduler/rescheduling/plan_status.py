"""The status of a MovePlan: its phase, how far each move is, what it gains and costs.

Covers: reading and spelling it. Does not cover: the specification (``move_plan``), what follows
from it (``plan_flow``).
"""

from __future__ import annotations

import enum
from typing import Any

from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body


class PlanPhase(enum.StrEnum):
    """How far a plan is."""

    PENDING = "Pending"
    CHECKING = "Checking"
    RESERVING = "Reserving"
    MOVING = "Moving"
    DONE = "Done"
    FAILED = "Failed"
    ABORTED = "Aborted"

    @property
    def over(self) -> bool:
        """Whether the phase is final."""
        return self in {PlanPhase.DONE, PlanPhase.FAILED, PlanPhase.ABORTED}


class MovePhase(enum.StrEnum):
    """How far a move is."""

    WAITING = "Waiting"
    RESERVED = "Reserved"
    EVICTING = "Evicting"
    REPLACED = "Replaced"
    DONE = "Done"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveState:
    """The state of one move."""

    phase: MovePhase = MovePhase.WAITING
    job: str = ""
    node: str = ""
    #: The pod that came instead, as ``namespace/name``.
    replacement: str = ""
    message: str = ""

    def body(self) -> dict[str, str]:
        """The entry of a status."""
        fields = {
            "phase": self.phase.value,
            "job": self.job,
            "node": self.node,
            "replacement": self.replacement,
            "message": self.message,
        }
        return {key: value for key, value in fields.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWorth:
    """What a plan gains, and what it costs, as its status spells it."""

    #: The part of its node that the moves free, of the resource of which that is most.
    improvement: str
    #: How many pods leave, and what they ask for.
    pods: int
    cpu: str
    memory: str
    #: The sum that the search for moves makes least (``disruption.move_costs``).
    disruption: str

    def cost(self) -> dict[str, Any]:
        """The entry ``cost`` of a status."""
        return {
            "pods": self.pods,
            "cpu": self.cpu,
            "memory": self.memory,
            "disruption": self.disruption,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStatus:
    """The stored status."""

    phase: PlanPhase = PlanPhase.PENDING
    reason: str = ""
    message: str = ""
    #: When it began to hold room, seconds since 1970; 0: it has not.
    began: float = 0.0
    moves: tuple[MoveState, ...] = ()
    #: Once its moves were checked.
    worth: PlanWorth | None = None

    def body(self) -> dict[str, Any]:
        """As the object has it; ``None`` removes what is not so any more."""
        return {
            "phase": self.phase.value,
            "reason": self.reason or None,
            "message": self.message or None,
            "began": moment.spell(self.began) if self.began else None,
            "moves": [move.body() for move in self.moves] or None,
            "improvement": None if self.worth is None else self.worth.improvement,
            "cost": None if self.worth is None else self.worth.cost(),
        }


def decode(status: Body) -> PlanStatus:
    """The status of an object; ``BadObjectError`` names the field that cannot be read."""
    phase = wire.text(status, "phase") or PlanPhase.PENDING
    if phase not in set(PlanPhase):
        raise BadObjectError(f"status.phase {phase!r} is unknown")
    return PlanStatus(
        phase=PlanPhase(phase),
        reason=wire.text(status, "reason"),
        message=wire.text(status, "message"),
        began=wire.instant(status.get("began"), "status.began") or 0.0,
        moves=tuple(map(_state, wire.bodies(status, "moves"))),
        worth=_worth(status),
    )


def _worth(status: Body) -> PlanWorth | None:
    cost = wire.mapping(status, "cost")
    if not cost:
        return None
    cpu, memory, disruption = wire.texts(cost, "cpu", "memory", "disruption")
    return PlanWorth(
        improvement=wire.text(status, "improvement"),
        pods=wire.integer(cost, "pods"),
        cpu=cpu,
        memory=memory,
        disruption=disruption,
    )


def _state(body: Body) -> MoveState:
    phase = wire.text(body, "phase") or MovePhase.WAITING
    if phase not in set(MovePhase):
        raise BadObjectError(f"status.moves: phase {phase!r} is unknown")
    return MoveState(
        phase=MovePhase(phase),
        job=wire.text(body, "job"),
        node=wire.text(body, "node"),
        replacement=wire.text(body, "replacement"),
        message=wire.text(body, "message"),
    )
