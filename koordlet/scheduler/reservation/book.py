"""The book of all reservations: what they hold, written into the columns and kept in step.

Covers: reservations that come, are bound, change, end; pods that begin and cease to draw on them.
Does not cover: deciding any of that (the plugin, ``lifecycle``), storing it.

Rules:
1. The columns hear of pods from whoever moves them; the book hears of it from the columns. What a
   reservation holds follows at once: a bind that fails, a victim that leaves, a dry run of
   preemption need no code of their own.
2. A node's requested amounts are, at every moment: its pods, plus what each reservation holds.
3. A pod draws on the reservation whose UID its annotation has, where both are on one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Rows
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.claims import Claims
from koordlet.scheduler.reservation.held import Held
from koordlet.scheduler.reservation.index import Index
from koordlet.scheduler.reservation.parsing import spec_of
from koordlet.scheduler.reservation.spec import Phase, Policy, Spec


class Book:
    """Every reservation that the scheduler knows."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.index = Index()
        self.claims = Claims(columns, self.index)
        self.all: dict[str, Held] = {}
        self._by_name: dict[str, Held] = {}
        self._on_row: dict[int, dict[str, Held]] = {}
        self._serial = 0
        #: UIDs of those whose account has changed since somebody asked.
        self.touched: set[str] = set()
        #: Pods that run and are room for others, by UID.
        self.operating: dict[str, Held] = {}
        columns.keeper = self
        for row, several in enumerate(columns.pods):
            for pod in [one for one in several.values() if one.operates]:
                self._operate(pod, row)

    def add(self, held: Held) -> None:
        """A reservation is known; it is on no node yet."""
        held.position = self._serial
        self._serial += 1
        self.all[held.spec.uid] = held
        self._by_name[held.spec.name] = held

    def named(self, name: str) -> Held | None:
        """The one of this name."""
        return self._by_name.get(name)

    def on(self, row: int) -> Iterable[Held]:
        """Those that hold something on a node."""
        return self._on_row.get(row, {}).values()

    def rows(self) -> Rows:
        """Nodes on which any reservation holds something."""
        return np.array([row for row, several in self._on_row.items() if several], np.intp)

    def bind(
        self,
        held: Held,
        stand_in: Pod,
        row: int,
        *,
        phase: Phase = Phase.AVAILABLE,
        adopted: Iterable[Pod] = (),
    ) -> None:
        """It has its node; the stand-in takes its place unless it is a pod that runs."""
        several = list(adopted)
        if several:
            held.adopted = frozenset(one.uid for one in several)
        if not held.operating:
            self.columns.place(stand_in, row)
        held.stand_in, held.row, held.phase = stand_in, row, phase
        held.node, held.orphaned = stand_in.node, False
        held.relief = {}
        self._on_row.setdefault(row, {})[held.spec.uid] = held
        for one in several:
            one.draws_on, one.drawn_name = held.spec.uid, held.spec.name
        held.owners = {
            pod.key: pod
            for pod in self.columns.pods[row].values()
            if (pod.draws_on or pod.drawn_name) and self._of(pod) is held
        }
        held.count()
        if several:
            held.pledged = dict(held.allocated)
        self._settle(held)
        self.index.add(held)
        self.claims.consider(held)

    def turn(self, held: Held, phase: Phase) -> None:
        """Another phase: one that is over gives back what it holds."""
        if phase is held.phase:
            return
        held.phase = phase
        self.touched.add(held.spec.uid)
        if held.row < 0:
            return
        if phase.over:
            self._release(held)
        else:
            self._settle(held)
            self.claims.consider(held)

    def withdraw(self, held: Held) -> None:
        """It has no node after all."""
        if held.row >= 0:
            self._release(held)
        held.phase, held.node, held.owners = Phase.PENDING, "", {}
        held.adopted, held.pledged = frozenset(), {}
        held.count()

    def remove(self, held: Held) -> None:
        """The object is gone; its pods stay where they are."""
        if held.row >= 0:
            self._release(held)
        self.all.pop(held.spec.uid, None)
        if self._by_name.get(held.spec.name) is held:
            del self._by_name[held.spec.name]

    def change(self, held: Held, spec: Spec, stand_in: Pod | None) -> None:
        """The object was edited: other owners, other amounts (a resize), unschedulable or not."""
        if held.row < 0 or stand_in is None:
            held.spec = spec
            return
        row, phase = held.row, held.phase
        self._release(held)
        held.spec = spec
        self.bind(held, stand_in, row, phase=phase)

    def draw(self, pod: Pod, held: Held | None) -> None:
        """Who is about to be placed will draw on this one, or on none."""
        pod.draws_on = held.spec.uid if held is not None else ""
        pod.drawn_name = held.spec.name if held is not None else ""

    def joined(self, pod: Pod, row: int) -> None:
        """The columns say: a pod that draws on a reservation, or is one, took its place."""
        if pod.operates and pod.uid not in self.operating:
            self._operate(pod, row)
        if pod.stands_for:
            return
        held = self._of(pod)
        if held is not None and held.row == row:
            held.owners[pod.key] = pod
            held.count()
            self._settle(held)

    def left(self, pod: Pod, row: int) -> None:
        """The columns say: a stand-in or such a pod gives its place back."""
        itself = self.operating.pop(pod.uid, None) if pod.operates else None
        if itself is not None and itself.row == row:
            self._lose(itself)
        if pod.stands_for:
            held = self.all.get(pod.stands_for)
            if held is not None and held.row == row and held.stand_in is pod:
                self._lose(held)
            return
        held = self._of(pod)
        if held is not None and held.owners.pop(pod.key, None) is not None:
            self.touched.add(held.spec.uid)
            held.count()
            if held.row == row:
                self._settle(held)

    def conflict(self, row: int, policy: Policy) -> bool:
        """Whether a reservation of the other kind of policy can be drawn on there."""
        several = self._on_row.get(row)
        if not several:
            return False
        default = policy is Policy.DEFAULT
        for one in several.values():
            if (one.spec.policy is Policy.DEFAULT) is not default and one.usable:
                return True
        return False

    def find(self, uid: str) -> Held | None:
        """The reservation, or the pod that is one, of this UID."""
        return self.all.get(uid) or self.operating.get(uid)

    def _operate(self, pod: Pod, row: int) -> None:
        held = Held(spec_of(pod), operating=True)
        held.position = self._serial
        self._serial += 1
        self.operating[pod.uid] = held
        self.bind(held, pod, row)

    def _of(self, pod: Pod) -> Held | None:
        if pod.draws_on:
            return self.find(pod.draws_on)
        return self._by_name.get(pod.drawn_name) if pod.drawn_name else None

    def _settle(self, held: Held) -> None:
        """Write into the columns what of the stand-in's amounts is not held."""
        self.touched.add(held.spec.uid)
        self._relieve(held, held.given())

    def _relieve(self, held: Held, now: Mapping[str, int]) -> None:
        before = held.relief
        if now == before:
            return
        held.relief = dict(now)
        change = {
            name: less
            for name in now.keys() | before.keys()
            if (less := before.get(name, 0) - now.get(name, 0))
        }
        if change:
            self.columns.adjust(held.row, change)

    def _release(self, held: Held) -> None:
        row, stand_in = held.row, held.stand_in
        if stand_in is not None and not held.operating:
            self.columns.remove(stand_in)
        else:
            self._lose(held)
        self._forget(held, row)
        held.orphaned = False

    def _lose(self, held: Held) -> None:
        """Its place goes now: undo what was taken off it."""
        self._relieve(held, {})
        self._forget(held, held.row)
        held.orphaned = True
        self.touched.add(held.spec.uid)

    def _forget(self, held: Held, row: int) -> None:
        if held.row < 0:
            return
        self.index.remove(held)
        self.claims.forget(held)
        self._on_row.get(row, {}).pop(held.spec.uid, None)
        held.row = -1
