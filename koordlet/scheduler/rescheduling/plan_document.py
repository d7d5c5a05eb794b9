"""A plan of moves as a document for people: what the commands print and the pages answer.

Covers: its fields. Does not cover: tables (``cli.plans``).
"""

from __future__ import annotations

from typing import Any

from koordlet.model import moment, resources
from koordlet.scheduler.rescheduling.move_plan import ACT, SHADOW, MovePlan
from koordlet.scheduler.rescheduling.plan_status import MoveState


def document(plan: MovePlan) -> dict[str, Any]:
    """A plan as JSON for people to look at."""
    status = plan.status
    states = status.moves or (MoveState(),) * len(plan.moves)
    return {
        "name": plan.name,
        "phase": status.phase.value,
        "reason": status.reason or None,
        "message": plan.fault or status.message or None,
        "mode": ACT if plan.acts else SHADOW,
        "for": (plan.wanted if plan.pod is None else str(plan.pod)) or None,
        "room": resources.canonical(plan.room) or None,
        "node": plan.node or None,
        "members": [{"pod": str(place.pod), "node": place.node} for place in plan.members],
        "why": plan.reason or None,
        "created": moment.spell(plan.created),
        "began": moment.spell(status.began) if status.began else None,
        "ttlSeconds": plan.ttl,
        "improvement": None if status.worth is None else status.worth.improvement,
        "cost": None if status.worth is None else status.worth.cost(),
        "moves": [
            {
                "pod": str(move.pod),
                "from": move.origin,
                "to": move.target,
                "after": list(move.after),
                "gang": move.gang or None,
                "phase": state.phase.value,
                "job": state.job or None,
                "replacement": state.replacement or None,
                "message": state.message or None,
            }
            for move, state in zip(plan.moves, states, strict=False)
        ],
    }
