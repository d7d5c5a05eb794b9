"""Conditions of pods without a node: written where anything in them is news."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import event_messages, reporter
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Refusal
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters, deadline

NAME = "default-scheduler"


class ListeningStore:
    """A store that keeps the conditions that are written of pods of the UID ``u``."""

    def __init__(self) -> None:
        self.conditions: list[objects.Object] = []
        #: Reasons and texts.
        self.events: list[tuple[str, str]] = []

    async def patch(self, ref: objects.Ref, patch: Any, **_: Any) -> objects.Object:
        assert ref.kind is kinds.PODS
        if patch.body.get("metadata", {}).get("uid", "u") != "u":
            raise refusals.Malformed("another pod has this name")
        self.conditions += patch.body["status"]["conditions"]
        return {}

    async def create(self, _kind: kinds.Kind, body: Any, **_: Any) -> objects.Object:
        self.events.append((body["reason"], body["note"]))
        return {}

    async def delete(self, *_: Any, **__: Any) -> None:
        pass


@pytest.mark.parametrize(("observed", "written"), [(1, [2]), (2, [])])
def test_a_condition_says_of_which_generation_of_its_pod_it_is(
    observed: int, written: list[int]
) -> None:
    """An edit that changes nothing of the message was looked at all the same."""
    core = Core({NAME: profile.default(NAME)})
    stored = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    stored |= {"message": "no room"}
    status = {"conditions": [{**stored, "observedGeneration": observed}]}
    pod = core.decoder.decode(
        clusters.pod("p", meta={"uid": "u", "generation": 2}, status=status), 0
    )
    core.pod(None, pod, 0.0)
    store = ListeningStore()
    asyncio.run(_reported(core, store, Refusal(pod, "no room")))

    assert [condition["observedGeneration"] for condition in store.conditions] == written


def test_nobody_is_told_anything_while_another_scheduler_may_lead() -> None:
    """What was decided before the process was stopped may be wrong by now."""
    core = Core({NAME: profile.default(NAME)})
    pod = core.decoder.decode(clusters.pod("p", meta={"uid": "u"}), 0)
    core.pod(None, pod, 0.0)
    store = ListeningStore()
    written: list[int] = []

    def leads() -> bool:
        written.append(len(store.conditions))
        return len(written) > 1

    asyncio.run(_reported(core, store, Refusal(pod, "no room"), leads))

    assert written[:2] == [0, 0]
    assert len(store.conditions) == 1


def test_no_condition_is_written_to_another_pod_of_the_name() -> None:
    """Neither that it has no node, nor that it is somebody's victim: it was made anew since."""
    core = Core({NAME: profile.default(NAME)})
    pod = core.decoder.decode(clusters.pod("p", meta={"uid": "before"}), 0)
    core.pod(None, pod, 0.0)
    victim = core.decoder.decode(clusters.pod("v", on="n", meta={"uid": "before"}), 0)
    store = ListeningStore()
    asyncio.run(_reported(core, store, Refusal(pod, "no room", node="n", victims=(victim,))))

    assert store.conditions == []


def test_victims_beyond_the_budget_of_events_share_one() -> None:
    """Of four the budget has an event for one, and one for the refusal itself."""
    core = Core({NAME: profile.default(NAME)})
    pod = core.decoder.decode(clusters.pod("p", meta={"uid": "u"}), 0)
    core.pod(None, pod, 0.0)
    victims = tuple(
        core.decoder.decode(clusters.pod(name, on="n", meta={"uid": name}), 0) for name in "abcd"
    )
    store = ListeningStore()
    budget = reporter.EventBudget(burst=2.0, rate=0.0)
    refusal = Refusal(pod, "no room", node="n", victims=victims)
    asyncio.run(_reported(core, store, refusal, budget=budget))

    by = "by pod u on node n"
    assert sorted(store.events) == [
        ("FailedScheduling", "no room"),
        ("Preempted", f"Preempted 3 pods: b {by}, c {by}, d {by}"),
        ("Preempted", f"Preempted {by}"),
    ]


