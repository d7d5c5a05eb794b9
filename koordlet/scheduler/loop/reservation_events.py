"""Changes of Reservation objects, applied to queue and reservation cache: no I/O, no clock.

Covers: objects that come, change and go; phases that are due; who is woken by what is free again.
Does not cover: writing statuses (``reservation_controller``), reading objects
(``scheduler.reservation.parsing``).
"""

from __future__ import annotations

from typing import Protocol

from koordlet.kubeapi import objects
from koordlet.model import errors
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework import RefusedError
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.queue import Queue
from koordlet.scheduler.loop.outcomes import Hold, Nominations, Refusal
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins.reservation import Reservation
from koordlet.scheduler.reservation import lifecycle
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import Phase


class ReservingGangs(Protocol):
    """What gangs do about reservations."""

    def put(self, pod: Pod) -> None:
        """Take in a reserve pod."""

    def drop(self, pod: Pod) -> None:
        """A reserve pod has gone."""

    def reservation_gone(self, info: ReservationInfo, now: float) -> None:
        """Decide those again that have yet to be bound onto a reservation."""


class ReservingCore(Protocol):
    """The parts of ``loop.core.Core`` that room for reservations is taken from."""

    pod_cache: PodCache
    reservations: ReservationCache
    cycles: dict[str, Cycle]


class Core(ReservingCore, Protocol):
    """The parts of ``loop.core.Core`` that reservations change."""

    queue: Queue
    nominated: Nominations

    @property
    def gangs(self) -> ReservingGangs:
        """The gangs of the scheduler."""

    def enqueue(self, pod: Pod, now: float) -> None:
        """Let a waiting pod enter the queue, or keep it before it."""

    def wake(self, event: ClusterEvent, now: float) -> None:
        """Wake the pods that an event may help."""


def hold(core: Core, cycle: Cycle, pod: Pod, row: int, now: float) -> Hold | Refusal:
    """Hold a reservation's node at once; the binding is written later."""
    outcome = reserve(core, cycle, pod, row)
    if isinstance(outcome, Refusal):
        core.queue.failed(pod, now)
    else:
        core.nominated.drop(pod.key, outcome.node)
        core.wake(ClusterEvent(ActionType.POD_NEW, pod=pod), now)
    return outcome


def reserve(core: ReservingCore, cycle: Cycle, pod: Pod, row: int) -> Hold | Refusal:
    """Let a reserve pod take its room; plugins reserve for it as for any other pod."""
    plugin, info = cycle.profile.find(Reservation), core.reservations.of(pod)
    if plugin is None or info is None:
        # Without the plugin none is placed, and without its object none is in the queue.
        raise errors.BugError("a reserve pod without a reservation was placed", culprit=pod.key)
    marks: dict[str, str] = {}
    node = core.pod_cache.columns.chosen(row).name
    try:
        for asked in cycle.profile.plugins:
            asked.prepare(pod, node)
        core.reservations.placed(pod, row, plugin.adopts(info.spec, row))
        for asked in cycle.profile.plugins:
            asked.reserve(pod, info.node)
            marks |= asked.marks(pod, info.node)
    except (BadObjectError, RefusedError) as error:
        take_back(core, pod)
        return Refusal(pod, str(error), "SchedulerError")
    return Hold(pod, info.node, marks)


def take_back(core: ReservingCore, pod: Pod) -> None:
    """Undo ``reserve``."""
    info = core.reservations.of(pod)
    if info is not None:
        release(core.cycles[pod.pod_class.scheduler], info, pod)
        core.reservations.unplaced(info)
        pod.node = ""


def release(cycle: Cycle, info: ReservationInfo, pod: Pod) -> None:
    """Undo what plugins have reserved for a reserve pod."""
    for plugin in reversed(cycle.profile.plugins):
        plugin.unreserve(pod, info.node)


