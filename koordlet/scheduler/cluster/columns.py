"""The cluster as columns: one row for each node, kept up to date pod by pod.

Covers: nodes, what is allocatable and requested, who is where, tallies of pods by selector.
Does not cover: opinions (the plugins), the order of pods (``scheduler.framework.queue``).

Rules:
1. A row is a node in the order of arrival, which is the order in which ties are decided. The row of
   a node that left stays, dead.
2. A change of a node starts a new ``generation``: what was derived from nodes is built anew.
   A pod that comes or goes, and an amount that changes, touches its row only, and is written into
   ``log``: who keeps values per node computes them again for those rows.
3. Amounts are 64-bit integers in the units of ``scheduler.objects.requests``. What is taken away on
   ``remove`` is what ``place`` added, exactly: it is remembered with the pod.
4. A tally that is asked for once is kept up to date from then on.
5. Amounts that are not a pod's (what a reservation still holds) are changed by ``adjust`` alone.
   Every reserve pod, and every pod that draws on a reservation, is reported to the reservations, so
   that what is held follows from where pods are, whatever moved them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from koordlet.model import errors
from koordlet.scheduler.allocation import devices
from koordlet.scheduler.cluster.label_index import LabelIndex
from koordlet.scheduler.cluster.vectors import Bools, ChangeLog, Ints, Rows, Tally
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import HostPort, Pod, PodClass
from koordlet.scheduler.objects.wire import BadObjectError

#: The first rows of the amounts; extended resources follow in the order of appearance.
FIXED = (requests.CPU, requests.MEMORY, requests.STORAGE, requests.PODS)
_MOST = 2**62

#: How many pods of a class a tally counts: 0 where it does not mean the class.
Measure = Callable[[PodClass], int]


def concerns_reservations(pod: Pod) -> bool:
    """Whether a pod is a reserve pod, or draws on a reservation."""
    return bool(pod.reserve_pod_of or pod.draws_on or pod.drawn_name or pod.operates)


class ReservationObserver(Protocol):
    """Receives the pods that concern reservations."""

    def pod_placed(self, pod: Pod, row: int) -> None:
        """Take in a pod that has its place, or its newer value."""

    def pod_removed(self, pod: Pod, row: int) -> None:
        """Take note that a pod is about to give its place back."""

    def find(self, uid: str) -> Any:
        """The reservation, or the pod in operating mode, of a UID."""

    def drawn(self, pod: Pod) -> Any:
        """The reservation that a pod draws on."""


class Columns:
    """The cluster state that decisions are made on: one row for each node."""

    def __init__(
        self,
        namespaces: dict[str, Mapping[str, str]] | None = None,
        reported: dict[str, devices.Devices] | None = None,
    ) -> None:
        #: The caller's own, also while it is empty: names that come later are seen.
        self.namespaces: dict[str, Mapping[str, str]] = {} if namespaces is None else namespaces
        #: Devices one by one, by name of the node that told of them.
        self.devices: dict[str, devices.Devices] = {} if reported is None else reported
        self.nodes: list[Node | None] = []
        self.rows: dict[str, int] = {}
        self.pods: list[dict[str, Pod]] = []
        self.ports: list[dict[HostPort, int]] = []
        self.generation = 0
        self.version = 0
        self.log: ChangeLog[int] = ChangeLog()
        #: By row: the version at which it changed last.
        self.stamps: list[int] = []
        #: By row: how often anything about its pods was another, also what is not counted.
        self.looks: list[int] = []
        self.resources: dict[str, int] = {name: row for row, name in enumerate(FIXED)}
        self.allocatable: Ints = np.zeros((8, 16), np.int64)
        self.requested: Ints = np.zeros((8, 16), np.int64)
        self.nonzero: Ints = np.zeros((2, 16), np.int64)
        self._index: LabelIndex | None = None
        self._vectors: dict[PodClass, tuple[Ints, Ints]] = {}
        #: By class: pods on each row, and how many of them are terminating.
        self._placed: dict[PodClass, dict[int, list[int]]] = {}
        self._tallies: dict[Hashable, tuple[Tally, Measure, bool]] = {}
        self._concerned: dict[PodClass, list[tuple[Tally, int, bool]]] = {}
        #: Classes that were ever placed and have terms about other pods, in that order.
        self.termed: list[PodClass] = []
        self._reservations: ReservationObserver | None = None

    def report_to(self, reservations: ReservationObserver) -> None:
        """Report pods to these reservations from now on (rule 5)."""
        self._reservations = reservations

    def kept_reservation(self, pod: Pod) -> Any:
        """The reservation whose place a pod keeps; ``None`` for ordinary pods."""
        if self._reservations is None or not (pod.reserve_pod_of or pod.operates):
            return None
        return self._reservations.find(pod.reserve_pod_of or pod.uid)

    def drawn_reservation(self, pod: Pod) -> Any:
        """The reservation that a pod draws on; ``None`` where it draws on none."""
        return None if self._reservations is None else self._reservations.drawn(pod)

    def chosen(self, row: int) -> Node:
        """The node of a row that a decision chose among those that have a node."""
        node = self.nodes[row]
        if node is None:
            raise errors.BugError("a row without a node was chosen", culprit=str(row))
        return node

    @property
    def size(self) -> int:
        """The number of rows, those of deleted nodes included."""
        return len(self.nodes)

    @property
    def alive(self) -> Bools:
        """The rows that have a node."""
        return self.index.alive()

    @property
    def every(self) -> Rows:
        """All rows, those of deleted nodes included."""
        return self.index.every

    @property
    def index(self) -> LabelIndex:
        """Labels and the like of this generation."""
        if self._index is None:
            self._index = LabelIndex(self.nodes)
        return self._index

    def put(self, node: Node) -> int:
        """Add or update a node; its row.

        Where nothing but amounts differ, as with the batch resources of every minute, only that row
        is computed again.
        """
        row = self.rows.get(node.name)
        before = None if row is None else self.nodes[row]
        if row is None:
            row = self.rows[node.name] = len(self.nodes)
            self.nodes.append(None)
            self.pods.append({})
            self.ports.append({})
            self.stamps.append(0)
            self.looks.append(0)
            if self.size > self.allocatable.shape[1]:
                for name in ("allocatable", "requested", "nonzero"):
                    old: Ints = getattr(self, name)
                    setattr(self, name, np.concatenate((old, np.zeros_like(old)), axis=1))
        self.nodes[row] = node
        self._allot(node, row)
        if before is not None and replace(before, allocatable=node.allocatable) == node:
            self.touch(row)
        else:
            self._changed()
        return row

    def _allot(self, node: Node, row: int) -> None:
        """Write a node's allocatable amounts; those of its Device report where it has none."""
        reported = self.devices.get(node.name)
        room = node.allocatable if reported is None else {**reported.total(), **node.allocatable}
        self.allocatable[:, row] = 0
        for name, amount in room.items():
            # First the line: a new one may make the table anew.
            kind = self.resource(name)
            self.allocatable[kind, row] = amount

    def furnish(self, name: str, reported: devices.Devices | None) -> None:
        """Replace the devices of a node; ``None``: its agent reports none any more."""
        if reported is None:
            self.devices.pop(name, None)
        else:
            self.devices[name] = reported
        row = self.rows.get(name)
        node = None if row is None else self.nodes[row]
        if row is not None and node is not None:
            self._allot(node, row)
            self.touch(row)

    def drop(self, name: str) -> tuple[Pod, ...]:
        """Delete a node; the pods that were on it."""
        row = self.rows[name]
        lost = tuple(self.pods[row].values())
        for pod in lost:
            self.remove(pod)
        del self.rows[name]
        self.nodes[row] = None
        self.allocatable[:, row] = 0
        self._changed()
        return lost

    def _changed(self) -> None:
        self.generation += 1
        self.version += 1
        self._index = None

    def resource(self, name: str) -> int:
        """The row of a resource in the tables of amounts."""
        row = self.resources.get(name)
        if row is None:
            row = self.resources[name] = len(self.resources)
            if row >= self.allocatable.shape[0]:
                self.allocatable = np.concatenate((self.allocatable, self.allocatable * 0))
                self.requested = np.concatenate((self.requested, self.requested * 0))
            self._vectors.clear()
        return row

    def vectors(self, pod_class: PodClass) -> tuple[Ints, Ints]:
        """The amounts that a pod of a class adds to ``requested`` and ``nonzero``."""
        known = self._vectors.get(pod_class)
        if known is None:
            asked = pod_class.requests
            rows = {self.resource(name): amount for name, amount in asked.real.items()}
            real = np.zeros(self.allocatable.shape[0], np.int64)
            for row, amount in rows.items():
                real[row] = amount
            real[3] = 1
            two = [asked.nonzero.get(name, 0) for name in (requests.CPU, requests.MEMORY)]
            known = self._vectors[pod_class] = real, np.array(two, np.int64)
        return known

    def place(self, pod: Pod, row: int) -> None:
        """Place a pod on a node; ``BadObjectError`` where the amounts would exceed 64 bits."""
        real, nonzero = self.vectors(pod.pod_class)
        # The sum with it, so that whoever was there has his place again in whatever order.
        summed = self.requested[: real.size, row] + real
        if np.maximum.reduce(summed) > _MOST:
            raise BadObjectError("the amounts on its node would exceed 64 bits")
        self.requested[: real.size, row] = summed
        self.nonzero[:, row] += nonzero
        self.pods[row][pod.key] = pod
        node = self.nodes[row]
        if node is None:
            raise BadObjectError("its node was deleted")
        pod.node = node.name
        self._show(pod, row, 1)
        if self._reservations is not None and concerns_reservations(pod):
            self._reservations.pod_placed(pod, row)

    def replace(self, pod: Pod, row: int) -> None:
        """Replace a pod by its newer value; nothing that is counted may differ."""
        self.pods[row][pod.key] = pod
        self.looks[row] += 1
        if self._reservations is not None and concerns_reservations(pod):
            self._reservations.pod_placed(pod, row)

    def adjust(self, row: int, amounts: Mapping[str, int]) -> None:
        """Change a node's requested amounts by what is not a pod's; may be negative."""
        for name, change in amounts.items():
            kind = self.resource(name)
            self.requested[kind, row] += change
            if kind < 2:
                self.nonzero[kind, row] += change
        self.touch(row)

    def touch(self, row: int) -> None:
        """Mark a node as changed."""
        self.log.append(row)
        self.version += 1
        self.stamps[row] = self.version
        self.looks[row] += 1

    def conceal(self, pod: Pod) -> None:
        """Hide a pod from filters and scores until ``reveal``; its amounts stay."""
        self._show(pod, self.rows[pod.node], -1)

    def reveal(self, pod: Pod) -> None:
        """Undo ``conceal``."""
        self._show(pod, self.rows[pod.node], 1)

    def _show(self, pod: Pod, row: int, change: int) -> None:
        """Count a pod's ports and the pod itself, or cease to."""
        ports = self.ports[row]
        for port in pod.pod_class.ports:
            ports[port] = ports.get(port, 0) + change
            if not ports[port]:
                del ports[port]
        self._count(pod, row, change)

    def remove(self, pod: Pod) -> int:
        """Remove a pod from its node; the row that it had."""
        row = self.rows[pod.node]
        if self._reservations is not None and concerns_reservations(pod):
            self._reservations.pod_removed(pod, row)
        real, nonzero = self.vectors(pod.pod_class)
        self.requested[: real.size, row] -= real
        self.nonzero[:, row] -= nonzero
        del self.pods[row][pod.key]
        self._show(pod, row, -1)
        return row

    def _count(self, pod: Pod, row: int, change: int) -> None:
        pod_class = pod.pod_class
        by_row = self._placed.get(pod_class)
        if by_row is None:
            by_row = self._placed[pod_class] = {}
            if pod_class.termed:
                self.termed.append(pod_class)
        counts = by_row.setdefault(row, [0, 0])
        counts[0] += change
        counts[1] += change if pod.terminating else 0
        if not counts[0]:
            del by_row[row]
        concerned = self._concerned.get(pod_class)
        if concerned is None:
            concerned = self._concerned[pod_class] = [
                (tally, measure(pod_class), living)
                for tally, measure, living in self._tallies.values()
                if measure(pod_class)
            ]
        for tally, measured, living in concerned:
            if not (living and pod.terminating):
                tally.add(row, change * measured)
        self.touch(row)

    def tally(self, key: Hashable, measure: Measure, *, living: bool = False) -> Tally:
        """The tally of a key, kept up to date from now on; ``living``: no terminating pods."""
        known = self._tallies.get(key)
        if known is None:
            made = Tally(self.size)
            known = self._tallies[key] = made, measure, living
            for pod_class, by_row in self._placed.items():
                measured = measure(pod_class)
                if not measured:
                    continue
                if pod_class in self._concerned:
                    self._concerned[pod_class].append((made, measured, living))
                for row, (all_of, ending) in by_row.items():
                    made.add(row, measured * (all_of - (ending if living else 0)))
        return known[0]

    def classes(self) -> Mapping[PodClass, Mapping[int, list[int]]]:
        """Every class that was ever placed, and its pods by row."""
        return self._placed
