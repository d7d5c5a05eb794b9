"""A MovePlan: which moves belong together, and whom they are for.

Covers: reading and making the object. Does not cover: how far it is (``plan_status``), its life
(``plan_flow``), finding moves (``make_room``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.model import duration, moment, resources
from koordlet.model.record import dataclass
from koordlet.scheduler.disruption import headroom
from koordlet.scheduler.migration.job import ABORT, PodRef
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.rescheduling import plan_status
from koordlet.scheduler.rescheduling.plan_status import PlanPhase, PlanStatus

#: Seconds, where a plan does not say.
TTL = 900.0
ACT, SHADOW = "Act", "Shadow"
#: Who began a plan, where no person did: an annotation, and the component as the limiter knows it.
STARTED_BY, STARTER = "koordlet.io/started-by", "defragment"


@dataclass(frozen=True, slots=True)
class PlanMove:
    """A pod, the node that it leaves and the one where room for its replacement is held."""

    pod: PodRef
    origin: str
    target: str
    #: Places of the moves that free its room.
    after: tuple[int, ...] = ()
    #: The gang that moves whole, by it and the other moves of the same; empty: its pod moves alone.
    gang: str = ""

    def body(self) -> dict[str, Any]:
        """The entry of a specification."""
        more = {"after": list(self.after), "gang": self.gang}
        named = {key: value for key, value in more.items() if value}
        return {"pod": self.pod.body(), "from": self.origin, "to": self.target, **named}


@dataclass(frozen=True, slots=True)
class PlanPlace:
    """A pod that is to fit, and the node where."""

    pod: PodRef
    node: str

    def body(self) -> dict[str, str]:
        """The entry of a specification."""
        return {**_named(self.pod), "node": self.node}


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """One plan."""

    name: str
    uid: str
    revision: str = ""
    #: Seconds since 1970.
    created: float = 0.0
    reason: str = ""
    #: It moves pods, and does not only say which it would.
    acts: bool = False
    ttl: float = TTL
    #: The pod that is to fit; ``None``: a node is emptied, or has room ahead.
    pod: PodRef | None = None
    #: The others of its gang that are to fit with it, where that waits whole.
    members: tuple[PlanPlace, ...] = ()
    #: What one more node is to have room for, without a pod that asks for it yet.
    room: Mapping[str, int] = field(default_factory=dict)
    #: The node that has room, or no pods that can move, in the end.
    node: str = ""
    moves: tuple[PlanMove, ...] = ()
    #: Somebody wants it to end.
    aborts: bool = False
    #: ``STARTER`` where it began by itself.
    starter: str = ""
    #: Why the object cannot be carried out.
    fault: str = ""
    status: PlanStatus = field(default_factory=PlanStatus)

    @property
    def mover(self) -> str:
        """Who its evictions are by, as the limiter knows movers."""
        return f"{STARTER if self.starter == STARTER else 'plan'}/{self.name}"

    @property
    def goal(self) -> str:
        """What it is for, as a sentence goes on."""
        return f"make room for {self.wanted}" if self.wanted else "empty a node"

    @property
    def wanted(self) -> str:
        """The pod that is to fit, or the size of one; empty: a node is emptied."""
        if self.pod is None:
            return headroom.spelled(self.room)
        more = f" and {len(self.members)} more of its gang" if self.members else ""
        return f"{self.pod}{more}"

    @property
    def places(self) -> tuple[PlanPlace, ...]:
        """All that are to fit, its pod first; none where there is no pod."""
        return () if self.pod is None else (PlanPlace(self.pod, self.node), *self.members)

    def leaving(self, number: int) -> list[PlanMove]:
        """The moves whose room a place takes over: those of its node, for the first one there."""
        node = self.places[number].node
        taken = any(place.node == node for place in self.places[:number])
        return [] if taken else [move for move in self.moves if move.origin == node]

    def job(self, place: int) -> str:
        """The name of the job of a move: there is never a second one."""
        return f"{self.name[:200]}-{self.uid[:8]}-{place}"

    def leader(self, place: int) -> str:
        """The job that leads the gang of a move, where it is another one; empty: there is none."""
        gang = self.moves[place].gang
        first = next(n for n, move in enumerate(self.moves) if move.gang == gang)
        return self.job(first) if gang and first != place else ""


def read(body: Body) -> MovePlan:
    """A plan, whatever stands there: one that cannot be read says why."""
    try:
        return decode(body)
    except BadObjectError as error:
        meta, status = objects.metadata(body), objects.part(body, "status")
        phase, created = str(status.get("phase")), 0.0
        with contextlib.suppress(BadObjectError):
            created = _created(meta)
        return MovePlan(
            name=objects.text(body, "name"),
            uid=objects.text(body, "uid"),
            revision=objects.revision(body),
            created=created,
            fault=str(error),
            aborts=objects.part(meta, "annotations").get(ABORT) == "true",
            status=PlanStatus(
                phase=PlanPhase(phase) if phase in set(PlanPhase) else PlanPhase.PENDING,
                reason=str(status.get("reason") or ""),
                message=str(status.get("message") or ""),
            ),
        )


def decode(body: Body) -> MovePlan:
    """A plan; ``BadObjectError`` names the field that cannot be read."""
    meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
    mode = wire.text(spec, "mode") or SHADOW
    if mode not in {ACT, SHADOW}:
        raise BadObjectError(f"spec.mode {mode!r} is none of {ACT}, {SHADOW}")
    node, (pod, members, room) = wire.text(spec, "node"), _for(spec)
    moves = tuple(_moves(wire.bodies(spec, "moves")))
    if node and not moves:
        raise BadObjectError("spec.node needs spec.moves; without moves a node is chosen")
    if moves and (pod is not None or room) and not node:
        raise BadObjectError("spec.for with spec.moves needs spec.node, where it is to fit")
    if members and not moves:
        raise BadObjectError("spec.for.members needs spec.moves; without moves members are chosen")
    return MovePlan(
        name=wire.name(meta),
        uid=wire.text(meta, "uid"),
        revision=wire.text(meta, "resourceVersion"),
        created=_created(meta),
        reason=wire.text(spec, "reason"),
        acts=mode == ACT,
        ttl=_ttl(spec),
        pod=pod,
        members=members,
        room=room,
        node=node,
        moves=moves,
        aborts=wire.mapping(meta, "annotations").get(ABORT) == "true",
        starter=str(wire.mapping(meta, "annotations").get(STARTED_BY) or ""),
        status=plan_status.decode(wire.mapping(body, "status")),
    )


def _created(meta: Body) -> float:
    return wire.instant(meta.get("creationTimestamp"), "metadata.creationTimestamp") or 0.0


def _for(spec: Body) -> tuple[PodRef | None, tuple[PlanPlace, ...], Mapping[str, int]]:
    """The pod that is to fit and the others of its gang, or the size of one."""
    if spec.get("for") is None:
        return None, (), {}
    wanted = wire.mapping(spec, "for")
    if wanted.get("room") is None:
        pod = _pod(wire.mapping(wanted, "pod"), "spec.for.pod")
        return pod, tuple(_members(pod, wire.bodies(wanted, "members"))), {}
    for other, spelled in (("pod", "a pod"), ("members", "members")):
        if wanted.get(other) is not None:
            raise BadObjectError(f"spec.for has {spelled} and room; one of them is wanted")
    try:
        return None, (), headroom.size(wire.mapping(wanted, "room"))
    except ValueError as error:
        raise BadObjectError(f"spec.for.room: {error}") from error


def _members(pod: PodRef, entries: Iterable[Body]) -> Iterable[PlanPlace]:
    known = {str(pod)}
    for number, entry in enumerate(entries, 1):
        where = f"spec.for.members[{number - 1}]"
        if number >= kinds.MOST_MOVES:
            raise BadObjectError(f"spec.for is for more than {kinds.MOST_MOVES} pods")
        place = PlanPlace(_pod(entry, where), wire.text(entry, "node"))
        if not place.node:
            raise BadObjectError(f"{where} needs a node, where it is to fit")
        if str(place.pod) in known:
            raise BadObjectError(f"{where}: pod {place.pod} is there twice")
        known.add(str(place.pod))
        yield place


def _pod(body: Body, where: str) -> PodRef:
    ref = PodRef(*wire.texts(body, "namespace", "name", "uid"))
    if not (ref.namespace and ref.name):
        raise BadObjectError(f"{where} needs a namespace and a name")
    return ref


def _moves(entries: Iterable[Body]) -> Iterable[PlanMove]:
    pods: set[tuple[str, str]] = set()
    for place, entry in enumerate(entries):
        where = f"spec.moves[{place}]"
        if place >= kinds.MOST_MOVES:
            raise BadObjectError(f"spec.moves has more than {kinds.MOST_MOVES} moves")
        pod = _pod(wire.mapping(entry, "pod"), f"{where}.pod")
        origin, target = wire.texts(entry, "from", "to")
        if not (origin and target) or origin == target:
            raise BadObjectError(f"{where} needs from and to, which are two nodes")
        if (pod.namespace, pod.name) in pods:
            raise BadObjectError(f"{where}: pod {pod} is moved by another move")
        pods.add((pod.namespace, pod.name))
        after = wire.sequence(entry, "after")
        if not all(type(each) is int and 0 <= each < place for each in after):
            raise BadObjectError(f"{where}.after names places of moves before it")
        gang = wire.text(entry, "gang")
        if gang and after:
            why = "a gang has room for all its members before one leaves"
            raise BadObjectError(f"{where}.after: {why}")
        yield PlanMove(pod, origin, target, tuple(after), gang)


def _ttl(spec: Body) -> float:
    if spec.get("ttl") is None:
        return TTL
    try:
        seconds = moment.duration(spec["ttl"])
    except ValueError as error:
        raise BadObjectError(f"spec.ttl: {error}") from error
    if seconds <= 0:
        raise BadObjectError("spec.ttl: a time above 0 is needed")
    return seconds


def request(
    name: str,
    *,
    pod: PodRef | None = None,
    room: Mapping[str, int] | None = None,
    acts: bool = True,
    reason: str = "",
    ttl_seconds: float = TTL,
    starter: str = "",
) -> dict[str, Any]:
    """A new plan for a store, whose moves are found by whoever carries it out."""
    spec: dict[str, Any] = {"mode": ACT if acts else SHADOW, "ttl": duration.text(ttl_seconds)}
    if reason:
        spec["reason"] = reason
    if pod is not None:
        spec["for"] = {"pod": _named(pod)}
    elif room:
        spec["for"] = {"room": resources.canonical(room)}
    return {
        "apiVersion": kinds.MOVE_PLANS.api_version,
        "kind": kinds.MOVE_PLANS.name,
        "metadata": {
            "name": name,
            **({"annotations": {STARTED_BY: starter}} if starter else {}),
        },
        "spec": spec,
    }


def _named(pod: PodRef) -> Mapping[str, str]:
    return {key: value for key, value in pod.body().items() if value}


def moves_patch(
    node: str,
    moves: Iterable[PlanMove],
    pod: PodRef | None,
    members: Iterable[PlanPlace] = (),
) -> dict[str, Any]:
    """The patch of a specification by the moves that were found, and for whom."""
    spec: dict[str, Any] = {"node": node, "moves": [move.body() for move in moves]}
    if pod is not None:
        others = [place.body() for place in members]
        spec["for"] = {"pod": _named(pod), **({"members": others} if others else {})}
    return {"spec": spec}
