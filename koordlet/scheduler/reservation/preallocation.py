"""Pre-allocation: a reservation takes over the room of pods that still run, when they end.

Covers: which running pods may be adopted on a node, which are, whether what they have is released.
Does not cover: all nodes at once (``plugins.adoption``), writing annotations.

Rules:
1. Only what fits into the reservation is adopted: the sum of the adopted stays within it.
2. The node must have room for the reservation once the adopted pods have ended.
3. Until its node has, free or released, what it is to hold, it waits: nobody can draw on it, and it
   holds only what was released. Then it is an ordinary reservation, for good.
4. One pod is adopted, the one that leaves least of the reservation unused; with ``enableMultiple``
   as many as it takes. In Cluster mode the priority annotation comes first. A pod that asks for
   nothing that the reservation has is passed over.
5. A reservation that names the pods (``keys.ADOPTS``) adopts of these, whatever their labels.
6. A pod is not adopted while it draws on a reservation that holds room. One whose reservation is
   over, as after each move of a pod, has its room to itself, and is as any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from koordlet.model import resources
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import MAX_SCORE
from koordlet.scheduler.objects import requests, terms, wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.reservation import fit, keys, matching
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import PreAllocation, ReservationSpec

NONE_MATCHES = "node(s) no pod match reservation with pre allocation required"
NONE_SERVES = "node(s) no pod(s) to meet the pre-allocation requirements"


@dataclass(frozen=True, slots=True)
class PreAllocationConfig:
    """The peer's ``preAllocationConfig``."""

    cluster: bool = True
    label: str = keys.PRE_ALLOCATABLE
    priority: str = keys.PRE_ALLOCATABLE_PRIORITY
    prefer_none: bool = False


@dataclass(frozen=True, slots=True)
class Adoption:
    """The verdict on a node: no reasons means that the reservation fits with these pods."""

    reasons: tuple[str, ...] = ()
    pods: tuple[Pod, ...] = ()
    score: int = 0


