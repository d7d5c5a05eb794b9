"""Writing the bindings of reservations where the store says no, and what the watch says meanwhile.

Covers: a binding that lost, and the object that went or was replaced before it was read again; whom
a change wakes. Does not cover: whole lives over a store (``test_reservations``).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import event_messages, reservation_controller, reservation_events
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Hold
from koordlet.scheduler.objects import nodes
from tests.kit import clusters, deadline, reservations

#: Long after every backoff of the queue.
LATER = 1000.0
RESERVED = reservations.reservation("r", cpu="4", unschedulable=False)
ADOPTING = reservations.reservation("r", cpu="4", unschedulable=False, preAllocation=True)


class LosingStore:
    """A store that refuses a binding; ``meanwhile`` happens as the object is read again."""

    def __init__(self, meanwhile: Callable[[], objects.Object]) -> None:
        self._reads = iter((lambda: RESERVED, meanwhile))
        self._bindings = 0

    async def get(self, _ref: objects.Ref) -> objects.Object:
        return next(self._reads)()

    async def patch(self, *_: Any, **__: Any) -> objects.Object:
        self._bindings += 1
        if self._bindings == 1:
            raise refusals.Conflict("the object has been modified")
        return {}

    async def create(self, *_: Any, **__: Any) -> objects.Object:
        return {}


def lost(core: Core, meanwhile: Callable[[], objects.Object]) -> Hold:
    """A reservation that was placed, and whose binding the store refused."""
    reservation_events.changed(core, None, RESERVED, 0.0)
    hold = core.step(0.0)
    assert isinstance(hold, Hold)
    events = event_messages.EventBuilder("test", lambda: 0.0)
    store: Any = LosingStore(meanwhile)

    async def body() -> None:
        controller = reservation_controller.ReservationController(store, core, lambda: 0.0, events)
        controller.submit(hold)
        working = asyncio.ensure_future(controller.run())
        await deadline.comes(lambda: not hold.pod.node and written(core))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(body())
    return hold


def written(core: Core) -> bool:
    """Whether every status is stored."""
    cache = core.reservations
    return all(cache.status(info, 0.0) == info.stored for info in cache.by_uid.values())


@pytest.fixture
def core() -> Core:
    """A node with four CPUs."""
    made = Core({"default-scheduler": profile.default("default-scheduler")})
    made.node(None, nodes.decode(clusters.node("n")), 0.0)
    return made


def test_a_reservation_whose_binding_lost_is_tried_again(core: Core) -> None:
    """Somebody edited it: nothing is held, and the next attempt places it."""
    lost(core, lambda: RESERVED)

    assert core.pod_cache.columns.requested[0, 0] == 0
    assert isinstance(core.step(LATER), Hold)


def test_a_reservation_that_was_edited_while_its_binding_lost_is_tried_as_it_is_now(
    core: Core,
) -> None:
    """What had been decided was about another amount."""
    smaller = reservations.reservation("r", cpu="1", unschedulable=False)
    lost(core, lambda: smaller)

    assert isinstance(core.step(LATER), Hold)
    assert core.pod_cache.columns.requested[0, 0] == 1000


def test_a_reservation_that_lost_its_owners_while_its_binding_lost_waits_for_its_author(
    core: Core,
) -> None:
    """No pod could ever match it."""
    lost(core, lambda: reservations.reservation("r", cpu="4", owners=[]))

    assert core.step(LATER) is None


@pytest.mark.parametrize("replaced", [False, True])
def test_a_reservation_that_went_while_its_binding_lost_is_not_tried_again(
    core: Core, *, replaced: bool
) -> None:
    """The watch tells first that it went, or that another has its name: its pod waits no more."""
    other = {**RESERVED, "metadata": {**RESERVED["metadata"], "uid": "uid-other"}}

    def meanwhile() -> objects.Object:
        reservation_events.changed(core, RESERVED, None, 0.0)
        if not replaced:
            raise refusals.NotFound("it is gone")
        return other

    hold = lost(core, meanwhile)

    assert core.queue.get(hold.pod.key) is None
    attempts = [core.step(LATER), core.step(LATER)]
    assert [each.pod.uid for each in attempts if isinstance(each, Bind | Hold)] == (
        ["uid-other"] if replaced else []
    )


@pytest.mark.parametrize("reserved", [False, True])
def test_changes_of_a_cluster_without_reservations_wake_nobody(
    core: Core, *, reserved: bool
) -> None:
    """Each of thousands of pods is such a change."""
    looks: list[float] = []

    def wall() -> float:
        looks.append(0.0)
        return looks[-1]

    events = event_messages.EventBuilder("test", wall)
    store: Any = LosingStore(lambda: RESERVED)
    if reserved:
        reservation_events.changed(core, None, RESERVED, 0.0)

    async def body() -> int:
        controller = reservation_controller.ReservationController(store, core, lambda: 0.0, events)
        working = asyncio.ensure_future(controller.run())
        await deadline.comes(lambda: bool(looks))
        before = len(looks)
        for _ in range(10):
            controller.poke()
            await asyncio.sleep(0)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return len(looks) - before

    assert (asyncio.run(body()) > 0) is reserved


class ReplacedStore:
    """A store in which another object has the name of a reservation by now, at revision 9."""

    def __init__(self) -> None:
        self.asked = 0
        self.taken: list[objects.Object] = []

    async def patch(self, _ref: objects.Ref, patch: Any, **_: Any) -> objects.Object:
        self.asked += 1
        if patch.revision not in {"", "9"}:
            raise refusals.Conflict("the object has been modified")
        self.taken.append(patch.body)
        return {"metadata": {"resourceVersion": "10"}}


def looked_at(core: Core) -> ReplacedStore:
    """The store after the controller has looked once."""
    store = ReplacedStore()
    any_store: Any = store
    events = event_messages.EventBuilder("test", lambda: 0.0)
    controller = reservation_controller.ReservationController(any_store, core, lambda: 0.0, events)
    asyncio.run(controller.look())
    return store


@pytest.mark.parametrize("policy", ["", "nonsense"])
def test_a_status_is_never_written_to_another_object_of_the_name(core: Core, policy: str) -> None:
    """It would say of it that it is available, on a node with no room, or that it is broken."""
    body = reservations.reservation("r", cpu="1", on="n", allocateOnce=False, allocatePolicy=policy)
    body["metadata"]["resourceVersion"] = "5"
    reservation_events.changed(core, None, body, 0.0)
    store = looked_at(core)

    assert store.asked == 1
    assert store.taken == []


def test_a_broken_edit_of_a_reservation_is_answered_against_its_own_revision(core: Core) -> None:
    """Else no status of it could be written any more."""
    body = reservations.reservation("r", cpu="1", on="n", allocateOnce=False)
    body["metadata"]["resourceVersion"] = "5"
    reservation_events.changed(core, None, body, 0.0)
    broken = {**body, "metadata": {**body["metadata"], "resourceVersion": "9"}}
    broken["spec"] = {**body["spec"], "allocatePolicy": "nonsense"}
    reservation_events.changed(core, body, broken, 0.0)
    store = looked_at(core)

    assert len(store.taken) == 1


class ListenedStore:
    """A store that shows the pod that is adopted, as it was and as it is now, before it answers."""

    def __init__(self, core: Core, pod: dict[str, Any]) -> None:
        self._core, self._pod = core, pod

    async def get(self, _ref: objects.Ref) -> objects.Object:
        return ADOPTING

    async def patch(self, ref: objects.Ref, patch: Any, **_: Any) -> objects.Object:
        if ref.kind is kinds.PODS:
            marked = {**self._pod["metadata"], **patch.body["metadata"]}
            for body in (self._pod, {**self._pod, "metadata": marked}):
                self._core.pod(None, self._core.decoder.decode(body, 0), 0.0)
        return {}

    async def create(self, *_: Any, **__: Any) -> objects.Object:
        return {}


def test_a_pod_that_is_adopted_is_counted_anew_while_it_is_told(core: Core) -> None:
    """An older event takes it out of the owners, and that of the answer puts it back."""
    pod = clusters.pod("old", on="n", cpu="4", labels={"app": "web"}, meta={"uid": "old"})
    core.pod(None, core.decoder.decode(pod, 0), 0.0)
    reservation_events.changed(core, None, ADOPTING, 0.0)
    hold = core.step(0.0)
    assert isinstance(hold, Hold)
    events = event_messages.EventBuilder("test", lambda: 0.0)
    store: Any = ListenedStore(core, pod)

    async def body() -> None:
        controller = reservation_controller.ReservationController(store, core, lambda: 0.0, events)
        controller.submit(hold)
        working = asyncio.ensure_future(controller.run())
        await deadline.comes(lambda: working.done() or written(core))
        working.cancel()
        await working

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(body())
    assert written(core)


class SlowStore:
    """A store that answers nobody, and keeps no one who waits."""

    async def create(self, *_: Any, **__: Any) -> objects.Object:
        await asyncio.get_running_loop().create_future()
        raise AssertionError


def test_no_event_under_way_is_lost_to_a_later_one(core: Core) -> None:
    """The loop holds its tasks weakly: what nobody else holds is collected before it is sent."""
    reservation_events.changed(core, None, RESERVED, 0.0)
    hold = core.step(0.0)
    assert isinstance(hold, Hold)
    events = event_messages.EventBuilder("test", lambda: 0.0)
    store: Any = SlowStore()

    async def body() -> int:
        controller = reservation_controller.ReservationController(store, core, lambda: 0.0, events)
        before = len(asyncio.all_tasks())
        for message in ("one", "two", "three"):
            controller.refused(hold.pod, message)
            await asyncio.sleep(0)
        gc.collect()
        return len(asyncio.all_tasks()) - before

    assert asyncio.run(body()) == 3
