"""Room ahead of pods: which nodes could take one of a size, and what keeps that they can.

Covers: pods that nobody has created, counting, who keeps the room while moves are looked for. Does
not cover: the entries (``disruption.headroom``), the search for moves (``make_room``).

Rules:
1. A node has room where each filter of the default scheduler would let such a pod in now.
2. Moves never take the room that is counted: of each entry, as many nodes as it wants keep theirs,
   or all that have it where these are fewer. So a plan that makes room on one node takes it from no
   other, and one that empties a node leaves no entry with less than it wants.
3. Who keeps the room of several entries on a node asks for the most of each resource: the pod of
   each would fit there, and not that of all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from koordlet.model import resources
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption import headroom
from koordlet.scheduler.disruption.answers import Mover
from koordlet.scheduler.disruption.headroom import Headroom
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import gang_room
from koordlet.scheduler.rescheduling.make_room import RoomPlanner
from koordlet.scheduler.rescheduling.room_plan import RoomPlan

#: No pod of a cluster is more important than room for whoever may come: budgets decide who moves.
_PRIORITY = 2**31 - 1


def sized(amounts: Mapping[str, int], name: str = "") -> Pod:
    """One that asks for so much, and for nothing else."""
    requests = {"requests": resources.canonical(amounts)}
    body = {
        "metadata": {"name": name or headroom.spelled(amounts), "namespace": "headroom"},
        "spec": {"containers": [{"name": "room", "resources": requests}]},
    }
    return dataclasses.replace(Decoder({}).decode(body, 0), priority=_PRIORITY)


def rows(state: ClusterState, amounts: Mapping[str, int]) -> list[int]:
    """The nodes that could take such a pod now."""
    wanted = sized(amounts)
    cycle = Cycle(state.columns, state.profile(wanted.pod_class.scheduler))
    with cycle.sight(wanted) as view:
        feasible = set() if view.refused is not None else set(view.scored().rows.tolist())
    return [row for row in state.rows() if row in feasible]


def kept(
    state: ClusterState, several: Iterable[Headroom], room: Mapping[str, int]
) -> dict[int, Pod]:
    """Who keeps the room of nodes, by row (rule 2); ``room``: all nodes that have it keep it."""
    sizes: dict[int, list[Mapping[str, int]]] = {}
    for each in (*several, *([Headroom(room, state.columns.size)] if room else [])):
        for row in rows(state, each.amounts)[: each.nodes]:
            sizes.setdefault(row, []).append(each.amounts)
    return {row: sized(resources.most(each), f"room-{row}") for row, each in sizes.items()}


def find(
    state: ClusterState, limiter: Limiter, mover: Mover, pod: Pod | None, room: Mapping[str, int]
) -> RoomPlan | str:
    """The cheapest plan for a pod, for room ahead, or that empties a node; or why there is none."""
    if pod is not None:
        return gang_room.find(state, limiter, mover, pod)
    planner = RoomPlanner(state, limiter, mover, kept(state, limiter.settings.headroom, room))
    return planner.make_room(sized(room), rows(state, room)) if room else planner.empty_node()