def changed(core: Core, old: objects.Object | None, new: objects.Object | None, now: float) -> None:
    """Take in a change of a Reservation; ``now`` is the queue's."""
    if new is None:
        if old is not None:
            _gone(core, objects.text(old, "name"), now)
        return
    known = core.reservations.named(objects.text(new, "name"))
    if known is not None and known.spec.uid != objects.text(new, "uid"):
        _gone(core, known.spec.name, now)
        known = None
    held_before = known is not None and known.row >= 0
    waiting = known.reserve_pod if known is not None and not held_before else None
    before = known.spec if known is not None else None
    reserve_pod = core.reservations.put(new)
    _count(core, core.reservations.named(objects.text(new, "name")))
    if reserve_pod is None:
        if waiting is not None:
            _forget(core, waiting)
        info = core.reservations.named(objects.text(new, "name"))
        if info is not None and held_before:
            woken(core, info, now)
        elif info is not None and info.row >= 0:
            # Another scheduler has bound it: it is room for its owners from now on.
            core.wake(ClusterEvent(ActionType.POD_NEW, pod=info.reserve_pod), now)
        return
    info = core.reservations.of(reserve_pod)
    _wait(core, reserve_pod, now, edited=info is None or info.spec != before)


def _wait(core: Core, reserve_pod: Pod, now: float, *, edited: bool) -> None:
    """Let a reserve pod wait for its node; ``edited``: it is tried again at once."""
    cycle = core.cycles.get(reserve_pod.pod_class.scheduler)
    if cycle is None:
        # No scheduler of ours any more.
        _forget(core, reserve_pod)
        return
    plugin = cycle.profile.find(Reservation)
    reserve_pod.preempts = plugin is not None and plugin.arguments.preempts
    core.nominated.put(reserve_pod, core.nominated.node(reserve_pod))
    if not edited and core.queue.get(reserve_pod.key) is not None:
        core.queue.renew(reserve_pod)
    elif reserve_pod.gang is None:
        core.queue.add(reserve_pod, now)
    else:
        core.enqueue(reserve_pod, now)


def _forget(core: Core, reserve_pod: Pod) -> None:
    """Let a reserve pod wait no longer, also for the room that was made for it."""
    core.queue.forget(reserve_pod)
    core.nominated.drop(reserve_pod.key)


def _count(core: Core, info: ReservationInfo | None) -> None:
    """Count a reserve pod among its gang, as the store has it: on a node, or waiting."""
    pod = info.reserve_pod if info is not None else None
    if info is None or pod is None or pod.gang is None:
        return
    if info.phase.over:
        core.gangs.drop(pod)
    elif info.stored.node or not pod.node:
        core.gangs.put(pod)


def _gone(core: Core, name: str, now: float) -> None:
    info = core.reservations.drop(name)
    if info is not None:
        core.gangs.reservation_gone(info, now)
        if info.reserve_pod is not None:
            core.gangs.drop(info.reserve_pod)
            _forget(core, info.reserve_pod)
        woken(core, info, now)


def woken(core: Core, info: ReservationInfo, now: float) -> None:
    """Wake the pods that a change of a reservation may help."""
    if info.reserve_pod is not None:
        core.wake(ClusterEvent(ActionType.POD_GONE, pod=info.reserve_pod), now)


def step(core: Core, info: ReservationInfo, now: float, wall: float) -> bool:
    """Advance a reservation to the phase that is due; whether it changed."""
    if info.row < 0 and info.phase.holds and info.node in core.pod_cache.columns.rows:
        core.reservations.node_came(info.node)
    if not core.reservations.step(info, wall):
        return False
    if info.phase is Phase.FAILED:
        core.gangs.reservation_gone(info, now)
    if info.phase.over and info.reserve_pod is not None:
        core.gangs.drop(info.reserve_pod)
        _forget(core, info.reserve_pod)
    woken(core, info, now)
    return True


def due(core: Core, wall: float) -> list[ReservationInfo]:
    """Reservations to look at: changed accounts, waiting ones, expired ones."""
    cache = core.reservations
    touched = set(cache.touched)
    cache.touched.clear()
    return [
        info
        for info in cache.by_uid.values()
        if info.spec.uid in touched
        or info.phase is Phase.WAITING
        or lifecycle.expired(info.spec, info.phase, wall)
    ]
