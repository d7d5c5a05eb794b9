"""A plan of moves over a dump: its proof as one document.

Covers: the document, the proof step by step. Does not cover: the search
(``rescheduling.make_room``), printing (``cli.explain_plan``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.model import resources
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption import headroom
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import move_unit, plan_check, room_ahead
from koordlet.scheduler.rescheduling.move_plan import PlanMove
from koordlet.scheduler.rescheduling.plan_check import PlanCheck
from koordlet.scheduler.rescheduling.room_plan import RoomPlan
from koordlet.scheduler.sim.drain import Body, LimitedDump


def waiting(bodies: Sequence[Body], key: str) -> Pod | None:
    """The pod of a name that waits for a node; ``None`` where there is none."""
    pending = inventory.load(bodies).pending
    return next((pod for pod in pending if pod.key == key), None)


def document(
    scene: LimitedDump, pod: Pod | None, room: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The cheapest plan for a pod, for room ahead, or that empties a node; or why there is none."""
    plan = room_ahead.find(scene.state, scene.limiter, plan_check.MOVER, pod, room or {})
    wanted: dict[str, Any] = {"for": None if pod is None else pod.key, "room": None}
    if room:
        wanted = {"for": headroom.spelled(room), "room": resources.canonical(room)}
        pod = room_ahead.sized(room)
    if isinstance(plan, str):
        nothing: dict[str, Any] = {"cost": None, "improvement": None, "moves": [], "proof": []}
        nothing["members"] = []
        return {**wanted, "node": None, "why": plan, **nothing}
    moves = [PlanMove(PodRef.of(move.pod), move.origin, move.target) for move in plan.moves]
    worth = PlanCheck(scene.state, scene.limiter).worth(plan.node, moves)
    return {
        **wanted,
        "node": plan.node,
        "members": [{"pod": each.key, "node": node} for each, node in plan.members],
        "why": None,
        "cost": round(plan.cost, 3),
        "improvement": worth.improvement,
        "moves": [
            {
                "pod": move.pod.key,
                "from": move.origin,
                "to": move.target,
                "after": [place + 1 for place in move.after],
                "gang": move.gang or None,
                "cost": round(move.cost, 3),
                "waitsFor": None
                if move.waits_for is None
                else f"{move.waits_for.reason}: {move.waits_for.message}",
            }
            for move in plan.moves
        ],
        "proof": [
            *_proof(scene.state.columns, plan),
            *_ends(scene.state.columns, plan, pod),
            *_gangs(scene.state, plan),
            *_waits(scene.state, plan, pod),
        ],
    }


def _proof(columns: Columns, plan: RoomPlan) -> Iterator[str]:
    """Why a plan is safe at every prefix."""
    for place, move in enumerate(plan.moves):
        before = [each for each in plan.moves[:place] if each.target == move.target]
        held = resources.total(each.pod.pod_class.requests.real for each in before)
        vacated = resources.total(
            plan.moves[each].pod.pod_class.requests.real for each in move.after
        )
        asks = move.pod.pod_class.requests.real
        free = {
            name: much + vacated.get(name, 0) - held.get(name, 0)
            for name, much in _free(columns, move.target).items()
            if name in asks
        }
        once = f" after {' and '.join(str(each + 1) for each in move.after)}" if move.after else ""
        yield (
            f"{place + 1}. {move.target} has {_spelled(free)} free{once}, and {move.pod.key} asks"
            f" for {_spelled(asks)}: room is held there while it still runs on {move.origin}"
        )
    whole = ", or after those of a gang" if any(move.gang for move in plan.moves) else ""
    yield (
        f"stopped after any move{whole}, each pod runs where it was or where room was held for it;"
        " nobody else moves, and nobody is evicted before its room is there"
    )


def _ends(columns: Columns, plan: RoomPlan, pod: Pod | None) -> Iterator[str]:
    """What the plan gains."""
    if pod is None:
        freed = _spelled(_freed(plan, plan.node))
        yield f"in the end {plan.node} has only what belongs to it: {freed} are free more"
        return
    taken: dict[str, dict[str, int]] = {}
    for each, node in ((pod, plan.node), *plan.members):
        asked = each.pod_class.requests.real
        after = resources.total((_free(columns, node), _freed(plan, node)))
        before = taken.get(node, {})
        room = _spelled({name: after.get(name, 0) - before.get(name, 0) for name in asked})
        taken[node] = resources.total((before, asked))
        yield f"in the end {node} has {room} free, and {each.key} asks for {_spelled(asked)}"


def _freed(plan: RoomPlan, node: str) -> dict[str, int]:
    """What the moves free of a node."""
    leaving = (move.pod for move in plan.moves if move.origin == node)
    return resources.total(each.pod_class.requests.real for each in leaving)


def _waits(state: ClusterState, plan: RoomPlan, pod: Pod | None) -> Iterator[str]:
    """What a gang that waits whole gets."""
    entry = None if pod is None else state.gangs.of(pod)
    if not plan.members or entry is None or entry.gang is None:
        return
    key, node = entry.gang.topology_key, state.node(state.columns.rows[plan.node])
    where = f", within {key}={node.labels[key]}" if key else ""
    yield (
        f"gang {entry.gang.id} needs {entry.gang.min} members on nodes and has"
        f" {len(entry.bound)}: room for all {1 + len(plan.members)} is held before anybody"
        f" leaves{where}, and none is kept for a part of them"
    )


def _gangs(state: ClusterState, plan: RoomPlan) -> Iterator[str]:
    """Why gangs that move whole stay whole."""
    for places in move_unit.places(move.gang for move in plan.moves):
        first = plan.moves[places[0]]
        entry = state.gangs.of(first.pod)
        if not first.gang or entry is None or entry.gang is None:
            continue
        key, numbers = entry.gang.topology_key, ", ".join(str(place + 1) for place in places)
        node = state.node(state.columns.rows[first.target])
        where = f", within {key}={node.labels[key]}" if key else ""
        yield (
            f"gang {first.gang} needs {entry.gang.min} members on nodes and has {len(places)}, so"
            f" all of them move, {numbers}: room for all is held before the first leaves{where};"
            " their budgets let all go at once"
        )


def _free(columns: Columns, name: str) -> dict[str, int]:
    row = columns.rows[name]
    spare = columns.allocatable[:, row] - columns.requested[:, row]
    return {resource: int(spare[line]) for resource, line in columns.resources.items()}


def _spelled(amounts: Any) -> str:
    return (
        ", ".join(
            f"{name} {spelled}"
            for name, spelled in sorted(resources.canonical(amounts).items())
            if amounts[name]
        )
        or "nothing"
    )
