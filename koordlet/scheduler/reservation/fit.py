"""Whether a pod fits on a node with the help of a reservation, and which one serves it best.

Covers: one node, for one class of pods: the arithmetic of the peers' policies, reasons, the choice.
Does not cover: which reservations a pod may use (``claims``), all nodes at once (the plugin).

The arithmetic. A node's requested amounts contain what each reservation holds and what its pods
use, each thing once. A pod that draws on R therefore fits where its request is at most
``allocatable - (requested - free(R))``. Restricted adds: for each name that R restricts, at most
``free(R)``. Default and Aligned do not ask what is left in R: the surplus comes from the node.

Which R: the smallest non-zero order label; else the one that is fullest afterwards (the mean, over
its names, of the share in use, in per cent, nothing for a name that would overflow); else the
first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from koordlet.model import resources
from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import device_choice, device_requests, device_room
from koordlet.scheduler.cluster.columns import FIXED, Columns
from koordlet.scheduler.framework import MAX_SCORE
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.reservation.claims import Claim
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import AllocatePolicy

_PODS = FIXED.index(requests.PODS)
NO_MATCH = "node(s) no reservations match reservation affinity"
NONE_SERVES = "node(s) no reservation(s) to meet the requirements"


@dataclass(frozen=True, slots=True)
class FitResult:
    """A node for a class: no reasons means that it fits."""

    reasons: tuple[str, ...] = ()
    #: The reservation that serves it there; ``None``: the node alone has room.
    chosen: ReservationInfo | None = None
    score: int = 0
    #: Fewer pods on the node would help.
    resolvable: bool = True


class ReservationFit:
    """One class of pods and its claim over the columns."""

    def __init__(
        self, pod_class: PodClass, claim: Claim, columns: Columns, ignored: Collection[str]
    ) -> None:
        self._columns = columns
        self._claim = claim
        self._pod_class = pod_class
        #: What was found, and at which version of the row: one decision asks several times.
        self._known: dict[int, tuple[int, FitResult]] = {}
        self._generation = -1
        self._asked = {
            name: amount
            for name, amount in pod_class.requests.real.items()
            if amount > 0 and name not in ignored and name != requests.PODS
        }
        self._devices = device_requests.rough_ask(self._asked, pod_class.annotations)
        self._kinds = sorted(
            (name, columns.resource(name), amount) for name, amount in self._asked.items()
        )

    def serves(self, pod_class: PodClass, columns: Columns) -> bool:
        """Whether it is of this class over these columns."""
        return self._pod_class is pod_class and self._columns is columns

    def judge(self, row: int) -> FitResult:
        """Whether and how a pod of the class fits on a node, as everything stands now."""
        if self._generation != self._claim.generation:
            self._known.clear()
            self._generation = self._claim.generation
        version = self._columns.stamps[row]
        known = self._known.get(row)
        if known is None or known[0] != version:
            known = self._known[row] = version, self._judge(row)
        return known[1]

    def _judge(self, row: int) -> FitResult:
        usable = self._claim.usable(row)
        required = self._claim.required
        if not usable:
            # Without any, the ordinary rule of fit decides, in its own words.
            return FitResult((NO_MATCH,), resolvable=False) if required else FitResult()
        if self._claim.wish.ignores:
            # Everything that reservations have left is room of the node for such a pod.
            total = resources.total(info.held() for info in usable)
            short = self._short(row, total, len(usable))
            return self._refused(tuple(sorted(short)), row) if short else FitResult()
        hidden = sum(info.reserve_pod is not None and not info.operating for info in usable)
        fitting: list[ReservationInfo] = []
        node: list[str] = []
        inside: list[str] = []
        for info in usable:
            if not required and not self._asked.keys() & info.spec.allocatable.keys():
                continue
            short = self._short(row, info.free(), hidden)
            lacking = self._lacking(info) or self._without_devices(info, row)
            if not short and not lacking:
                fitting.append(info)
            node += [reason for reason in short if reason not in node]
            inside += lacking
        if fitting:
            chosen = fitting[0] if len(fitting) == 1 else choose(fitting, self._asked)
            return FitResult(chosen=chosen, score=score(chosen, self._asked))
        if required:
            return self._refused((*sorted(node), *inside) or (NONE_SERVES,), row)
        # What it lacks with a reservation it lacks without one, too, and that is what is told.
        alone = node or self._short(row, {}, hidden)
        return self._refused(tuple(sorted(alone)), row) if alone else FitResult()

    def _refused(self, reasons: tuple[str, ...], row: int) -> FitResult:
        room = self._columns.allocatable
        hopeless = any(amount > room.item(kind, row) for _, kind, amount in self._kinds)
        return FitResult(reasons, resolvable=not hopeless)

    def _short(self, row: int, extra: Mapping[str, int], hidden: int) -> list[str]:
        """What the node lacks when ``extra`` is given back to it."""
        return short_by_node(self._columns, row, self._kinds, extra, hidden)

    def _lacking(self, info: ReservationInfo) -> list[str]:
        """What a Restricted reservation itself lacks."""
        if info.spec.policy is not AllocatePolicy.RESTRICTED:
            return []
        affinity = self._claim.wish.affinity
        named = affinity is not None and bool(affinity.name)
        lacking = []
        for name in sorted(info.spec.restricted):
            used = info.allocated.get(name, 0)
            room = info.spec.allocatable[name] - info.spec.kept.get(name, 0)
            asked = 1 if name == requests.PODS else self._asked.get(name, 0)
            if asked and asked > room - used:
                what = "Too many pods" if name == requests.PODS else f"Insufficient {name}"
                more = f", requested: {asked}, used: {used}, capacity: {room}" if named else ""
                lacking.append(f"Reservation(s) {what}{more}")
        return lacking

    def _without_devices(self, info: ReservationInfo, row: int) -> list[str]:
        """What of single devices cannot be had with it."""
        if not self._devices.requests:
            return []
        apart = device_room.DrawContext(info)
        chosen = device_choice.admit(self._devices, self._columns, row, apart)
        several = chosen.reasons if isinstance(chosen, device_room.DeviceRefusal) else ()
        return [f"Reservation(s) {reason}" for reason in several]


def short_by_node(
    columns: Columns,
    row: int,
    asked: Iterable[tuple[str, int, int]],
    extra: Mapping[str, int],
    hidden: int = 0,
) -> list[str]:
    """What a node lacks of names, kinds and amounts when ``extra`` is given back to it."""
    room, taken = columns.allocatable, columns.requested
    short = [
        f"Insufficient {name} by node"
        for name, kind, amount in asked
        if amount > room.item(kind, row) - taken.item(kind, row) + extra.get(name, 0)
    ]
    if taken.item(_PODS, row) - hidden + 1 > room.item(_PODS, row):
        short.append("Insufficient pods by node")
    return short


def choose(fitting: Sequence[ReservationInfo], asked: Mapping[str, int]) -> ReservationInfo:
    """The reservation that a pod draws on, of those that serve it on one node."""
    ordered = [info for info in fitting if info.spec.order]
    if ordered:
        return min(ordered, key=lambda info: info.spec.order)
    return max(fitting, key=lambda info: score(info, asked))


def score(info: ReservationInfo, asked: Mapping[str, int]) -> int:
    """How full it is afterwards, from 0 to 100."""
    shares = [
        MAX_SCORE * used // capacity if used <= capacity else 0
        for name, capacity in info.spec.allocatable.items()
        if capacity > 0
        for used in (asked.get(name, 0) + info.allocated.get(name, 0),)
    ]
    return sum(shares) // len(shares) if shares else 0
