"""What a class of pods may claim: its reservations by node, kept up to date.

Covers: one claim for each class that reservations mean (and for each pod that one names), changes
as reservations come and go. Does not cover: room (``fit``).

A claim is looked up once. From then on each reservation that comes, changes or goes is held
against the claims that live, and marks its node as changed: a pod costs what has happened, not what
there is.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.reservation import keys, matching
from koordlet.scheduler.reservation.held import Held
from koordlet.scheduler.reservation.index import Index
from koordlet.scheduler.reservation.matching import Mismatch, Wish

#: Claims that are kept up to date at any one time; the longest unused is looked up anew.
MOST = 2048


class Claim:
    """The reservations of one class, by row."""

    def __init__(self, pod: Pod, wish: Wish) -> None:
        self.pod = pod
        self.wish = wish
        self.rows: dict[int, dict[str, Held]] = {}
        #: Why reservations whose owner it is may not be used, for the message.
        self.refused: dict[str, Mismatch] = {}
        self.generation = -1
        #: Whether any of them is to be hidden from the class.
        self.hides: dict[str, Held] = {}
        #: Grows when a node joins ``rows`` or leaves them.
        self.changes = 0
        #: The arithmetic of the class (``fit.Judge``), kept by whoever made it.
        self.judge: object = None

    def usable(self, row: int) -> list[Held]:
        """Those on a node that may be drawn on now, in the order of their arrival."""
        found = self.rows.get(row)
        if not found:
            return []
        if self.wish.ignores:
            return [one for one in found.values() if one.phase.holds]
        return [one for one in found.values() if one.usable]

    def consider(self, held: Held, columns: Columns) -> bool:
        """A reservation is here, or is another than before; whether that means this class."""
        before = self.forget(held)
        if held.row < 0 or not held.phase.holds:
            return before
        if not self.wish.ignores:
            if not matching.owned(held.spec, self.pod):
                return before
            node = columns.nodes[held.row]
            why = matching.mismatch(held.spec, self.pod, self.wish, node.labels if node else {})
            if why is not None:
                self.refused[held.spec.uid] = why
                return True
        if held.row not in self.rows:
            self.changes += 1
        several = self.rows.setdefault(held.row, {})
        several[held.spec.uid] = held
        if len(several) > 1:
            ordered = sorted(several.values(), key=lambda one: one.position)
            self.rows[held.row] = {one.spec.uid: one for one in ordered}
        if _shows(held, self.pod.pod_class):
            self.hides[held.spec.uid] = held
        return True

    def forget(self, held: Held) -> bool:
        """A reservation is gone; whether it was here."""
        uid = held.spec.uid
        self.hides.pop(uid, None)
        found = self.refused.pop(uid, None) is not None
        for row, several in list(self.rows.items()) if held.row < 0 else self._at(held.row):
            if several.pop(uid, None) is not None:
                found = True
                if not several:
                    del self.rows[row]
                    self.changes += 1
        return found

    def _at(self, row: int) -> Iterator[tuple[int, dict[str, Held]]]:
        if row in self.rows:
            yield row, self.rows[row]


def _shows(held: Held, pod_class: PodClass) -> bool:
    """Whether a stand-in could keep its own owners away: by ports, or by terms about pods."""
    stand_in = held.stand_in
    if stand_in is None or held.operating:
        return False
    its = stand_in.pod_class
    return bool(
        its.ports
        or (its.affinity or its.anti_affinity or its.prefers or its.avoids)
        or (
            pod_class.affinity
            or pod_class.anti_affinity
            or pod_class.prefers
            or pod_class.avoids
            or pod_class.spread
        )
    )


class Claims:
    """All claims that live, and the variants of classes that carry them."""

    def __init__(self, columns: Columns, index: Index) -> None:
        self._columns = columns
        self._index = index
        self._live: OrderedDict[tuple[PodClass, str], PodClass] = OrderedDict()
        #: Classes that no reservation means, as of an epoch of the index.
        self._none: dict[PodClass, int] = {}
        self._wishes: dict[PodClass, Wish] = {}
        #: The pod that was asked for last, its class, the state of things then, the answer.
        self._asked: Any = (None, None, (-1, -1), None)

    def refine(self, pod: Pod) -> PodClass:
        """The class that a pod is tried as; one decision asks several times."""
        version = self._index.epoch, self._columns.generation
        if self._asked[0] is pod and self._asked[1] is pod.pod_class and self._asked[2] == version:
            known: PodClass = self._asked[3]
            return known
        found = self._refined(pod)
        self._asked = pod, pod.pod_class, version, found
        return found

    def _refined(self, pod: Pod) -> PodClass:
        pod_class = pod.pod_class
        personal = self._index.personal(pod)
        if not personal and self._none.get(pod_class) == self._index.epoch:
            return pod_class
        key = pod_class, pod.key if personal else ""
        known = self._live.get(key)
        if known is None:
            return self._made(pod, key)
        self._live.move_to_end(key)
        if self._of(known).generation != self._columns.generation:
            self._fill(self._of(known))
        return known

    def _made(self, pod: Pod, key: tuple[PodClass, str]) -> PodClass:
        pod_class, personal = key
        # A claim of a class is looked up for a pod without a name: who is named has one of its own.
        meant = pod if personal else dataclasses.replace(pod, name="", uid="")
        claim = Claim(meant, self.wish(pod_class))
        self._fill(claim)
        if claim.wish.affinity is None and not claim.rows:
            if not personal:
                self._remember(pod_class)
            return pod_class
        found = self._live[key] = dataclasses.replace(pod_class, claim=claim)
        while len(self._live) > MOST:
            self._live.popitem(last=False)
        return found

    def _remember(self, pod_class: PodClass) -> None:
        if len(self._none) > 100_000:
            self._none.clear()
        self._none[pod_class] = self._index.epoch

    def wish(self, pod_class: PodClass) -> Wish:
        """What a class says about reservations."""
        if not pod_class.annotations and keys.IGNORED not in pod_class.labels:
            return _NO_WISH
        known = self._wishes.get(pod_class)
        if known is None:
            known = self._wishes[pod_class] = matching.wish(pod_class)
        return known

    def _fill(self, claim: Claim) -> None:
        claim.rows.clear()
        claim.changes += 1
        claim.hides.clear()
        claim.refused.clear()
        claim.generation = self._columns.generation
        found = self._index.everyone() if claim.wish.ignores else self._index.find(claim.pod)
        for held in found:
            claim.consider(held, self._columns)

    def consider(self, held: Held) -> None:
        """Hold a reservation that came or changed against every claim that lives."""
        concerned = [
            self._of(pod_class).consider(held, self._columns) for pod_class in self._live.values()
        ]
        if any(concerned):
            self._touch(held)

    def forget(self, held: Held) -> None:
        """A reservation is gone, or holds nothing any more."""
        concerned = [self._of(pod_class).forget(held) for pod_class in self._live.values()]
        if any(concerned):
            self._touch(held)

    def _touch(self, held: Held) -> None:
        if held.row >= 0:
            self._columns.touch(held.row)

    @staticmethod
    def _of(pod_class: PodClass) -> Claim:
        assert pod_class.claim is not None  # noqa: S101 -- only variants with a claim are kept
        return pod_class.claim


_NO_WISH = Wish()
