"""The cluster as a scheduler sees it, as one document for people to look at. Pure.

Covers: nodes by what is used, held and free, who waits and why, reservations, gangs, the newest
decisions. Does not cover: drawing it (``report/page/cluster.js``), serving it (``pages``), quotas
(``quota_json``), all nodes (``node_table``).

The page gets ``state`` each second: it has no nodes, and pending pods by reason. A large cluster is
shown in part: the nodes with the least free CPU, the pods that wait longest, the gangs that wait;
and each list says how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.model import resources
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework.queue import QueuedPod, QueuePlace
from koordlet.scheduler.gangs import summary
from koordlet.scheduler.loop import recent_decisions
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.objects import requests
from koordlet.scheduler.process import quota_json
from koordlet.scheduler.reservation.cache import ReservationCache

#: Of each list.
MOST = 200
#: Of groups of pending pods, and of pods that are named of each.
MOST_GROUPS, MOST_OF_GROUP = 50, 20

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """When it is told: by the loop's clock, and by the one on the wall."""

    steady: float
    wall: float

    def at(self, steady: float) -> float:
        """A time of the loop's clock as Unix time."""
        return round(self.wall - (self.steady - steady), 3)


def document(
    core: Core,
    decisions: Iterable[recent_decisions.Decision],
    now: Instant,
    *,
    version: str,
    leading: bool,
) -> Body:
    """The whole document."""
    columns, cache = core.pod_cache.columns, core.reservations
    nodes = [node(columns, cache, name, row) for name, row in columns.rows.items()]
    return {
        **state(core, decisions, now, version=version, leading=leading),
        "nodes": sorted(nodes, key=_tightness)[:MOST],
        "nodeCount": len(nodes),
        "totals": _sums(nodes),
        "pending": [_waiting(queued, now, cache) for queued in _pending(core)[:MOST]],
        "pods": sum(each["pods"] for each in nodes),
    }


def state(
    core: Core,
    decisions: Iterable[recent_decisions.Decision],
    now: Instant,
    *,
    version: str,
    leading: bool,
) -> Body:
    """The document without nodes, and with pending pods by reason."""
    cache = core.reservations
    return {
        "version": "v1",
        "agent": version,
        "leading": leading,
        "observedAt": now.wall,
        **_groups(core, now),
        "queues": {place.value: core.queue.count(place) for place in QueuePlace},
        "reservations": reservations(cache)[:MOST],
        "reservationCount": len(cache.by_uid),
        **_gangs(core),
        **quota_json.panel(core.quotas.book, core.quotas.history, now.at),
        "decisions": [_decision(decision, now, cache) for decision in decisions],
    }


def _pending(core: Core) -> list[QueuedPod]:
    """Who waits longest, first."""
    waiting = [queued for queued in core.queue if queued.place is not QueuePlace.TAKEN]
    return sorted(waiting, key=lambda queued: queued.first)


def _groups(core: Core, now: Instant) -> Body:
    """Pending pods by queue and reason, the largest group first."""
    groups: dict[tuple[str, str], list[QueuedPod]] = {}
    for queued in _pending(core):
        groups.setdefault((queued.place.value, _why(queued)), []).append(queued)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return {
        "groups": [
            {
                "queue": place,
                "why": why,
                "count": len(several),
                "longestSeconds": round(max(0.0, now.steady - several[0].first), 1),
                "requests": shown(
                    resources.total(queued.pod.pod_class.requests.real for queued in several)
                ),
                "pods": [
                    _waiting(queued, now, core.reservations) for queued in several[:MOST_OF_GROUP]
                ],
            }
            for (place, why), several in ordered[:MOST_GROUPS]
        ],
        "groupCount": len(groups),
    }


def _why(queued: QueuedPod) -> str:
    return queued.why or queued.pod.stored_condition[1]


