"""The informer: what it holds after changes, failures and outages, over real adapters.

The store is the SQLite adapter; where failures matter, ``kube`` over the API server of the tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kube import adapter as kube
from koordlet.kubeapi import informer, kinds, objects, refusals, selectors
from koordlet.scheduler.store import adapter
from koordlet.workloads import gatherer
from tests.kit import deadline
from tests.kit.apiserver import faults, server, store_server

PATIENCE = 30.0
PACE = informer.Pace(first_seconds=0.01, most_seconds=0.05, slow_seconds=0.05)


def color(body: objects.Object) -> str:
    """What the tests keep of an object; some have none."""
    return str(body["spec"]["color"])


class World:
    """A store, a server before it, a client, and an informer of the reservations."""

    def __init__(
        self, store: adapter.Store, serving: server.Server, client: kube.KubeStore
    ) -> None:
        self.store = store
        self.server = serving
        self.client = client
        self.told: list[tuple[str, str | None, str | None]] = []
        self.moved = asyncio.Event()
        self.informer = self.watch_with()

    def watch_with(
        self, selector: selectors.Selector = selectors.EVERYTHING
    ) -> informer.Informer[str]:
        """An informer that tells this world."""
        self.informer = informer.Informer(
            *(self.client, kinds.RESERVATIONS, color),
            selector=selector,
            changed=self.changed,
            pace=PACE,
        )
        return self.informer

    def changed(self, key: informer.Key, before: str | None, after: str | None) -> None:
        """Take note."""
        self.told.append((key[1], before, after))
        self.moved.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is so."""
        await deadline.comes(condition, seconds=PATIENCE)

    async def make(self, name: str, color: str | None = "red", **status: Any) -> None:
        """A reservation."""
        spec = {} if color is None else {"color": color}
        await self.store.create(kinds.RESERVATIONS, {"metadata": {"name": name}, "spec": spec})
        if status:
            await self.paint(name, "status", **status)

    async def paint(self, name: str, part: str = "spec", **values: Any) -> None:
        """Change one."""
        await self.store.patch(
            objects.Ref(kinds.RESERVATIONS, name),
            objects.Merge({part: values}),
            subresource="status" if part == "status" else "",
        )

    async def remove(self, name: str) -> None:
        """Delete one."""
        await self.store.delete(objects.Ref(kinds.RESERVATIONS, name))

    def colors(self) -> dict[str, str]:
        """What the informer holds."""
        return {name: value for (_, name), value in self.informer.snapshot.items()}

    def lists(self) -> int:
        """How often the server was asked for a list."""
        return len(self.server.asked("GET", watch=False))


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[World]:
    """A world."""
    async with store_server.opened(path, custom=[kinds.RESERVATIONS]) as made:
        yield World(made.store, made.serving, made.client)