class StumblingStore(ListeningStore):
    """A store that does not take the first condition; ``meanwhile`` comes before the next."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], None]] = []

    async def patch(self, ref: objects.Ref, patch: Any, **more: Any) -> objects.Object:
        if self.meanwhile:
            self.meanwhile.pop()()
            raise refusals.Unavailable("in a moment")
        return await super().patch(ref, patch, **more)


def test_a_condition_that_is_tried_again_does_not_replace_a_newer_one() -> None:
    """The pod was tried again while its first refusal could not be written."""
    core = Core({NAME: profile.default(NAME)})
    pod = core.decoder.decode(clusters.pod("p", meta={"uid": "u"}), 0)
    core.pod(None, pod, 0.0)
    store: Any = StumblingStore()
    events = event_messages.EventBuilder("test", lambda: 0.0)
    reporting = reporter.Reporter(store, core, lambda: 0.0, events)
    store.meanwhile.append(lambda: reporting.refused(Refusal(pod, "no room", node="n")))

    async def body() -> None:
        reporting.refused(Refusal(pod, "no nodes"))
        working = asyncio.ensure_future(reporting.run())
        await deadline.comes(lambda: reporting.idle)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(body())
    assert [condition["message"] for condition in store.conditions] == ["no room"]


class BusyStore(ListeningStore):
    """A store whose answers have a revision; ``meanwhile`` happens while it is asked."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    async def patch(self, ref: objects.Ref, patch: Any, **more: Any) -> objects.Object:
        await super().patch(ref, patch, **more)
        self.meanwhile()
        return {"metadata": {"name": ref.name, "resourceVersion": str(len(self.conditions))}}


def test_whoever_holds_a_pod_hears_of_the_revision_of_its_condition() -> None:
    """That of the preemptor, and that of its victim; the event of neither is news."""
    core = Core({NAME: profile.default(NAME)})
    pod = core.decoder.decode(clusters.pod("p", meta={"uid": "u"}), 0)
    core.pod(None, pod, 0.0)
    victim = core.decoder.decode(clusters.pod("v", on="n", meta={"uid": "u"}), 0)
    notes: list[tuple[Pod, str]] = []
    store: Any = BusyStore()
    events = event_messages.EventBuilder("test", lambda: 0.0)
    reporting = reporter.Reporter(
        store,
        core,
        lambda: 0.0,
        events,
        wrote=lambda held, revision: notes.append((held, revision)),
    )
    asyncio.run(_all_written(reporting, Refusal(pod, "no room", node="n", victims=(victim,))))

    assert sorted((held.name, revision) for held, revision in notes) == [("p", "2"), ("v", "1")]
    assert {id(held) for held, _ in notes} == {id(pod), id(victim)}
    assert pod.stored_condition == ("Unschedulable", "no room", "n", 0)


def test_what_was_stored_before_the_last_condition_is_written_again() -> None:
    """While the last one was written the pod was refused as before; and once more after it."""
    core = Core({NAME: profile.default(NAME)})
    pod = core.decoder.decode(clusters.pod("p", meta={"uid": "u"}), 0)
    pod.stored_condition = "Unschedulable", "as before", "", 0
    core.pod(None, pod, 0.0)
    store: Any = BusyStore()
    events = event_messages.EventBuilder("test", lambda: 0.0)
    reporting = reporter.Reporter(store, core, lambda: 0.0, events)
    as_before = Refusal(pod, "as before")
    store.meanwhile = lambda: reporting.refused(as_before)
    asyncio.run(_all_written(reporting, Refusal(pod, "otherwise")))
    asyncio.run(_all_written(reporting, as_before))

    assert [each["message"] for each in store.conditions] == ["otherwise", "as before"]


async def _reported(
    core: Core,
    store: Any,
    refusal: Refusal,
    leads: Callable[[], bool] = lambda: True,
    budget: reporter.EventBudget | None = None,
) -> None:
    events = event_messages.EventBuilder("test", lambda: 0.0)
    reporting = reporter.Reporter(store, core, lambda: 0.0, events, budget, leads=leads)
    await _all_written(reporting, refusal)


async def _all_written(reporting: reporter.Reporter, refusal: Refusal) -> None:
    reporting.refused(refusal)
    working = asyncio.ensure_future(reporting.run())
    await deadline.comes(lambda: reporting.idle)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
