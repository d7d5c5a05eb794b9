"""The cluster as a scheduler sees it, as one document for people to look at. Pure.

Covers: nodes by what is used, held and free, who waits and why, reservations, the newest decisions.
Does not cover: drawing it (``report/page/cluster.js``), serving it (``pages``).

A large cluster is told in part: the nodes with the least free CPU, the pods that wait longest; and
each list says how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework.queue import Entry, Place
from koordlet.scheduler.loop import recent_decisions
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.objects import requests
from koordlet.scheduler.reservation.book import Book
from koordlet.scheduler.reservation.held import Held

#: Of each list.
MOST = 200

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When it is told: by the loop's clock, and by the one on the wall."""

    steady: float
    wall: float

    def at(self, steady: float) -> float:
        """A time of the loop's clock as Unix time."""
        return round(self.wall - (self.steady - steady), 3)


def document(
    core: Core, diary: Iterable[recent_decisions.Entry], now: Moment, *, version: str, leading: bool
) -> Body:
    """The whole document."""
    columns, book = core.census.columns, core.register.book
    nodes = [_node(columns, book, name, row) for name, row in columns.rows.items()]
    waiting = [one for one in core.queue if one.place is not Place.TAKEN]
    return {
        "version": "v1",
        "agent": version,
        "leading": leading,
        "observedAt": now.wall,
        "nodes": sorted(nodes, key=_tightness)[:MOST],
        "nodeCount": len(nodes),
        "totals": _sums(nodes),
        "pending": [
            _waiting(one, now, book) for one in sorted(waiting, key=lambda one: one.first)[:MOST]
        ],
        "queues": {place.value: core.queue.count(place) for place in Place},
        "pods": sum(one["pods"] for one in nodes),
        "reservations": reservations(book)[:MOST],
        "reservationCount": len(book.all),
        "decisions": [_decision(one, now, book) for one in diary],
    }


def reservations(book: Book) -> list[Body]:
    """All of them, by name."""
    return [_reservation(one) for one in sorted(book.all.values(), key=lambda one: one.spec.name)]


def _node(columns: Columns, book: Book, name: str, row: int) -> Body:
    node = columns.nodes[row]
    holding: dict[str, int] = {}
    for one in book.on(row):
        for resource, much in one.holding().items():
            holding[resource] = holding.get(resource, 0) + much
    found = {}
    for resource, line in columns.resources.items():
        room = int(columns.allocatable[line, row])
        if not room:
            continue
        # What is requested holds the rest of reservations, too (rule 2 of the book).
        taken, held = int(columns.requested[line, row]), holding.get(resource, 0)
        found[resource] = {"allocatable": room, "used": taken - held, "reserved": held}
    return {
        "name": name,
        # Stand-ins of reservations are no pods that run.
        "pods": sum(not one.stands_for for one in columns.pods[row].values()),
        "unschedulable": node is not None and node.unschedulable,
        "taints": [] if node is None else [f"{one.key}:{one.effect}" for one in node.taints],
        "resources": found,
    }


def _tightness(node: Body) -> tuple[float, str]:
    cpu = node["resources"].get(requests.CPU)
    free = 1.0 if cpu is None else 1 - (cpu["used"] + cpu["reserved"]) / cpu["allocatable"]
    return free, node["name"]


def _sums(nodes: Iterable[Body]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for node in nodes:
        for resource, amounts in node["resources"].items():
            sums = found.setdefault(resource, dict.fromkeys(amounts, 0))
            for what, much in amounts.items():
                sums[what] += much
    return found


def _waiting(one: Entry, now: Moment, book: Book) -> Body:
    pod = one.pod
    return {
        "pod": _name(pod.stands_for, book) if pod.stands_for else pod.key,
        "reservation": bool(pod.stands_for),
        "queue": one.place.value,
        "priority": pod.priority,
        "attempts": one.attempts,
        "waitingSeconds": round(max(0.0, now.steady - one.first), 1),
        "why": one.why or pod.told[1],
        "nominated": pod.nominated or None,
        "requests": _shown(pod.pod_class.requests.real),
    }


def _reservation(one: Held) -> Body:
    return {
        "name": one.spec.name,
        "uid": one.spec.uid,
        "phase": one.phase.value,
        "node": one.node or None,
        "allocatable": _shown(one.spec.allocatable),
        "allocated": _shown(one.allocated),
        "owners": sorted(one.owners),
        "why": one.spec.fault,
    }


def _decision(one: recent_decisions.Entry, now: Moment, book: Book) -> Body:
    ranking = one.ranking
    return {
        "at": now.at(one.at),
        "pod": _name(one.pod, book) if one.reservation else one.pod,
        "node": one.node or None,
        "reservation": one.reservation,
        "message": one.message,
        "victims": list(one.victims),
        "feasible": None if ranking is None else ranking.feasible,
        "scores": None if ranking is None else [list(each) for each in ranking.best],
    }


def _name(uid: str, book: Book) -> str:
    """Of a reservation; people know none by its UID, which is left of one that is gone."""
    held = book.all.get(uid)
    return uid if held is None else held.spec.name


def _shown(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: much for name, much in amounts.items() if much}