def _gangs(core: Core) -> Body:
    """Those that wait first, by name."""
    gangs = summary.summaries(core, core.gangs.book, core.gangs.network)
    return {
        "gangs": [
            gang.document() for gang in sorted(gangs, key=lambda gang: not gang.message)[:MOST]
        ],
        "gangCount": len(gangs),
        "gangsWaiting": sum(bool(gang.message) for gang in gangs),
    }


def reservations(cache: ReservationCache) -> list[Body]:
    """All of them, by name."""
    return [
        {
            "name": info.spec.name,
            "uid": info.spec.uid,
            "phase": info.phase.value,
            "node": info.node or None,
            "createdAt": info.spec.created or None,
            "expiresAt": info.spec.expires_at,
            "allocatable": shown(info.spec.allocatable),
            "allocated": shown(info.allocated),
            "owners": sorted(info.owners),
            "why": info.spec.fault,
        }
        for info in sorted(cache.by_uid.values(), key=lambda info: info.spec.name)
    ]


def node(columns: Columns, cache: ReservationCache, name: str, row: int) -> Body:
    """One node: what pods use of each resource, what reservations hold."""
    known = columns.nodes[row]
    holding = resources.total(info.held() for info in cache.on(row))
    amounts = {}
    for resource, line in columns.resources.items():
        room = int(columns.allocatable[line, row])
        if not room:
            continue
        # What is requested holds the rest of reservations, too (rule 2 of the reservation cache).
        taken, held = int(columns.requested[line, row]), holding.get(resource, 0)
        amounts[resource] = {"allocatable": room, "used": taken - held, "reserved": held}
    return {
        "name": name,
        # Reserve pods do not run.
        "pods": sum(not pod.reserve_pod_of for pod in columns.pods[row].values()),
        "unschedulable": known is not None and known.unschedulable,
        "taints": []
        if known is None
        else [f"{taint.key}:{taint.effect}" for taint in known.taints],
        "resources": amounts,
    }


def _tightness(node: Body) -> tuple[float, str]:
    cpu = node["resources"].get(requests.CPU)
    free = 1.0 if cpu is None else 1 - (cpu["used"] + cpu["reserved"]) / cpu["allocatable"]
    return free, node["name"]


def _sums(nodes: Iterable[Body]) -> dict[str, dict[str, int]]:
    totals: dict[str, dict[str, int]] = {}
    for node in nodes:
        for resource, amounts in node["resources"].items():
            sums = totals.setdefault(resource, dict.fromkeys(amounts, 0))
            for what, much in amounts.items():
                sums[what] += much
    return totals


def _waiting(queued: QueuedPod, now: Instant, cache: ReservationCache) -> Body:
    pod = queued.pod
    return {
        "pod": _name(pod.reserve_pod_of, cache) if pod.reserve_pod_of else pod.key,
        "reservation": bool(pod.reserve_pod_of),
        "queue": queued.place.value,
        "priority": pod.priority,
        "attempts": queued.attempts,
        "waitingSeconds": round(max(0.0, now.steady - queued.first), 1),
        "why": _why(queued),
        "nominated": pod.nominated or None,
        "requests": shown(pod.pod_class.requests.real),
    }


def _decision(decision: recent_decisions.Decision, now: Instant, cache: ReservationCache) -> Body:
    ranking = decision.ranking
    return {
        "at": now.at(decision.at),
        "pod": _name(decision.pod, cache) if decision.reservation else decision.pod,
        "node": decision.node or None,
        "reservation": decision.reservation,
        "message": decision.message,
        "victims": list(decision.victims),
        "feasible": None if ranking is None else ranking.feasible,
        "scores": None if ranking is None else [list(ranked) for ranked in ranking.best],
    }


def _name(uid: str, cache: ReservationCache) -> str:
    """Of a reservation; people know none by its UID, which is left of one that is gone."""
    info = cache.by_uid.get(uid)
    return uid if info is None else info.spec.name


def shown(amounts: Mapping[str, int]) -> dict[str, int]:
    """Amounts without zeros."""
    return {name: much for name, much in amounts.items() if much}
