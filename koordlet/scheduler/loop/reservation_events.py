"""What a change of a Reservation object means to queue and register: no I/O, no clock.

Covers: objects that come, change and go; phases that are due; who is woken by what is free again.
Does not cover: writing statuses (``reservation_controller``), reading objects
(``scheduler.reservation.parsing``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from koordlet.kubeapi import objects
from koordlet.scheduler.cluster.events import Event, What
from koordlet.scheduler.framework import RefusedError
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.loop.outcomes import Hold, Outcome, Refusal
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins.reservation import reservation_of
from koordlet.scheduler.reservation import lifecycle
from koordlet.scheduler.reservation.held import Held
from koordlet.scheduler.reservation.spec import Phase

if TYPE_CHECKING:
    from koordlet.scheduler.loop.core import Core


def hold(core: Core, cycle: Cycle, pod: Pod, row: int, now: float) -> Outcome:
    """A reservation found its node; it holds there at once, and is written down later.

    Plugins reserve for its stand-in as for a pod: CPUs that one chooses are the reservation's.
    """
    plugin, held = reservation_of(cycle.profile), core.register.of(pod)
    assert plugin is not None  # noqa: S101 -- it placed the stand-in
    assert held is not None  # noqa: S101 -- whose object went is not in the queue
    marks: dict[str, str] = {}
    node = core.census.columns.nodes[row]
    assert node is not None  # noqa: S101 -- it was chosen
    try:
        for one in cycle.profile.plugins:
            one.prepare(pod, node.name)
        core.register.placed(pod, row, plugin.adopts(held.spec, row))
        for one in cycle.profile.plugins:
            one.reserve(pod, held.node)
            marks |= one.marks(pod, held.node)
    except (BadObjectError, RefusedError) as error:
        release(cycle, held, pod)
        core.register.unplaced(held)
        core.queue.failed(pod, now)
        return Refusal(pod, str(error), "SchedulerError")
    core.nominated.drop(pod.key)
    core.wake(Event(What.POD_NEW, pod=pod), now)
    return Hold(pod, held.node, marks)


def release(cycle: Cycle, held: Held, pod: Pod) -> None:
    """Undo what plugins have reserved for a stand-in."""
    for one in reversed(cycle.profile.plugins):
        one.unreserve(pod, held.node)


def changed(core: Core, old: objects.Object | None, new: objects.Object | None, now: float) -> None:
    """A Reservation comes, changes or goes; ``now`` is the queue's."""
    if new is None:
        if old is not None:
            _gone(core, objects.text(old, "name"), now)
        return
    known = core.register.book.named(objects.text(new, "name"))
    if known is not None and known.spec.uid != objects.text(new, "uid"):
        _gone(core, known.spec.name, now)
        known = None
    held_before = known is not None and known.row >= 0
    waiting = known.stand_in if known is not None and not held_before else None
    stand_in = core.register.put(new)
    if stand_in is None:
        if waiting is not None:
            core.queue.forget(waiting)
        if known is not None and held_before:
            woken(core, known, now)
        return
    cycle = core.cycles.get(stand_in.pod_class.scheduler)
    if cycle is None:
        return
    plugin = reservation_of(cycle.profile)
    stand_in.preempts = plugin is not None and plugin.arguments.preempts
    entry = core.queue.get(stand_in.key)
    if (
        entry is None
        or waiting is None
        or _differs(waiting.pod_class.requests, stand_in.pod_class.requests)
    ):
        core.queue.add(stand_in, now)
    else:
        core.queue.renew(stand_in)


def _differs(one: object, other: object) -> bool:
    return one != other


def _gone(core: Core, name: str, now: float) -> None:
    held = core.register.drop(name)
    if held is not None:
        if held.stand_in is not None:
            core.queue.forget(held.stand_in)
            core.nominated.drop(held.stand_in.key)
        woken(core, held, now)


def woken(core: Core, held: Held, now: float) -> None:
    """What it holds, or who may draw on it, is another than before: those who wait may try."""
    if held.stand_in is not None:
        core.wake(Event(What.POD_GONE, pod=held.stand_in), now)


def step(core: Core, held: Held, now: float, wall: float) -> bool:
    """Bring one to the phase that it should be in; whether it changed."""
    if held.row < 0 and held.phase.holds and held.node in core.census.columns.rows:
        core.register.node_came(held.node)
    if not core.register.step(held, wall):
        return False
    if held.phase.over and held.stand_in is not None:
        core.queue.forget(held.stand_in)
    woken(core, held, now)
    return True


def due(core: Core, wall: float) -> list[Held]:
    """Those to look at: whose account changed, who wait for room, whose time is up."""
    book = core.register.book
    touched, book.touched = book.touched, set()
    return [
        held
        for held in book.all.values()
        if held.spec.uid in touched
        or held.phase is Phase.WAITING
        or lifecycle.expired(held.spec, held.phase, wall)
    ]
