"""Pods that a node rejected or sent away: for a while their workload avoids it, and nobody moves.

Covers: rejects of the kubelet, repeated evictions under pressure. Does not cover: pods that still
run there (``poor_service``), writing entries of avoid lists (``loop.avoidance_controller``).

Rules:
1. ``TIMES`` pods of one workload on one node: rejected within ten minutes, or sent away by pressure
   within six hours. What an entry that is still there was written for counts no more.
2. Pods that were rejected are removed where a ReplicaSet would leave them for ever.
3. A kubelet's evictions are pods that have failed; an agent's are pods that are gone, and were seen
   leaving: those from before a restart are not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.kubeapi import disruption_target
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.strategies.candidates import CandidateSettings
from koordlet.scheduler.descheduling.traits import PodTraits, Resident
from koordlet.scheduler.disruption.workloads import Signature

TIMES = 2
_REJECTS = frozenset({"UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity"})
#: A resource of which the node has too little: ``OutOfcpu``.
_LACKS = "OutOf"


@dataclass(frozen=True, slots=True)
class _Kind:
    """One way in which a node ends pods: within which seconds it counts, and the entry's length."""

    words: str
    within: float
    avoid_seconds: float
    removes: bool = False


_REJECTED = _Kind("rejected by its kubelet in ten minutes", 600.0, 1800.0, removes=True)
_EVICTED = _Kind("sent away by its pressure in six hours", 6 * 3600.0, 6 * 3600.0)


@dataclass(frozen=True, slots=True)
class _Ended:
    """A pod that a node ended."""

    resident: Resident
    at: float
    reason: str


def intents(state: ClusterState, row: int, settings: CandidateSettings) -> Iterator[rounds.Intent]:
    """What workloads should avoid a node for now."""
    several: dict[tuple[Signature, _Kind], dict[str, _Ended]] = {}
    for kind, ended in _ended(state, row):
        signature = state.workloads.signature(ended.resident.pod.pod_class)
        if signature is None or not settings.wants(ended.resident):
            continue
        entry = state.avoids(ended.resident.pod.pod_class).get(state.node(row).name)
        since = max(state.now.wall - kind.within, entry.since if entry is not None else 0.0)
        if ended.at > since:
            several.setdefault((signature, kind), {})[ended.resident.pod.uid] = ended
    for (signature, kind), by_uid in several.items():
        times = sorted(by_uid.values(), key=lambda each: (each.at, each.resident.pod.key))
        if len(times) < TIMES:
            continue
        yield rounds.Intent(
            times[-1].resident,
            f"{len(times)} pods of {signature} were {kind.words}, the last for {times[-1].reason}",
            shadow=settings.dry_run,
            avoid_seconds=kind.avoid_seconds,
            removes=tuple(
                each.resident
                for each in times
                if kind.removes and each.resident.pod.pod_class.owner[0] == "ReplicaSet"
            ),
        )


def _ended(state: ClusterState, row: int) -> Iterator[tuple[_Kind, _Ended]]:
    for resident in state.ended_on(row):
        traits = resident.traits
        if traits.phase != "Failed":
            continue
        if traits.reason in _REJECTS or traits.reason.startswith(_LACKS):
            yield _REJECTED, _Ended(resident, traits.started or traits.created, traits.reason)
        elif traits.reason == "Evicted":
            yield _EVICTED, _Ended(resident, _evicted(traits), traits.reason)
    for pressed in state.pressed_on(row):
        resident = Resident(pressed.pod, PodTraits(uid=pressed.pod.uid), row)
        yield _EVICTED, _Ended(resident, pressed.at, "Evicted")


def _evicted(traits: PodTraits) -> float:
    """When a kubelet evicted a pod; what it says of its end, or else when it had started."""
    ends = (
        each.since for each in traits.conditions if each.type in {disruption_target.TYPE, "Ready"}
    )
    return max(ends, default=0.0) or traits.started or traits.created
