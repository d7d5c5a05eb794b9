"""Events on broken objects in a store: made once, renewed, bounded; a refusal costs one of them."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
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
        """One more."""
        self.asked.append("create")
        error = self.refuse(body)
        if error is not None:
            raise error
        return await self.store.create(kind, body)

    async def patch(self, ref: objects.Ref, change: objects.Patch) -> objects.Object:
        """Once more."""
        self.asked.append("patch")
        return await self.store.patch(ref, change)

    async def events(self) -> list[objects.Object]:
        """What people see."""
        return list((await objects.collect(self.store.list(kinds.EVENTS))).items)


def seen(*names: str, problems: tuple[str, ...] = ("it is broken",)) -> view.ReportView:
    """A node with broken pods of these names."""
    pods = tuple(
        dataclasses.replace(views.workload(name), source="cluster", problems=problems)
        for name in names
    )
    return views.view(pods, ready=True)


def play(path: Path, body: Callable[[Counting, clocks.Clock], Awaitable[None]]) -> None:
    """Run a test's body on a store."""

    async def run() -> None:
        store = adapter.Store(path / "store.db")
        await store.open()
        try:
            await store.create(kinds.NAMESPACES, {"metadata": {"name": "default"}})
            await asyncio.wait_for(
                asyncio.ensure_future(body(Counting(store), clocks.Clock(1000.0))), 30
            )
        finally:
            await store.close()

    asyncio.run(run())


def row(clock: clocks.Clock) -> remarking.EventObjects:
    """As an agent that has just started has it."""
    return remarking.EventObjects(clock)


async def look(one: remarking.EventObjects, store: Counting, now: view.ReportView) -> int | None:
    """One look at the view."""
    return await one.bring(store, now)  # type: ignore[arg-type] # what it needs of a store


def test_a_mistake_is_said_once(ram: Path) -> None:
    """A thousand looks at the same pod make one event."""

    async def body(store: Counting, clock: clocks.Clock) -> None:
        one = row(clock)
        for _ in range(100):
            await look(one, store, seen("web"))
            clock.now += 5
        (found,) = await store.events()
        assert store.asked == ["create"]
        assert (found["regarding"]["name"], found["regarding"]["uid"]) == ("web", "uid-web")
        assert found["note"].startswith("it is broken")

    play(ram, body)


def test_a_mistake_that_lasts_is_renewed(ram: Path) -> None:
    """Every half an hour the same event counts once more; one that was forgotten is made again."""

    async def body(store: Counting, clock: clocks.Clock) -> None:
        one = row(clock)
        for _ in range(3):
            await look(one, store, seen("web"))
            clock.now += 1801
        (found,) = await store.events()
        assert found["series"]["count"] == 3
        ref = objects.Ref(kinds.EVENTS, found["metadata"]["name"], "default")
        await store.store.delete(ref)
        assert await look(one, store, seen("web")) == 1
        assert "series" not in (await store.events())[0]

    play(ram, body)


def test_a_successor_says_nothing(ram: Path) -> None:
    """An agent that starts anew finds the event of the one before."""

    async def body(store: Counting, clock: clocks.Clock) -> None:
        await look(row(clock), store, seen("web"))
        assert await look(row(clock), store, seen("web")) == 0
        assert len(await store.events()) == 1

    play(ram, body)


def test_a_mistake_that_comes_and_goes_is_no_storm(ram: Path) -> None:
    """A pod that is broken at every second look has one event and costs one request."""

    async def body(store: Counting, clock: clocks.Clock) -> None:
        one = row(clock)
        for n in range(100):
            await look(one, store, seen("web") if n % 2 else seen())
            clock.now += 5
        assert store.asked == ["create"]

    play(ram, body)


def test_a_thousand_broken_pods(ram: Path) -> None:
    """A burst, then one each two seconds; nobody is left out for good."""

    async def body(store: Counting, clock: clocks.Clock) -> None:
        one, now = row(clock), seen(*(f"p{n}" for n in range(60)))
        said = []
        for _ in range(6):
            await look(one, store, now)
            said.append(len(store.asked))
            clock.now += 1
        assert said[2] >= 20
        assert said[-1] <= remarking.BURST + 6
        for _ in range(60):
            clock.now += 2
            await look(one, store, now)
        assert len(await store.events()) == 60

    play(ram, body)


def test_a_refusal_costs_one(ram: Path) -> None:
    """A namespace that ends refuses its own; the row fails only where nothing gets through."""

    async def body(store: Counting, clock: clocks.Clock) -> None:
        one = row(clock)
        ending = refusals.Forbidden("the namespace is being terminated", culprit="default")
        store.refuse = lambda sent: ending if sent["regarding"]["name"] == "a" else None
        assert await look(one, store, seen("a", "b")) == 1
        assert await look(one, store, seen("a", "b")) == 0
        store.refuse = lambda _: ending
        with pytest.raises(refusals.Forbidden):
            await look(one, store, seen("c"))
        store.refuse = lambda _: refusals.Unavailable("no route", culprit="it")
        with pytest.raises(refusals.Unavailable):
            await look(one, store, seen("d"))
        store.refuse = lambda _: None
        assert await look(one, store, seen("d")) == 1

    play(ram, body)