@asynccontextmanager
async def running(world: World) -> AsyncGenerator[None]:
    """The informer runs inside of this."""
    task = asyncio.create_task(world.informer.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await world.informer.synced()
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_what_happens_is_told(ram: Path) -> None:
    """Objects of the list and every change after it: one call each, with before and after."""
    async with opened(ram) as world:
        await world.make("old")
        async with running(world):
            assert world.colors() == {"old": "red"}
            await world.make("new", "blue")
            await world.paint("new", color="green")
            await world.remove("old")
            await world.until(lambda: len(world.told) == 4)
        assert world.told == [
            ("old", None, "red"),
            ("new", None, "blue"),
            ("new", "blue", "green"),
            ("old", "red", None),
        ]
        assert world.colors() == {"new": "green"}
        assert world.informer.get("new") == "green"
        age = world.informer.age()
        assert age is not None
        assert age < PATIENCE


async def test_an_empty_list_is_an_empty_list(ram: Path) -> None:
    """No objects is a state like any other, and the source is well."""
    async with opened(ram) as world, running(world):
        assert world.colors() == {}
        await world.until(lambda: world.informer.health.state is informer.State.WATCHING)


async def test_an_outage_costs_no_list(ram: Path) -> None:
    """After cut connections and a server that was away, the watch goes on where it was."""
    async with opened(ram) as world:
        await world.make("one")
        async with running(world):
            port = world.server.port
            await world.server.stop()
            await world.until(lambda: world.informer.health.failures > 3)
            assert world.informer.health.state is informer.State.FAILING
            assert world.colors() == {"one": "red"}
            await world.make("two")
            await world.server.start(port)
            await world.until(lambda: world.colors() == {"one": "red", "two": "red"})
            assert world.lists() == 1
            assert world.informer.health.error == ""


@pytest.mark.parametrize("by", ["event", "status"])
async def test_what_was_lost_is_listed_once(ram: Path, by: str) -> None:
    """410, as an event or as an HTTP status: one new list, and the difference is told."""
    async with opened(ram) as world:
        await world.make("stays")
        await world.make("goes")
        async with running(world):
            port = world.server.port
            await world.server.stop()
            await world.remove("goes")
            await world.make("comes", "blue")
            revision = (await objects.collect(world.store.list(kinds.RESERVATIONS))).revision
            if by == "event":
                await world.store.compact(revision)
            else:
                world.server.faults.add(
                    faults.Fault(faults.Manner.ANSWER, watch=True, status=410, body=b"{}")
                )
            await world.server.start(port)
            await world.until(lambda: world.colors() == {"stays": "red", "comes": "blue"})
        assert sorted(world.told[2:]) == [("comes", None, "blue"), ("goes", "red", None)]
        assert world.lists() == 2


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":{"metadata":{"name":"x"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"resourceVersion":7}}}\n',
        b'{"type":"ADDED","object":[]}\n',
        b"<html>\n",
        b'{"type":"ERROR","object":{"kind":"Status","code":500,"reason":"InternalError"}}\n',
    ],
)
async def test_a_change_that_makes_no_sense(ram: Path, line: bytes) -> None:
    """What cannot be read does not stand in the way for ever: there is a new list."""
    async with opened(ram) as world, running(world):
        garbled = faults.Fault(faults.Manner.ANSWER, watch=True, status=200, body=line, times=-1)
        world.server.faults.add(garbled)
        await world.server.cut()
        await world.make("behind")
        await world.until(lambda: world.colors() == {"behind": "red"})
        assert world.informer.health.lists > 1


async def test_a_list_that_fails_half_way_changes_nothing(ram: Path) -> None:
    """What was known stays known until a whole list has come."""
    async with opened(ram) as world:
        await world.make("one")
        async with running(world):
            fault = world.server.faults.add(
                faults.Fault(faults.Manner.HALF, method="GET", watch=False, times=5)
            )
            port = world.server.port
            await world.server.stop()
            await world.make("two")
            revision = (await objects.collect(world.store.list(kinds.RESERVATIONS))).revision
            await world.store.compact(revision)
            await world.server.start(port)
            await world.until(lambda: fault.times < 3)
            assert world.colors() == {"one": "red"}
            await world.until(lambda: world.colors() == {"one": "red", "two": "red"})


async def test_a_name_that_is_used_again(ram: Path) -> None:
    """Another object under the same name is a departure and an arrival, also through a list."""
    async with opened(ram) as world:
        await world.make("one")
        async with running(world):
            port = world.server.port
            await world.server.stop()
            await world.remove("one")
            await world.make("one")
            revision = (await objects.collect(world.store.list(kinds.RESERVATIONS))).revision
            await world.store.compact(revision)
            await world.server.start(port)
            await world.until(lambda: len(world.told) == 3)
        assert world.told[1:] == [("one", "red", None), ("one", None, "red")]


async def test_an_object_that_makes_no_sense(ram: Path) -> None:
    """It costs only itself: a new one is left out, a known one keeps its last good value."""
    async with opened(ram) as world:
        await world.make("good")
        await world.make("bad", None)
        async with running(world):
            assert world.colors() == {"good": "red"}
            assert list(world.informer.rejected) == [("", "bad")]
            (why,) = world.informer.rejected.values()
            assert why.uid
            (told,) = gatherer.unread_of(world.informer)
            assert (world.informer.kind.name, "bad", why.uid) == (told.kind, told.name, told.uid)
            assert told.why == why.why != ""
            await world.paint("good", color=None)
            await world.until(lambda: ("", "good") in world.informer.rejected)
            assert world.colors() == {"good": "red"}
            await world.paint("bad", color="blue")
            await world.until(lambda: world.colors() == {"good": "red", "bad": "blue"})
            await world.paint("good", color="white")
            await world.until(lambda: not world.informer.rejected)


