"""Reservations as objects come and go: from their JSON into the book, and what to store about them.

Covers: objects that appear, change and vanish; stand-ins; phases that are due; statuses.
Does not cover: reading and writing a store, the clock (given), choosing nodes (the cycle).

One object that cannot be read costs itself: it is kept with its error, which its condition says.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from koordlet.kubeapi import objects
from koordlet.model import spelling
from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import devices
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.objects import requests, wire
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.reservation import keys, lifecycle, parsing, preallocation
from koordlet.scheduler.reservation.book import Book
from koordlet.scheduler.reservation.held import Held
from koordlet.scheduler.reservation.reserve_pod import StandIns
from koordlet.scheduler.reservation.spec import Phase, Spec, Status


@dataclass(slots=True)
class Rejected:
    """An object that cannot be read, and why."""

    name: str
    uid: str
    error: str
    stored: Status = field(default_factory=Status)

    def status(self, now: float) -> Status:
        """What should be stored about it."""
        held = Held(Spec(name=self.name, uid=self.uid, template={}), self.stored)
        held.phase = self.stored.phase
        return lifecycle.status(held, now, self.error)


class Register:
    """Every Reservation object."""

    def __init__(self, columns: Columns, decoder: Decoder) -> None:
        self.columns = columns
        self.book = Book(columns)
        self.rejected: dict[str, Rejected] = {}
        self._stand_ins = StandIns(decoder)
        #: Whether one whose room is there has what is chosen by number, too.
        self.ready: Callable[[Held, Columns], bool] = lambda *_: True
        #: Why a pending one has no node, by UID.
        self.messages: dict[str, str] = {}

    def put(self, body: Body) -> Pod | None:
        """An object is there, or is another than before; the stand-in that is to be placed."""
        name = objects.text(body, "name")
        try:
            spec, stored = parsing.read(body), parsing.read_status(body)
            known = self.book.all.get(spec.uid)
            stand_in = self._stand_ins.make(spec, known.position if known else len(self.book.all))
        except BadObjectError as error:
            self._reject(name, body, str(error))
            return None
        self.rejected.pop(name, None)
        if known is not None:
            if known.row >= 0 and _older(objects.revision(body), known.revision):
                return None  # sent before our own last write, which follows
            known.revision = objects.revision(body)
            self.book.touched.add(spec.uid)
            return self._change(known, spec, stored, stand_in)
        self._replace(spec)
        held = Held(spec, stored, phase=stored.phase, node=stored.node)
        held.revision = objects.revision(body)
        self.book.touched.add(spec.uid)
        self.book.add(held)
        if stored.phase.over:
            return None
        if stored.phase.holds and stored.node:
            self._restore(held, stand_in)
            return None
        held.phase = Phase.PENDING
        return self._to_place(held, stand_in)

    def _to_place(self, held: Held, stand_in: Pod) -> Pod | None:
        """Who matches nobody is not worth a place; its condition says why."""
        held.stand_in = stand_in
        if held.spec.fault:
            self.messages[held.spec.uid] = held.spec.fault
            return None
        return stand_in

    def _replace(self, spec: Spec) -> None:
        """One of the same name and another UID is gone, whether or not somebody said so."""
        other = self.book.named(spec.name)
        if other is not None:
            self.book.remove(other)

    def _reject(self, name: str, body: Body, error: str) -> None:
        try:
            stored = parsing.read_status(body)
        except BadObjectError:
            stored = Status()
        known = self.book.named(name)
        if known is not None and known.spec.uid == objects.text(body, "uid"):
            # What it held it goes on holding: a broken edit must not free somebody's room.
            known.stored = stored
            self.messages[known.spec.uid] = error
            return
        self.rejected[name] = Rejected(name, objects.text(body, "uid"), error, stored)

    def _restore(self, held: Held, stand_in: Pod) -> None:
        """It had its node before we knew it."""
        held.stand_in = stand_in
        row = self.columns.rows.get(held.stored.node)
        if row is None:
            held.orphaned = True
            return
        pods, pledged = _adopted(held.spec)
        held.adopted, held.pledged = pods, pledged
        self.book.bind(held, stand_in, row, phase=held.stored.phase)

    def _change(self, held: Held, spec: Spec, stored: Status, stand_in: Pod) -> Pod | None:
        held.stored = stored
        if stored.phase.over and not held.phase.over:
            self.book.turn(held, stored.phase)
        if held.phase is Phase.PENDING and stored.phase.holds and stored.node:
            # Another scheduler, or we in a former life, gave it a node.
            held.phase, held.node, held.spec = stored.phase, stored.node, spec
            self._restore(held, stand_in)
            return None
        if held.row >= 0:
            if spec != held.spec:
                before = held.stand_in
                if before is not None and not stand_in.chosen:
                    # What was chosen for it is on its way to the store.
                    stand_in.inherit(before)
                self.book.change(held, spec, stand_in)
            return None
        held.spec = spec
        return self._to_place(held, stand_in) if held.phase is Phase.PENDING else None

    def drop(self, name: str) -> Held | None:
        """The object is gone; its pods keep what they have."""
        self.rejected.pop(name, None)
        held = self.book.named(name)
        if held is not None:
            self.messages.pop(held.spec.uid, None)
            self.book.remove(held)
        return held

    def node_came(self, name: str) -> None:
        """A node is there (again): what was reserved on it is held from now on."""
        for held in self.book.all.values():
            lost = held.row < 0 and held.phase.holds and held.node == name
            if lost and held.stand_in is not None:
                self._restore(held, held.stand_in)

    def rebase(self, columns: Columns) -> None:
        """The columns were built anew: hold the same in them."""
        before = sorted(self.book.all.values(), key=lambda one: one.position)
        touched = self.book.touched
        self.columns, self.book = columns, Book(columns)
        self.book.touched = touched
        for held in before:
            held.row, held.relief, held.owners = -1, {}, {}
            held.count()
            self.book.add(held)
            row = columns.rows.get(held.node, -1) if held.phase.holds else -1
            if row >= 0 and held.stand_in is not None:
                self.book.bind(held, held.stand_in, row, phase=held.phase)

    def of(self, stand_in: Pod) -> Held | None:
        """The reservation that a pod stands for."""
        return self.book.all.get(stand_in.stands_for)

    def placed(self, stand_in: Pod, row: int, adopted: Iterable[Pod] = ()) -> Held:
        """A node was found. A pre-allocation waits until there is room; its pods run on."""
        held = self.book.all[stand_in.stands_for]
        self.messages.pop(held.spec.uid, None)
        several = tuple(adopted)
        phase = Phase.WAITING if held.spec.pre_allocation is not None else Phase.AVAILABLE
        self.book.bind(held, stand_in, row, phase=phase, adopted=several)
        if held.phase is Phase.WAITING and self._released(held):
            self.book.turn(held, Phase.AVAILABLE)
        return held

    @staticmethod
    def adoption(held: Held) -> dict[str, str]:
        """The annotation by which a reservation remembers whom it adopted, with what."""
        if not held.adopted:
            return {}
        amounts = spelling.resources(held.pledged)
        told = {"pods": sorted(held.adopted), "resources": amounts}
        return {keys.ADOPTED: json.dumps(told, separators=(",", ":"))}

    def unplaced(self, held: Held) -> Pod | None:
        """The node could not be written down: back to where it was."""
        stand_in = held.stand_in
        for pod in held.owners.values():
            if pod.uid in held.adopted:
                pod.draws_on = pod.drawn_name = ""
        self.book.withdraw(held)
        return stand_in

    def failed(self, stand_in: Pod, message: str) -> None:
        """No node was found."""
        self.book.touched.add(stand_in.stands_for)
        self.messages[stand_in.stands_for] = message

    def advance(self, now: float) -> list[Held]:
        """Bring every phase to where it should be; those that changed."""
        return [held for held in self.book.all.values() if self.step(held, now)]

    def step(self, held: Held, now: float) -> bool:
        """Bring one phase to where it should be; whether it changed."""
        if held.phase.over:
            return False
        released = held.phase is not Phase.WAITING or self._released(held)
        there = held.node in self.columns.rows and not held.orphaned
        phase = lifecycle.advanced(held, now, node_exists=there, room_released=released)
        if phase is held.phase:
            return False
        self.book.turn(held, phase)
        return True

    def _released(self, held: Held) -> bool:
        return preallocation.released(held, self.columns) and self.ready(held, self.columns)

    def status(self, held: Held, now: float) -> Status:
        """What should be stored about one."""
        return lifecycle.status(held, now, self.messages.get(held.spec.uid, ""))


def _older(one: str, other: str) -> bool:
    """Whether a revision is from before another; where they are no numbers, nobody knows."""
    numbers = one.isascii() and one.isdigit() and other.isascii() and other.isdigit()
    return numbers and int(one) < int(other)


def _adopted(spec: Spec) -> tuple[frozenset[str], Mapping[str, int]]:
    """What a pre-allocation adopted when it was bound, as its annotation remembers it."""
    spelled = spec.annotations.get(keys.ADOPTED)
    if not spelled:
        return frozenset(), {}
    try:
        body = json.loads(spelled)
        pods = frozenset(wire.strings(body, "pods"))
        return pods, requests.amounts(body, "resources", requests.MOST_REQUEST)
    except (ValueError, AttributeError):
        return frozenset(), {}


def documents(register: Register, now: float) -> list[dict[str, object]]:
    """Every reservation as ``koordlet sim`` tells of it, in the order of their arrival."""
    several = [
        (held.spec.name, register.status(held, now))
        for held in sorted(register.book.all.values(), key=lambda one: one.position)
    ]
    several += [(one.name, one.status(now)) for one in register.rejected.values()]
    return [
        {
            "name": name,
            "phase": status.phase.value,
            "node": status.node or None,
            "allocatable": dict(status.allocatable),
            "allocated": dict(status.allocated),
            "currentOwners": [dict(one) for one in status.owners],
            "conditions": [one.body() for one in status.conditions],
            **_devices(register.book.named(name)),
        }
        for name, status in several
    ]


def _devices(held: Held | None) -> dict[str, object]:
    """The devices that were chosen for one; nothing where there are none."""
    mine = held.stand_in if held is not None and held.row >= 0 else None
    return {"devices": devices.spelled(mine.devices)} if mine is not None and mine.devices else {}
