"""The CPUs and NUMA amounts of pods on a node, and those that reservations hand over.

Covers: the shares of pods and reservations, each thing once; what is left in one reservation.
Does not cover: which reservation a pod draws on (``scheduler.reservation.fit``), choosing CPUs
(``policy.cpu.allocation``).

Rules:
1. A reservation's reserve pod holds what was chosen for it, less what its owners have of it.
2. Who draws on a reservation finds that rest free. CPUs of it are taken first; Restricted gives
   nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from koordlet.model import cpuset
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.reservation.claims import claim_of
from koordlet.scheduler.reservation.fit import ReservationFit
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import AllocatePolicy

_Parts = dict[int, dict[str, int]]
NO_ROOM = "pod has a nominated reservation but cannot be allocated within its NUMA scope"


@dataclass(frozen=True, slots=True)
class ChosenShare:
    """The CPUs and NUMA amounts that a pod has."""

    pod: Pod
    cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    parts: Mapping[int, Mapping[str, int]] = field(default_factory=dict)


def drawn(pod_class: PodClass, row: int) -> ReservationInfo | None:
    """The reservation that a pod of a class would draw on there."""
    claim = claim_of(pod_class)
    judge = claim.judge if claim is not None else None
    return judge.judge(row).chosen if isinstance(judge, ReservationFit) else None


def rest(info: ReservationInfo) -> ChosenShare | None:
    """What owners have left of a reservation's CPUs; ``None`` where none were chosen."""
    mine = info.reserve_pod
    if mine is None or not (mine.cpus or mine.parts):
        return None
    cpus = mine.cpus or cpuset.CPUSet()
    parts: _Parts = {number: dict(part) for number, part in mine.parts.items()}
    for owner in info.owners.values():
        cpus = cpus - owner.cpus if owner.cpus else cpus
        for number, part in owner.parts.items():
            left = parts.get(number, {})
            for name in left.keys() & part.keys():
                left[name] = max(0, left[name] - part[name])
    return ChosenShare(mine, cpus, parts)


def exclusive(info: ReservationInfo, name: str) -> bool:
    """Whether owners get a resource from the reservation alone."""
    return info.spec.policy is AllocatePolicy.RESTRICTED and name in info.spec.restricted


def shares(
    columns: Columns, row: int, without: ReservationInfo | None = None
) -> Iterator[ChosenShare]:
    """The shares of all pods on a node, without what is left in ``without``."""
    for pod in columns.pods[row].values():
        if not (pod.cpus or pod.parts):
            continue
        info: ReservationInfo | None = columns.kept_reservation(pod)
        left = rest(info) if info is not None else None
        if left is None:
            yield ChosenShare(pod, pod.cpus or cpuset.CPUSet(), pod.parts)
        elif info is not without:
            yield left
