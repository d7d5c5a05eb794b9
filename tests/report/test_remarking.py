"""Events on broken objects in a store: made once, renewed, bounded; a refusal costs one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.report import remarking, view
from koordlet.scheduler.store import adapter
from tests.kit import clocks, views


class Counting:
    """A store that counts what it is asked, and may refuse."""

    def __init__(self, store: objects.Objects) -> None:
        self.store = store
        self.asked: list[str] = []
        self.refuse: Callable[[Any], Exception | None] = lambda _: None

    async def create(self, kind: kinds.Kind, body: objects.Object) -> objects.Object:
        """Count the request; an error that the test has set is raised."""
        self.asked.append("create")
        error = self.refuse(body)
        if error is not None:
            raise error
        return await self.store.create(kind, body)

    async def patch(self, ref: objects.Ref, change: objects.Patch) -> objects.Object:
        """Count the request."""
        self.asked.append("patch")
        return await self.store.patch(ref, change)

    async def events(self) -> list[objects.Object]:
        """All events that stand in the store."""
        return list((await objects.collect(self.store.list(kinds.EVENTS))).items)


def view_of_broken(*names: str, problems: tuple[str, ...] = ("it is broken",)) -> view.ReportView:
    """A node with broken pods of these names."""
    pods = tuple(
        dataclasses.replace(views.workload(name), source="cluster", problems=problems)
        for name in names
    )
    return views.view(pods, ready=True)


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[tuple[Counting, clocks.Clock]]:
    """A store with a namespace, and a clock."""
    store = adapter.Store(path / "store.db")
    await store.open()
    try:
        await store.create(kinds.NAMESPACES, {"metadata": {"name": "default"}})
        yield Counting(store), clocks.Clock(1000.0)
    finally:
        await store.close()


def start_row(clock: clocks.Clock) -> remarking.EventObjects:
    """The row of an agent that has just started."""
    return remarking.EventObjects(clock)


async def look(row: remarking.EventObjects, store: Counting, now: view.ReportView) -> int | None:
    """One look at the view."""
    return await row.bring(store, now)  # type: ignore[arg-type] # what it needs of a store


async def test_a_mistake_is_said_once(ram: Path) -> None:
    """A hundred looks at the same pod make one event."""
    async with opened(ram) as (store, clock):
        row = start_row(clock)
        for _ in range(100):
            await look(row, store, view_of_broken("web"))
            clock.now += 5
        (event,) = await store.events()
        assert store.asked == ["create"]
        assert (event["regarding"]["name"], event["regarding"]["uid"]) == ("web", "uid-web")
        assert event["note"].startswith("it is broken")


async def test_a_mistake_that_lasts_is_renewed(ram: Path) -> None:
    """Each half hour the same event counts once more; one that was deleted is made again."""
    async with opened(ram) as (store, clock):
        row = start_row(clock)
        for _ in range(3):
            await look(row, store, view_of_broken("web"))
            clock.now += 1801
        (event,) = await store.events()
        assert event["series"]["count"] == 3
        ref = objects.Ref(kinds.EVENTS, event["metadata"]["name"], "default")
        await store.store.delete(ref)
        assert await look(row, store, view_of_broken("web")) == 1
        assert "series" not in (await store.events())[0]


async def test_a_successor_says_nothing(ram: Path) -> None:
    """An agent that starts anew finds the event of the one before."""
    async with opened(ram) as (store, clock):
        await look(start_row(clock), store, view_of_broken("web"))
        assert await look(start_row(clock), store, view_of_broken("web")) == 0
        assert len(await store.events()) == 1


async def test_a_mistake_that_comes_and_goes_is_no_storm(ram: Path) -> None:
    """A pod that is broken at every second look has one event and costs one request."""
    async with opened(ram) as (store, clock):
        row = start_row(clock)
        for n in range(100):
            await look(row, store, view_of_broken("web") if n % 2 else view_of_broken())
            clock.now += 5
        assert store.asked == ["create"]


async def test_many_broken_pods_get_their_events_slowly(ram: Path) -> None:
    """A burst, then one event in two seconds; no pod is left out for good."""
    async with opened(ram) as (store, clock):
        row, now = start_row(clock), view_of_broken(*(f"p{n}" for n in range(60)))
        request_counts = []
        for _ in range(6):
            await look(row, store, now)
            request_counts.append(len(store.asked))
            clock.now += 1
        assert request_counts[2] >= 20
        assert request_counts[-1] <= remarking.BURST + 6
        for _ in range(60):
            clock.now += 2
            await look(row, store, now)
        assert len(await store.events()) == 60


async def test_a_refusal_costs_one(ram: Path) -> None:
    """A namespace that ends refuses its own; the row fails only where nothing gets through."""
    async with opened(ram) as (store, clock):
        row = start_row(clock)
        ending = refusals.Forbidden("the namespace is being terminated", culprit="default")
        store.refuse = lambda sent: ending if sent["regarding"]["name"] == "a" else None
        assert await look(row, store, view_of_broken("a", "b")) == 1
        assert await look(row, store, view_of_broken("a", "b")) == 0
        store.refuse = lambda _: ending
        with pytest.raises(refusals.Forbidden):
            await look(row, store, view_of_broken("c"))
        store.refuse = lambda _: refusals.Unavailable("no route", culprit="it")
        with pytest.raises(refusals.Unavailable):
            await look(row, store, view_of_broken("d"))
        store.refuse = lambda _: None
        assert await look(row, store, view_of_broken("d")) == 1
