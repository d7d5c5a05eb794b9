"""The places of a plan: what is held for each pod that is to fit, and when that is over.

Covers: names, which places are lacking, which are given back, what became of their pods. Pure. Does
not cover: the moves (``plan_flow``), the reservations as objects (``plan_room``).

Rules:
1. Of a gang that waits whole each member has a place of its own. Nobody moves before all are held,
   nor once one is gone; and when the plan is over, all that no pod has taken are given back.
2. The plan is done once each pod has its node. A member that is on another one, or gone, ends it;
   one that is there before the others does not: they are bound one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.scheduler.rescheduling.move_plan import MovePlan
from koordlet.scheduler.rescheduling.plan_status import PlanPhase
from koordlet.scheduler.rescheduling.plan_step import Action, DropPlace, HoldPlace, PlanPicture


def name(plan: MovePlan, number: int = 0) -> str:
    """The name of the reservation of a place: there is never a second one."""
    return f"plan-{plan.uid}-{number}" if number else f"plan-{plan.uid}"


def over(plan: MovePlan, picture: PlanPicture) -> tuple[PlanPhase, str, str] | None:
    """Why its pods need no more room: they have it, or are not what they were (rule 2)."""
    waits = False
    for place in plan.places:
        pod = picture.pod(place.pod)
        if pod is None or place.pod.uid not in {"", pod.uid}:
            return PlanPhase.FAILED, "BeneficiaryGone", f"pod {place.pod} is not there any more"
        if pod.node and not (pod.node == place.node and plan.status.began):
            return PlanPhase.ABORTED, "NotNeeded", f"pod {place.pod} has node {pod.node} already"
        waits |= not pod.node
    if waits or not plan.places:
        return None
    nodes = ", ".join(place.node for place in plan.places)
    has = f"have nodes {nodes}" if plan.members else f"has node {nodes}"
    return PlanPhase.DONE, "", f"{plan.wanted} {has}"


def lacking(plan: MovePlan, picture: PlanPicture, actions: list[Action]) -> Iterator[str]:
    """The pods that have no place yet; ``actions``: so that they will."""
    for number, place in enumerate(plan.places):
        held = picture.room(name(plan, number))
        if held is None:
            actions.append(HoldPlace(number))
        if held is None or not held.node or held.phase.over:
            why = "" if held is None else held.message
            yield f"{place.pod}: {why or f'no place on node {place.node} yet'}"


def lost(plan: MovePlan, picture: PlanPicture) -> str:
    """The pod whose place somebody has taken away; empty: all have theirs, or their nodes."""
    for number, place in enumerate(plan.places):
        pod, held = picture.pod(place.pod), picture.room(name(plan, number))
        if pod is None or pod.node or (held is not None and not held.phase.over):
            continue
        if held is None or held.owner is None or held.owner.uid != pod.uid:
            return f"{place.pod} has no place on node {place.node} any more"
    return ""


def unused(plan: MovePlan, picture: PlanPicture) -> Iterator[DropPlace]:
    """What is given back once the plan is over: all that its own pod has not taken."""
    for number in range(1 + len(plan.members)):
        held = picture.room(name(plan, number))
        if held is None or held.phase.over:
            continue
        # While it waits, those whose room it takes over count as its owners.
        wanted = plan.places[number].pod if plan.places else None
        if held.owner is None or wanted is None or held.owner.uid != wanted.uid:
            yield DropPlace(held)
