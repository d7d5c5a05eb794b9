"""All nodes of a scheduler for its page: one short row each, and only the rows that changed.

Covers: the rows, what changed since a revision, sums, one node with its pods. Does not cover:
drawing (``report/page/nodes.js``), serving (``pages``).

Rules:
1. A row is made again when its node, its pods, its reservations, its report or its pressure
   changed. A revision counts the looks that found another row.
2. Where a node left, or the columns were built anew, a new epoch begins and all rows are sent.
3. A report of use that is older than ``STALE`` seconds is unknown.
"""

from __future__ import annotations

import time
from dataclasses import field
from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import FIXED, Columns
from koordlet.scheduler.loop import runner
from koordlet.scheduler.objects import requests, terms
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.usage import NodeUsage
from koordlet.scheduler.process import cluster_json

STALE = 180.0
#: Pods of one node that are listed, those with most CPU.
MOST_PODS = 500
_LONGEST_REVISION = 18
#: What a row has, in this order. Amounts are those of ``scheduler.objects.requests``; ``use`` is
#: what the node measured; ``pressure`` has the first letters of its conditions; the zone may be
#: empty.
FIELDS = (
    *("name", "cpu", "cpuUsed", "cpuReserved", "cpuUse"),
    *("memory", "memoryUsed", "memoryReserved", "memoryUse"),
    *("podSlots", "pods", "pressure", "state", "others", "zone"),
)

Body = dict[str, Any]
Row = list[Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """A row, what it was made of, and the revision at which it became so."""

    source: tuple[Any, ...] = ()
    row: Row = field(default_factory=list)
    revision: int = 0


class NodeTable:
    """The rows of one scheduler's nodes."""

    def __init__(self, loop: runner.Loop) -> None:
        self._loop = loop
        self._known: dict[str, _Known] = {}
        self._columns: Columns | None = None
        self._epoch, self._revision = int(time.time()), 0
        self._sums: tuple[str, Body] = ("", {})

    @property
    def revision(self) -> str:
        """Names the rows as they are."""
        return f"{self._epoch}.{self._revision}"

    def look(self) -> None:
        """Make the rows again that changed (rule 1)."""
        core, agents = self._loop.core, self._loop.agents
        columns = core.pod_cache.columns
        if columns is not self._columns or self._known.keys() - columns.rows.keys():
            self._known, self._columns = {}, columns
            self._epoch += 1
        wall, changed = time.time(), self._revision + 1
        for name, row in columns.rows.items():
            usage = _fresh(agents.usages.get(name), wall)
            pressure = agents.pressures.get(name, frozenset())
            known = self._known.get(name, _Known())
            source = (columns.stamps[row], columns.nodes[row], usage, pressure)
            if len(known.source) == len(source) and all(
                before is now for before, now in zip(known.source, source, strict=True)
            ):
                continue
            node = cluster_json.node(columns, core.reservations, name, row)
            made = _row(node, usage, pressure, _zone(columns.nodes[row]))
            same = made == known.row
            self._known[name] = _Known(source, made, known.revision if same else changed)
            if not same:
                self._revision = changed

    def summary(self) -> Body:
        """What the stream of states says of nodes; the rows are asked for where it differs."""
        self.look()
        if self._sums[0] != self.revision:
            self._sums = self.revision, self._summary()
        return {"nodeRevision": self.revision, **self._sums[1]}

    def document(self, since: str = "") -> Body:
        """The rows that changed since a revision; all, where nobody knows that revision."""
        self.look()
        epoch, _, number = since.partition(".")
        # One of ours is not long, and whoever asks may name a number of any length.
        known = number.isdecimal() and len(number) <= _LONGEST_REVISION
        whole = epoch != str(self._epoch) or not known
        after = -1 if whole else int(number)
        rows = [known.row for known in self._known.values() if known.revision > after]
        fields = list(FIELDS)
        return {
            "version": "v1",
            "revision": self.revision,
            "whole": whole,
            "fields": fields,
            "rows": rows,
        }

    def node(self, name: str) -> Body | None:
        """One node with its pods; ``None``: there is none of that name."""
        core, agents = self._loop.core, self._loop.agents
        columns = core.pod_cache.columns
        row = columns.rows.get(name)
        if row is None:
            return None
        pods = sorted(
            (pod for pod in columns.pods[row].values() if not pod.reserve_pod_of),
            key=lambda pod: (-pod.pod_class.requests.real.get(requests.CPU, 0), pod.key),
        )
        node, usage = columns.nodes[row], _fresh(agents.usages.get(name), time.time())
        return {
            **cluster_json.node(columns, core.reservations, name, row),
            "ready": node is not None and node.ready,
            "labels": {} if node is None else dict(node.labels),
            "problems": [] if node is None else list(node.problems),
            "use": {} if usage is None else dict(usage.node),
            "reportedAt": None if usage is None else usage.updated,
            "pressure": sorted(agents.pressures.get(name, ())),
            "reservations": sorted(info.spec.name for info in core.reservations.on(row)),
            "podList": [
                {
                    "pod": pod.key,
                    "priority": pod.priority,
                    "requests": cluster_json.shown(pod.pod_class.requests.real),
                    "terminating": pod.terminating,
                }
                for pod in pods[:MOST_PODS]
            ],
        }

    def _summary(self) -> Body:
        totals: dict[str, list[int]] = {name: [0, 0, 0] for name in (requests.CPU, requests.MEMORY)}
        pods = cordoned = pressed = 0
        for known in self._known.values():
            values = dict(zip(FIELDS, known.row, strict=True))
            for name, sums in totals.items():
                for n, what in enumerate((name, f"{name}Used", f"{name}Reserved")):
                    sums[n] += values[what] or 0
            pods += values["pods"]
            cordoned += bool(values["state"])
            pressed += bool(values["pressure"])
        return {
            "nodeCount": len(self._known),
            "nodesClosed": cordoned,
            "nodesPressed": pressed,
            "pods": pods,
            "totals": {
                name: dict(zip(("allocatable", "used", "reserved"), sums, strict=True))
                for name, sums in totals.items()
            },
        }


def _fresh(usage: NodeUsage | None, wall: float) -> NodeUsage | None:
    """Rule 3."""
    if usage is None or not usage.reported or usage.updated is None:
        return None
    return usage if wall - usage.updated <= STALE else None


def _zone(node: Node | None) -> str:
    return "" if node is None else node.labels.get(terms.ZONE, "")


def _row(node: Body, usage: NodeUsage | None, pressure: frozenset[str], zone: str) -> Row:
    resources = node["resources"]
    use = {} if usage is None else usage.node
    parts: Row = [node["name"]]
    for name in (requests.CPU, requests.MEMORY):
        amounts = resources.get(name) or {"allocatable": 0, "used": 0, "reserved": 0}
        parts += [amounts["allocatable"], amounts["used"], amounts["reserved"], use.get(name)]
    slots = resources.get(requests.PODS)
    return [
        *parts,
        slots["allocatable"] if slots else None,
        node["pods"],
        "".join(sorted(condition[:1] for condition in pressure)),
        "; ".join(["cordoned"] * node["unschedulable"] + node["taints"]),
        {name: list(a.values()) for name, a in resources.items() if name not in FIXED},
        zone,
    ]