class Adopter:
    """Judges which running pods a reservation would adopt on each node."""

    def __init__(
        self, spec: ReservationSpec, columns: Columns, config: PreAllocationConfig
    ) -> None:
        self._spec = spec
        self._columns = columns
        self._config = config
        pre = spec.pre_allocation or PreAllocation()
        self._cluster, self._multiple, self._required = pre.cluster, pre.multiple, pre.required
        self._named = frozenset(filter(None, spec.annotations.get(keys.ADOPTS, "").split(",")))
        self._wanted = sorted(
            (name, columns.resource(name), amount)
            for name, amount in spec.allocatable.items()
            if amount > 0 and name != requests.PODS
        )

    def candidates(self, row: int) -> list[Pod]:
        """Running pods of a node that may be adopted, in the order of preference."""
        node = self._columns.nodes[row]
        labels = node.labels if node is not None else {}
        adoptable = [pod for pod in self._columns.pods[row].values() if self._may(pod, labels)]
        worth = self._priority if self._cluster else self._share
        return sorted(adoptable, key=lambda pod: (-worth(pod), pod.uid))

    def _may(self, pod: Pod, node_labels: Mapping[str, str]) -> bool:
        drawn = self._columns.drawn_reservation(pod)
        if pod.reserve_pod_of or (drawn is not None and drawn.phase.holds):
            return False
        if self._named:
            return pod.uid in self._named
        selecting = (owner for owner in self._spec.owners if owner.selector is not None)
        meant = (
            pod.pod_class.labels.get(self._config.label) == "true"
            if self._cluster
            else any(matching.owns(owner, pod) for owner in selecting)
        )
        if not meant:
            return False
        try:
            wish = matching.wish(pod.pod_class)
        except BadObjectError:
            return False
        if wish.affinity is None and not wish.exact:
            return True
        return matching.mismatch(self._spec, pod, wish, node_labels) is None

    def _priority(self, pod: Pod) -> int:
        return terms.whole(pod.pod_class.annotations.get(self._config.priority, "")) or 0

    def _share(self, pod: Pod) -> int:
        return fit.score(ReservationInfo(self._spec), pod.pod_class.requests.real)

    def judge(self, row: int) -> Adoption:
        """Whether the reservation fits on a node, and the pods that it adopts there."""
        several = self.candidates(row)
        if not several:
            if self._required:
                return Adoption((NONE_MATCHES,))
            # The reasons of the ordinary resource fit.
            short = [reason.removesuffix(" by node") for reason in self._short(row, {})]
            pods = {"Insufficient pods": "Too many pods"}
            reasons = tuple(pods.get(reason, reason) for reason in short)
            return Adoption(reasons, score=MAX_SCORE if self._multiple else 0)
        alone = not self._short(row, {})
        if alone and not self._required and self._config.prefer_none:
            return Adoption(score=MAX_SCORE if self._multiple else 0)
        return self._several(row, several) if self._multiple else self._single(row, several)

    def _single(self, row: int, several: Iterable[Pod]) -> Adoption:
        best: Pod | None = None
        rank: tuple[int, int] = (0, -1)
        node: list[str] = []
        inside: list[str] = []
        for pod in filter(self._gives, several):
            lacking = self._exceeding(pod.pod_class.requests.real)
            short = self._short(row, pod.pod_class.requests.real)
            if not lacking and not short:
                its = (self._priority(pod) if self._cluster else 0, self._share(pod))
                if best is None or its > rank:
                    best, rank = pod, its
            node += [reason for reason in short if reason not in node]
            inside += [reason for reason in lacking if reason not in inside]
        if best is not None:
            return Adoption(pods=(best,), score=rank[1])
        return self._without(row, node, inside)

    def _several(self, row: int, several: Iterable[Pod]) -> Adoption:
        taken: list[Pod] = []
        total: dict[str, int] = {}
        inside: list[str] = []
        for pod in filter(self._gives, several):
            trial = resources.total((total, pod.pod_class.requests.real))
            exceeding = self._exceeding(trial)
            inside += [reason for reason in exceeding if reason not in inside]
            if exceeding:
                continue
            taken.append(pod)
            total = trial
            if not self._short(row, total):
                return Adoption(pods=tuple(taken), score=MAX_SCORE // (1 + len(taken)))
        return self._without(row, self._short(row, total), inside)

    def _without(self, row: int, node: list[str], inside: list[str]) -> Adoption:
        """No choice of pods serves: none may be needed; otherwise the reasons."""
        if self._required:
            return Adoption((*sorted(node), *inside) or (NONE_SERVES,))
        if short := node or self._short(row, {}):
            return Adoption(tuple(sorted(short)))
        return Adoption(score=MAX_SCORE if self._multiple else 0)

    def _gives(self, pod: Pod) -> bool:
        """Whether a pod's end gives the reservation anything."""
        return not self._spec.allocatable.keys().isdisjoint(pod.pod_class.requests.real)

    def _exceeding(self, amounts: Mapping[str, int]) -> list[str]:
        return [
            f"Reservation(s) Insufficient {name}"
            for name in sorted(self._spec.restricted)
            if amounts.get(name, 0) > self._spec.allocatable.get(name, 0)
        ]

    def _short(self, row: int, returned: Mapping[str, int]) -> list[str]:
        return sorted(fit.short_by_node(self._columns, row, self._wanted, returned))


def released(info: ReservationInfo, columns: Columns) -> bool:
    """Whether its node has all that the reservation is to hold, free or released."""
    if info.row < 0:
        return False
    room, requested = columns.allocatable, columns.requested
    held = info.held()
    return all(
        amount <= room.item(column, info.row) - requested.item(column, info.row) + held.get(name, 0)
        for name, amount in info.spec.allocatable.items()
        if name != requests.PODS
        for column in (columns.resource(name),)
    )


def annotation(info: ReservationInfo) -> dict[str, str]:
    """The annotation by which a reservation remembers which pods it adopted, and their amounts."""
    if not info.adopted:
        return {}
    body = {"pods": sorted(info.adopted), "resources": resources.canonical(info.pledged)}
    return {keys.ADOPTED: json.dumps(body, separators=(",", ":"))}


def remembered(spec: ReservationSpec) -> tuple[frozenset[str], Mapping[str, int]]:
    """What ``annotation`` wrote: UIDs and amounts; nothing where it cannot be read."""
    spelled = spec.annotations.get(keys.ADOPTED)
    if not spelled:
        return frozenset(), {}
    try:
        body = json.loads(spelled)
        pods = frozenset(wire.strings(body, "pods"))
        return pods, requests.amounts(body, "resources", requests.MOST_REQUEST)
    except (ValueError, AttributeError):
        return frozenset(), {}