@pytest.mark.parametrize("supported", [True, False])
async def test_a_selector_by_field(ram: Path, supported: bool) -> None:
    """Objects of one node appear and disappear, whether the server selects or we do."""
    selector = selectors.Selector(fields="status.nodeName=here")
    async with opened(ram) as world:
        if not supported:
            world.server.api.unselectable.add(kinds.RESERVATIONS)
        world.watch_with(selector)
        await world.make("mine", nodeName="here")
        await world.make("other", nodeName="there")
        async with running(world):
            assert world.colors() == {"mine": "red"}
            await world.paint("other", "status", nodeName="here")
            await world.until(lambda: len(world.colors()) == 2)
            await world.paint("mine", "status", nodeName="there")
            await world.until(lambda: world.colors() == {"other": "red"})
            assert world.informer.health.local is not supported


def test_waiting_grows_and_is_spread() -> None:
    """Failures wait longer and longer, by chance; refused credentials longest; a date is kept."""
    pace, down = informer.Pace(), refusals.Unavailable("down")

    assert [pace.wait(n, down, 1.0) for n in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert pace.wait(3, down, 0.5) == 2
    assert pace.wait(0, down, 0.0) > 0
    forbidden = [pace.wait(n, refusals.Forbidden("no"), 1.0) for n in range(12)]
    assert forbidden == [0.5, 1, 2, 4, 8, 16, 32, 64, 120, 120, 120, 120]
    assert pace.wait(0, refusals.NotServed("no"), 1.0) == pace.slow_seconds
    assert pace.wait(0, refusals.Unavailable("busy", retry_after=7), 0.0) == 7


async def test_a_store_that_cannot_go_on_from_its_own_lists(ram: Path) -> None:
    """Gone again and again right after a list is a failure that waits, not a storm of lists."""
    waits: list[refusals.ObjectsError] = []

    class Noted(informer.Pace):
        def wait(self, failures: int, error: refusals.ObjectsError, chance: float) -> float:
            waits.append(error)
            return super().wait(failures, error, chance * 0)

    async with opened(ram) as world:
        fault = world.server.faults.add(
            faults.Fault(faults.Manner.ANSWER, watch=True, status=410, body=b"{}", times=4)
        )
        world.informer = informer.Informer(world.client, kinds.RESERVATIONS, color, pace=Noted())
        async with running(world):
            await world.until(lambda: len(waits) == 4)
            await world.until(lambda: world.lists() == 5)
            await world.until(lambda: world.informer.health.state is informer.State.WATCHING)
        assert fault.times == 0
        assert [type(error) for error in waits] == [refusals.Gone] * 4


@pytest.mark.parametrize("verb", list(objects.Verb))
async def test_a_watch_that_ends_at_once_after_each_event_is_no_storm_of_watches(
    verb: objects.Verb,
) -> None:
    """A proxy cuts them: each is followed by a wait, and what was told is taken in."""
    waits: list[refusals.ObjectsError] = []

    class Noted(informer.Pace):
        def wait(self, failures: int, error: refusals.ObjectsError, chance: float) -> float:
            waits.append(error)
            return super().wait(failures, error, chance * 0)

    class Cutting:
        watches = 0

        async def list(self, *_: Any, **__: Any) -> AsyncGenerator[objects.Page, None]:
            yield objects.Page((), "1")

        async def watch(self, _: Any, since: str, **__: Any) -> AsyncGenerator[objects.Change]:
            self.watches += 1
            if self.watches == 4:
                await asyncio.Event().wait()
            revision = str(int(since) + 1)
            meta = {"name": "a", "uid": "u", "resourceVersion": revision}
            yield objects.Change(verb, {"metadata": meta, "spec": {"color": revision}}, revision)

    store: Any = Cutting()
    source = informer.Informer(store, kinds.RESERVATIONS, color, pace=Noted(first_seconds=0.01))
    task = asyncio.create_task(source.run())
    await deadline.comes(lambda: store.watches == 4)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert len(waits) == 3
    changes = verb in {objects.Verb.ADDED, objects.Verb.MODIFIED}
    assert (source.get("a") is not None) is changes
