"""NodeResourcesFit: what fits, and how full a node becomes.

Covers: the filter, the three strategies of the score. Does not cover: what a pod asks for
(``scheduler.objects.requests``), how even a node becomes (``balanced_allocation``).

All divisions are those of 64-bit integers, cut toward zero, where the peer's are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import FIXED, Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.cluster.vectors import Bools, Ints, Rows
from koordlet.scheduler.objects import requests, wire
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.reservation.claims import Claim, claim_of

_PODS = FIXED.index(requests.PODS)
#: The highest bit of a code: at least one amount would not fit on the empty node either.
_HOPELESS = 1 << 62
_MOST_BITS = 60
#: Needed of what does not count: fits in any room.
_NOTHING = -(1 << 62)


#: Resources and their weights in a score.
Weighted = tuple[tuple[str, int], ...]


def weighted(bodies: Sequence[wire.Body]) -> Weighted:
    """Resources of a strategy; cpu and memory where none are given."""
    resources = tuple(
        (wire.text(body, "name"), wire.integer(body, "weight", 1) or 1) for body in bodies
    )
    if any(not 1 <= weight <= 100 for _, weight in resources):
        raise BadObjectError("a weight of a resource is from 1 to 100")
    return resources or ((requests.CPU, 1), (requests.MEMORY, 1))


class NodeResourcesFit(framework.Plugin):
    """Room for everything that the pod asks for; and the score of the profile's strategy."""

    name = "NodeResourcesFit"
    listens = (
        ActionType.NODE_NEW
        | ActionType.NODE_ROOM
        | ActionType.POD_GONE
        | ActionType.POD_NEW
        | ActionType.DEVICE_CLASSES
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self._ignored = frozenset(wire.strings(args, "ignoredResources"))
        self._groups = frozenset(wire.strings(args, "ignoredResourceGroups"))
        strategy = wire.mapping(args, "scoringStrategy")
        self._resources = weighted(wire.bodies(strategy, "resources"))
        kind = wire.text(strategy, "type", "LeastAllocated")
        ramp = wire.mapping(strategy, "requestedToCapacityRatio")
        self._shape: tuple[tuple[int, int], ...] = ()
        if kind == "RequestedToCapacityRatio":
            self._shape = shape(wire.bodies(ramp, "shape"))
        elif kind not in {"LeastAllocated", "MostAllocated"}:
            raise BadObjectError(f"scoringStrategy.type {kind!r} is unknown")
        self._kind = kind

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        if pod_class.adopts:
            # Its room is what running pods still have: the reservation plugin has judged it.
            return None
        asked = sorted(
            (columns.resource(name), amount, name)
            for name, amount in pod_class.requests.real.items()
            if amount > 0 and name != requests.PODS and not self._ignores(name)
        )
        claim, claimable = claim_of(pod_class), pod_class.claimable
        if claim is None:
            return ServedFit(columns, asked, claimable) if claimable else Fit(columns, asked)
        return Eased(columns, asked, claimable, claim)

    def concerned(self, event: ClusterEvent) -> bool:
        # A pod that comes takes room, unless it is room for others: then it helps those.
        pod = event.pod
        return event.what is not ActionType.POD_NEW or (
            pod is not None and (bool(pod.reserve_pod_of) or pod.operates)
        )

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        return not event.what & ActionType.DEVICE_CLASSES or bool(pod_class.extended)

    def _ignores(self, name: str) -> bool:
        extended = "/" in name and not name.partition("/")[0].endswith("kubernetes.io")
        return extended and (name in self._ignored or name.partition("/")[0] in self._groups)

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        chosen = Chosen(columns, pod_class.requests.incoming, self._resources, nonzero=True)
        if self._kind == "RequestedToCapacityRatio":
            return Ratio(chosen, self._shape)
        return Least(chosen) if self._kind == "LeastAllocated" else Most(chosen)


class Fit(framework.Filter):
    """One bit a resource that is short, bit 0 for the number of pods."""

    kind = framework.Kind.LOAD

    def __init__(self, columns: Columns, asked: Sequence[tuple[int, int, str]]) -> None:
        self._columns = columns
        self._names = [name for _, _, name in asked][:_MOST_BITS]
        self.pairs = [(kind, amount) for kind, amount, _ in asked]
        self._which: Ints = np.array([kind for kind, _ in self.pairs], np.int64)
        amounts = [amount for _, amount in self.pairs]
        self._amounts: Ints = np.array(amounts, np.int64).reshape(-1, 1)
        bits = [1 << (1 + min(place, _MOST_BITS)) for place in range(len(asked))]
        self._bits: Ints = np.array([[bit] for bit in bits], np.int64).reshape(-1, 1)

    def codes(self, rows: Rows) -> Ints:
        every, held = self._columns.allocatable, self._columns.requested
        codes: Ints = (held[_PODS, rows] + 1 > every[_PODS, rows]).astype(np.int64)
        if self._which.size:
            room = every[self._which[:, None], rows]
            amounts = self._needed(room)
            short = amounts > room - held[self._which[:, None], rows]
            if short.any():
                codes = codes | np.bitwise_or.reduce(np.where(short, self._bits, 0), axis=0)
                codes = codes | np.where((amounts > room).any(axis=0), _HOPELESS, 0)
        return codes

    def _needed(self, _room: Ints) -> Ints:
        """What is needed of each amount on each node; less than nothing where it does not count."""
        return self._amounts

    def allows(self, row: int) -> bool:
        every, held = self._columns.allocatable, self._columns.requested
        if held.item(_PODS, row) + 1 > every.item(_PODS, row):
            return False
        return all(
            amount <= every.item(kind, row) - held.item(kind, row) for kind, amount in self.pairs
        )

    def amounts(self, real: Ints) -> tuple[int, ...]:
        """Of what a pod takes, that which decides here: the pod itself, then each amount asked."""
        return 1, *(real.item(kind) if kind < real.size else 0 for kind, _ in self.pairs)

    def spare(self, row: int) -> list[int]:
        """What would be left on a node of the same, were the pod there too; negative: it lacks."""
        every, held = self._columns.allocatable, self._columns.requested
        return [
            every.item(kind, row) - held.item(kind, row) - amount
            for kind, amount in ((_PODS, 1), *self.pairs)
        ]

    def refusal(self, row: int, spare: Sequence[int]) -> framework.Verdict:
        """Why a node is refused where so much would be left of each, of some less than nothing."""
        code = int(spare[0] < 0)
        for place, ((kind, amount), left) in enumerate(zip(self.pairs, spare[1:], strict=True)):
            if left < 0:
                code |= 1 << (1 + min(place, _MOST_BITS))
                if amount > self._columns.allocatable.item(kind, row):
                    code |= _HOPELESS
        return self.verdict(code)

    def verdict(self, code: int) -> framework.Verdict:
        reasons = ["Too many pods"] if code & 1 else []
        reasons += [
            f"Insufficient {name}"
            for place, name in enumerate(self._names)
            if code >> 1 + place & 1
        ]
        return framework.Verdict(tuple(reasons), resolvable=not code & _HOPELESS)


class ServedFit(Fit):
    """The same where classes of devices serve resources: a node without them gives devices.

    Whether it has some is for DynamicResources to say.
    """

    def __init__(
        self,
        columns: Columns,
        asked: Sequence[tuple[int, int, str]],
        claimable: frozenset[str],
    ) -> None:
        super().__init__(columns, asked)
        given = [name in claimable for _, _, name in asked]
        self._given: Bools = np.array(given, np.bool_).reshape(-1, 1)

    def _needed(self, room: Ints) -> Ints:
        needed: Ints = np.where(self._given & (room == 0), _NOTHING, self._amounts)
        return needed

    def allows(self, row: int) -> bool:
        if super().allows(row):
            return True
        return bool(self._given.any()) and not self.codes(np.array([row], np.intp))[0]


class Eased(ServedFit):
    """The same for pods that may draw on reservations: where they can, room is judged with those.

    The reservation plugin, which comes first, has refused such a node already if it lacks room.
    """

    def __init__(
        self,
        columns: Columns,
        asked: Sequence[tuple[int, int, str]],
        claimable: frozenset[str],
        claim: Claim,
    ) -> None:
        super().__init__(columns, asked, claimable)
        self._claim = claim

    def codes(self, rows: Rows) -> Ints:
        codes = super().codes(rows)
        for place in np.flatnonzero(codes).tolist():
            if self._claim.usable(int(rows[place])):
                codes[place] = 0
        return codes

    def allows(self, row: int) -> bool:
        return bool(self._claim.usable(row)) or super().allows(row)


class Chosen:
    """The columns of the resources that a score looks at, and what the pod would add."""

    def __init__(
        self, columns: Columns, asked: Mapping[str, int], resources: Weighted, *, nonzero: bool
    ) -> None:
        self._columns = columns
        used = [(name, weight) for name, weight in resources if name in FIXED or asked.get(name, 0)]
        self.rows = [columns.resource(name) for name, _ in used]
        weights = [weight for _, weight in used]
        amounts = [asked.get(name, 0) for name, _ in used]
        self.weights: Ints = np.array(weights, np.int64).reshape(-1, 1)
        self.asked: Ints = np.array(amounts, np.int64).reshape(-1, 1)
        self._nonzero = [place for place, row in enumerate(self.rows) if row < 2] if nonzero else []
        self._singles = list(zip(range(len(used)), self.rows, weights, amounts, strict=True))

    def held(self, rows: Rows) -> Ints:
        """What is requested on nodes now, with assumed amounts where those count."""
        held: Ints = self._columns.requested[np.array(self.rows, np.intp)[:, None], rows]
        for place in self._nonzero:
            held[place] = self._columns.nonzero[self.rows[place], rows]
        return held

    def triples(self, row: int) -> list[tuple[int, int, int, int]]:
        """Of one node: weight, room, what is requested now, what the pod would add."""
        columns = self._columns
        rows = []
        for place, kind, weight, asked in self._singles:
            held = columns.nonzero if place in self._nonzero else columns.requested
            rows.append((weight, columns.allocatable.item(kind, row), held.item(kind, row), asked))
        return rows

    def room(self, rows: Rows) -> Ints:
        """What is allocatable."""
        room: Ints = self._columns.allocatable[np.array(self.rows, np.intp)[:, None], rows]
        return room


class Least(framework.Score):
    """The emptier the better."""

    kind = framework.Kind.LOAD

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen

    def raw(self, rows: Rows) -> Ints:
        room = self._chosen.room(rows)
        whole = np.maximum(room, 1)
        wanted = np.minimum(self._chosen.held(rows) + self._chosen.asked, whole)
        weights = np.where(room > 0, self._chosen.weights, 0)
        total = (self._counted(wanted, whole) * framework.MAX_SCORE // whole * weights).sum(axis=0)
        mean: Ints = total // np.maximum(weights.sum(axis=0), 1)
        return mean

    def one(self, row: int) -> int:
        total = weights = 0
        for weight, room, held, asked in self._chosen.triples(row):
            if room > 0:
                counted = self._counted(min(held + asked, room), room)
                total += weight * (counted * framework.MAX_SCORE // room)
                weights += weight
        return total // weights if weights else 0

    def _counted(self, wanted: Any, room: Any) -> Any:
        """What counts of a room with the pod in it, of one node or of many."""
        return room - wanted


class Most(Least):
    """The fuller the better."""

    def _counted(self, wanted: Any, room: Any) -> Any:
        return wanted


class Ratio(framework.Score):
    """A ramp over the share in use; resources that score nothing have no say."""

    kind = framework.Kind.LOAD

    def __init__(self, chosen: Chosen, points: Sequence[tuple[int, int]]) -> None:
        self._chosen = chosen
        self._table: Ints = np.array([ramp(points, share) for share in range(101)], np.int64)

    def raw(self, rows: Rows) -> Ints:
        room = self._chosen.room(rows)
        wanted = np.minimum(self._chosen.held(rows) + self._chosen.asked, room)
        share = wanted * 100 // np.maximum(room, 1)
        each = np.where(room > 0, self._table[share], 0)
        weights = np.where(each > 0, self._chosen.weights, 0)
        total, weight = (each * weights).sum(axis=0), np.maximum(weights.sum(axis=0), 1)
        mean: Ints = (2 * total + weight) // (2 * weight)
        return mean


def shape(bodies: Sequence[wire.Body]) -> tuple[tuple[int, int], ...]:
    """The points of a ramp: shares of use and scores times ten."""
    points = tuple(
        (wire.integer(entry, "utilization"), wire.integer(entry, "score")) for entry in bodies
    )
    shares = [share for share, _ in points]
    if not points or shares != sorted(set(shares)) or not 0 <= shares[0] <= shares[-1] <= 100:
        raise BadObjectError("shape: utilization must rise strictly within 0 to 100")
    if any(not 0 <= score <= 10 for _, score in points):
        raise BadObjectError("shape: a score is from 0 to 10")
    return tuple((share, 10 * score) for share, score in points)


def ramp(points: Sequence[tuple[int, int]], share: int) -> int:
    """The piecewise linear function through points, in integers cut toward zero."""
    for place, (right, high) in enumerate(points):
        if share <= right:
            if place == 0:
                return high
            left, low = points[place - 1]
            return low + int((high - low) * (share - left) / (right - left))
    return points[-1][1]
