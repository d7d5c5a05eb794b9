"""Preemptors whose victims are leaving: which pod that leaves is worth another attempt of theirs.

Covers: nominating them; why others find no room beside them; the room on the node of a pod that
left, and where a nomination was withdrawn.
Does not cover: who preempts whom (``scheduler.framework.preemption``), other events (``core``).

Without this, each victim that leaves wakes all preemptors: their attempts grow with their square.

Rules:
1. While victims are leaving its nominated node, a preemptor neither preempts again nor is placed,
   unless some node has room. Only a node that a pod has left can have more room than before.
2. In doubt it is tried: where more than amounts decides, and where the last victim has left or was
   spared.
3. A nomination that is withdrawn is room on its node, for everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from koordlet.scheduler.cluster.columns import concerns_reservations
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework import Failure, Verdict, dryrun, preemption
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.dryrun import ResourceSums
from koordlet.scheduler.framework.queue import Awake, Queue, QueuedPod, everybody
from koordlet.scheduler.gangs.gang_scheduler import GangScheduler
from koordlet.scheduler.loop import held_place
from koordlet.scheduler.loop.fair_preemption import FairPreemption
from koordlet.scheduler.loop.metrics import SchedulerMetrics
from koordlet.scheduler.loop.outcomes import Nominations, Refusal
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.loop.quota_scheduler import QuotaScheduler
from koordlet.scheduler.loop.victims import Victims
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.reservation.cache import ReservationCache

AWAITED = "preemption: not eligible due to a terminating pod on the nominated node."


class Core(Protocol):
    """The parts of ``loop.core.Core`` that say what a preemptor waits for."""

    pod_cache: PodCache
    queue: Queue
    nominated: Nominations
    victims: Victims
    cycles: dict[str, Cycle]
    gangs: GangScheduler
    quotas: QuotaScheduler
    fair: FairPreemption | None
    reservations: ReservationCache
    measures: SchedulerMetrics

    def wake(self, event: ClusterEvent, now: float, awake: Awake | None = None) -> None:
        """Wake the pods that an event may help."""


def crowded_out(
    core: Core, cycle: Cycle, pod: Pod, promised: Callable[[int], Sequence[Pod]]
) -> dict[int, Verdict]:
    """Nodes that count in no score, because of the pods that are nominated for them."""
    rows = core.pod_cache.columns.rows
    nominated = (rows[node] for node in core.nominated if node in rows)
    return cycle.crowded_out(pod, nominated, promised) if core.nominated else {}


def failure(core: Core, cycle: Cycle, pod: Pod, promised: dict[int, Verdict]) -> Failure:
    """Why no node takes a pod; of one that others are nominated for, with those on it.

    ``promised``: nodes that would take it alone.
    """
    alone = cycle.failure(pod, promised)
    if not core.nominated or alone.verdicts is None:
        return alone
    guests = {
        row: before
        for row, before in core.nominated.by_row(pod, core.pod_cache.columns.rows).items()
        if row in alone.verdicts and row not in promised
    }
    crowded = cycle.crowded(pod, alone.verdicts, guests)
    return cycle.failure(pod, promised | crowded) if crowded else alone


def awaited(core: Core, cycle: Cycle, pod: Pod, failure: Failure) -> bool:
    """Whether a preemptor has yet to get the room that was made for it."""
    leaving = preemption.awaited(cycle, pod, failure) or core.quotas.awaits(pod)
    leaving = leaving or (core.fair is not None and core.fair.awaits(core, pod))
    return leaving or held_place.comes(core.reservations, pod)


def awake(core: Core, event: ClusterEvent) -> Awake:
    """Of parked pods those that do not wait on for their victims after this event."""
    if event.what is not ActionType.POD_GONE or event.pod is None or not event.pod.node:
        return everybody
    return _Room(core, event.pod.node).awake if core.nominated else everybody


def wake_by_withdrawn(core: Core, now: float) -> None:
    """Wake those for whom there is room where a nomination was withdrawn."""
    while core.nominated.withdrawn:
        node, pods = core.nominated.withdrawn.popitem()
        room = _Room(core, node)
        # Those of a gang are alike, and one of them says it for all.
        alike = {
            (pod.pod_class, bool(pod.claims), pod.reserve_pod_of): pod for pod in pods.values()
        }
        for pod in alike.values():
            core.wake(ClusterEvent(ActionType.POD_GONE, pod=pod), now, room.enough)


def nominate(
    core: Core, pod: Pod, message: str, candidate: dryrun.Candidate, now: float
) -> Refusal:
    """Nominate a preemptor for its node, and decide the end of its victims."""
    node = core.pod_cache.columns.chosen(candidate.row)
    core.measures.victims.observe(len(candidate.victims))
    waited = node.name in core.victims.leaving
    fresh = core.victims.take(candidate.victims, now)
    for victim in fresh:
        core.wake(ClusterEvent(ActionType.POD_ENDING, pod=victim), now)
    for other in core.nominated.outrank(pod, node.name):
        if waited:
            core.queue.rouse(other.key, now)
    return Refusal(pod, message, node=node.name, victims=fresh, leaving=candidate.victims)


def wait_on(core: Core, pod: Pod, message: str) -> Refusal:
    """Let a preemptor wait on for its victims; its group has given up its place to be tried."""
    core.nominated.put(pod, pod.nominated)
    return Refusal(pod, message, node=pod.nominated)


def give_up(core: Core, pod: Pod, message: str) -> Refusal:
    """Withdraw the nomination of a pod for which no room can be made.

    One that may preempt nobody keeps it: somebody else has nominated it. Its group has given it up
    to be tried.
    """
    core.nominated.put(pod, "" if pod.preempts else pod.nominated)
    return Refusal(pod, message, node=pod.nominated)


def node_changed(core: Core, node: str, now: float) -> None:
    """Wake those that are nominated for a node: they may not get it any more."""
    for key in core.nominated.on(node):
        core.queue.rouse(key, now)


class _Room:
    """What is left on a node, as long as nothing changes."""

    def __init__(self, core: Core, node: str) -> None:
        self._core, self._node = core, node
        self._reserves = bool(core.reservations.by_uid or core.reservations.operating)
        self._row = core.pod_cache.columns.rows.get(node)
        #: By class and priority, of those that are not nominated for the node themselves.
        self._known: dict[tuple[PodClass, int], bool] = {}

    def enough(self, several: Mapping[str, QueuedPod]) -> list[QueuedPod]:
        """Those that lack no amount for sure, after those that are nominated before them."""
        node = self._core.nominated.node
        return [each for each in several.values() if not self._too_little(each.pod, node(each.pod))]

    def awake(self, several: Mapping[str, QueuedPod]) -> list[QueuedPod]:
        """Of parked pods of one class and priority those that do not wait on for their victims."""
        # Asked of each preemptor that waits, for each victim that leaves: those that wait for
        # another node are alike, and one of them says it for all.
        nominated = self._core.nominated
        apart = several.keys() - (() if self._reserves else nominated.waiting)
        apart.update(several.keys() & nominated.on(self._node))
        some = [several[key] for key in sorted(apart) if not self._waits(several[key].pod)]
        alike = (entry for key, entry in several.items() if key not in apart)
        first = next(alike, None) if len(apart) < len(several) else None
        if first is not None and not self._waits(first.pod):
            some += [first, *alike]
        return some

    def _waits(self, pod: Pod) -> bool:
        """Whether victims of a pod are leaving its node, and it has too little room here."""
        node = self._core.nominated.node(pod)
        if node not in self._core.victims.leaving or self._core.gangs.serves(pod):
            return False
        return self._too_little(pod, node)

    def _too_little(self, pod: Pod, place: str) -> bool:
        """Whether a pod that is nominated for this place lacks some amount here for sure."""
        pod_class = pod.pod_class
        if self._reserves or pod.claims or pod_class.extended:
            # Nothing else makes pods of one class differ: most events ask about many of them.
            pod_class = self._core.cycles[pod_class.scheduler].class_for(pod)
        if place == self._node:
            return self._lacks(pod, pod_class)  # its own nomination is no obstacle
        key = pod_class, pod.priority
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._lacks(pod, pod_class)
        return known

    def _lacks(self, pod: Pod, pod_class: PodClass) -> bool:
        core = self._core
        if self._row is None:
            return True
        # Brought up to date by whoever is tried next, for all departures until then at once.
        view = core.cycles[pod_class.scheduler].filtering(pod_class)
        sums = ResourceSums.of(core.pod_cache.columns, view)
        guests = core.nominated.before(pod, self._node)
        if sums is None or any(map(concerns_reservations, guests)):
            return False
        return min(sums.spare(self._row, guests, ())) < 0
