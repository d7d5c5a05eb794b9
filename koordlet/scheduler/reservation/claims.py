"""The reservations that a class of pods may use, by node, kept up to date.

Covers: finding the reservations that may select a pod; one claim for each class that reservations
select (and for each pod that one names). Does not cover: whether they select it (``matching``),
room (``fit``).

Rules:
1. A pod is looked up by its labels, owner references and name, so unrelated reservations cost
   nothing. Only owner entries that name none of these (``[{}]``, ``notin``) are tried for every
   class. The index finds too many rather than too few.
2. A claim is filled once. From then on each reservation that is added, changed or removed is
   compared with the living claims and marks its node as changed: a pod costs what has happened, not
   what there is.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from koordlet.kubeapi import selectors
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.reservation import keys, matching
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.matching import Mismatch, ReservationDemand
from koordlet.scheduler.reservation.spec import ReservationOwner

#: Claims that are kept up to date at any one time; the longest unused is looked up anew.
MOST = 2048
#: Classes without a claim that are remembered.
_MOST_UNCLAIMED = 100_000
_NO_WISH = ReservationDemand()

_Key = tuple[str, ...]
_ALL: _Key = ("all",)
#: The first words of keys that mean one pod.
_NAMING = ("uid", "pod")


class Index:
    """Reservations by what their owners say."""

    def __init__(self) -> None:
        self._by_key: dict[_Key, dict[str, ReservationInfo]] = {}
        #: Grows with each change: what was looked up before it may be different now.
        self.epoch = 0
        #: How many of the keys are those of single pods.
        self._names = 0

    def add(self, info: ReservationInfo) -> None:
        """From now on it is found."""
        for key in _keys(info):
            if key not in self._by_key:
                self._by_key[key] = {}
                self._names += key[0] in _NAMING
            self._by_key[key][info.spec.uid] = info
        self.epoch += 1

    def remove(self, info: ReservationInfo) -> None:
        """Not any more."""
        for key in _keys(info):
            several = self._by_key.get(key)
            if several is None:
                continue
            several.pop(info.spec.uid, None)
            if not several:
                del self._by_key[key]
                self._names -= key[0] in _NAMING
        self.epoch += 1

    def personal(self, pod: Pod) -> bool:
        """Whether a reservation names this pod: then its class does not say everything."""
        return bool(self._names) and any(key in self._by_key for key in _own_keys(pod))

    def find(self, pod: Pod) -> list[ReservationInfo]:
        """Those that may mean a pod, in the order of their arrival."""
        meant: dict[str, ReservationInfo] = {}
        for key in _pod_keys(pod):
            meant |= self._by_key.get(key, {})
        return sorted(meant.values(), key=lambda info: info.position)

    def everyone(self) -> list[ReservationInfo]:
        """All of them."""
        known = {uid: info for several in self._by_key.values() for uid, info in several.items()}
        return sorted(known.values(), key=lambda info: info.position)


def _keys(info: ReservationInfo) -> set[_Key]:
    """Where a reservation is filed; one that matches nobody is filed under a key of no pod."""
    if info.spec.fault:
        return {("nobody",)}
    return {key for owner in info.spec.owners for key in _owner_keys(owner)}


def _owner_keys(owner: ReservationOwner) -> set[_Key]:
    """All keys under which an entry must be filed to be found: the most telling part decides."""
    pod, controller = owner.object, owner.controller
    if pod is not None and (pod.uid or pod.name):
        return {("uid", pod.uid) if pod.uid else ("pod", pod.namespace, pod.name)}
    if controller is not None and (controller.uid or controller.name):
        by_uid = ("controller", controller.uid)
        return {by_uid if controller.uid else ("controlled", controller.name)}
    return _selector_keys(owner.selector)


def _selector_keys(selector: selectors.Compiled | None) -> set[_Key]:
    for requirement in selector.labels if selector is not None else ():
        if requirement.operator is selectors.Operator.IN:
            return {("label", requirement.key, value) for value in requirement.values}
        if requirement.operator is selectors.Operator.EXISTS:
            return {("labelled", requirement.key)}
    return {_ALL}


def _own_keys(pod: Pod) -> tuple[_Key, ...]:
    return ("uid", pod.uid), ("pod", pod.namespace, pod.name), ("pod", "", pod.name)


def _pod_keys(pod: Pod) -> Iterator[_Key]:
    yield _ALL
    yield from _own_keys(pod)
    for reference in pod.pod_class.references:
        yield "controller", reference.uid
        yield "controlled", reference.name
    for key, value in pod.pod_class.labels.items():
        yield "label", key, value
        yield "labelled", key


class Claim:
    """The reservations of one class, by row."""

    def __init__(self, pod: Pod, wish: ReservationDemand) -> None:
        self.pod = pod
        self.wish = wish
        self.rows: dict[int, dict[str, ReservationInfo]] = {}
        #: Why reservations whose owner it is may not be used, for the message.
        self.refused: dict[str, Mismatch] = {}
        self.generation = -1
        #: Whether any of them is to be hidden from the class.
        self.hides: dict[str, ReservationInfo] = {}
        #: Grows when a node joins ``rows`` or leaves them.
        self.changes = 0
        #: The arithmetic of the class (``fit.ReservationFit``), kept by whoever made it.
        self.judge: object = None
        #: Whether the class fits nowhere without one of them.
        self.required = wish.affinity is not None and not wish.ignores

    def usable(self, row: int) -> list[ReservationInfo]:
        """Those on a node that may be drawn on now, in the order of their arrival."""
        several = self.rows.get(row)
        if not several:
            return []
        ignores = self.wish.ignores
        return [info for info in several.values() if (info.phase.holds if ignores else info.usable)]

    def consider(self, info: ReservationInfo, columns: Columns) -> bool:
        """A reservation is here, or is another than before; whether that means this class."""
        before = self.forget(info)
        if info.row < 0 or not info.phase.holds:
            return before
        if not self.wish.ignores:
            if not matching.owned(info.spec, self.pod):
                return before
            node = columns.nodes[info.row]
            why = matching.mismatch(info.spec, self.pod, self.wish, node.labels if node else {})
            if why is not None:
                self.refused[info.spec.uid] = why
                return True
        if info.row not in self.rows:
            self.changes += 1
        several = self.rows.setdefault(info.row, {})
        several[info.spec.uid] = info
        if len(several) > 1:
            ordered = sorted(several.values(), key=lambda known: known.position)
            self.rows[info.row] = {known.spec.uid: known for known in ordered}
        if _shows(info, self.pod.pod_class):
            self.hides[info.spec.uid] = info
        return True

    def forget(self, info: ReservationInfo) -> bool:
        """A reservation is gone; whether it was here."""
        uid = info.spec.uid
        self.hides.pop(uid, None)
        was_here = self.refused.pop(uid, None) is not None
        for row in list(self.rows) if info.row < 0 else [info.row]:
            several = self.rows.get(row, {})
            if several.pop(uid, None) is not None:
                was_here = True
                if not several:
                    del self.rows[row]
                    self.changes += 1
        return was_here


def _shows(info: ReservationInfo, pod_class: PodClass) -> bool:
    """Whether a reserve pod could keep its own owners away: by ports, or by terms about pods."""
    reserve_pod = info.reserve_pod
    if reserve_pod is None or info.operating:
        return False
    its = reserve_pod.pod_class
    return bool(its.ports or its.termed or pod_class.termed or pod_class.spread)


def claim_of(pod_class: PodClass) -> Claim | None:
    """The claim of a class; only the variant of a class that a pod is tried as has one."""
    claim = pod_class.claim
    return claim if isinstance(claim, Claim) else None


class Claims:
    """The index, all living claims, and the variants of pod classes that carry them."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._index = Index()
        self._live: OrderedDict[tuple[PodClass, str], PodClass] = OrderedDict()
        #: Classes that no reservation means, as of an epoch of the index.
        self._none: dict[PodClass, int] = {}
        self._wishes: dict[PodClass, ReservationDemand] = {}
        #: The pod that was asked for last, its class, the state of things then, the answer.
        self._asked: Any = (None, None, (-1, -1), None)

    def refine(self, pod: Pod, pod_class: PodClass) -> PodClass:
        """The class that a pod of this class is tried as; one decision asks several times."""
        version = self._index.epoch, self._columns.generation
        asked = self._asked
        if not (asked[0] is pod and asked[1] is pod_class and asked[2] == version):
            self._asked = pod, pod_class, version, self._refined(pod, pod_class)
        refined: PodClass = self._asked[3]
        return refined

    def _refined(self, pod: Pod, pod_class: PodClass) -> PodClass:
        personal = self._index.personal(pod)
        if not personal and self._none.get(pod_class) == self._index.epoch:
            return pod_class
        key = pod_class, pod.uid if personal else ""
        known = self._live.get(key)
        if known is None:
            return self._made(pod, key)
        self._live.move_to_end(key)
        claim = claim_of(known)
        if claim is not None and claim.generation != self._columns.generation:
            self._fill(claim)
        return known

    def _made(self, pod: Pod, key: tuple[PodClass, str]) -> PodClass:
        pod_class, personal = key
        # A claim of a class is looked up for a pod without a name: who is named has one of its own.
        meant = pod if personal else dataclasses.replace(pod, name="", uid="")
        claim = Claim(meant, self.wish(pod_class))
        self._fill(claim)
        if claim.wish.affinity is None and not claim.rows:
            if not personal:
                if len(self._none) > _MOST_UNCLAIMED:
                    self._none.clear()
                self._none[pod_class] = self._index.epoch
            return pod_class
        variant = self._live[key] = dataclasses.replace(pod_class, claim=claim)
        while len(self._live) > MOST:
            self._live.popitem(last=False)
        return variant

    def wish(self, pod_class: PodClass) -> ReservationDemand:
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
        for info in self._index.everyone() if claim.wish.ignores else self.find(claim.pod):
            claim.consider(info, self._columns)

    def find(self, pod: Pod) -> list[ReservationInfo]:
        """Reservations that may select a pod, in the order of their arrival."""
        return self._index.find(pod)

    def add(self, info: ReservationInfo) -> None:
        """Take in a reservation that has its node."""
        self._index.add(info)
        self.consider(info)

    def consider(self, info: ReservationInfo) -> None:
        """Compare a reservation that is new or has changed with every living claim."""
        self._touch(info, [claim.consider(info, self._columns) for claim in self._claims()])

    def remove(self, info: ReservationInfo) -> None:
        """Forget a reservation that is gone or holds nothing any more."""
        self._index.remove(info)
        self._touch(info, [claim.forget(info) for claim in self._claims()])

    def _claims(self) -> Iterator[Claim]:
        return filter(None, map(claim_of, self._live.values()))

    def _touch(self, info: ReservationInfo, concerned: list[bool]) -> None:
        """Mark the node as changed where any claim has to do with the reservation."""
        if any(concerned) and info.row >= 0:
            self._columns.touch(info.row)
