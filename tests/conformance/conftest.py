"""Every test of the suite runs once for each adapter, in a loop of its own."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from inspect import iscoroutinefunction, signature
from pathlib import Path

import pytest

from koordlet.scheduler.store import adapter
from tests.conformance import worlds


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutines in the loop of the world that they asked for."""
    if not iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in signature(pyfuncitem.obj).parameters}
    world = arguments["world"]
    assert isinstance(world, worlds.World)
    world.run(pyfuncitem.obj(**arguments))
    return True


@asynccontextmanager
async def _sqlite(path: Path) -> AsyncGenerator[tuple[adapter.Store, Callable[[], Awaitable[str]]]]:
    store = adapter.Store(path / "store.db", page=worlds.PAGE)
    await store.open()

    async def age() -> str:
        await store.compact("2")
        return "1"

    yield store, age
    await store.close()


@contextmanager
def _world(path: Path) -> Iterator[worlds.World]:
    with asyncio.Runner() as runner:
        opened = _sqlite(path)
        store, age = runner.run(opened.__aenter__())
        tag = uuid.uuid4().hex[:8]
        world = worlds.World(
            store, runner, age, finite=False, namespace=f"one-{tag}", other=f"two-{tag}"
        )
        try:
            yield world
        finally:
            runner.run(opened.__aexit__(None, None, None))


@pytest.fixture(params=["sqlite"])
def world(request: pytest.FixtureRequest, ram: Path) -> Iterator[worlds.World]:
    """One store, empty but for what other tests left in a real API server."""
    del request
    with _world(ram) as made:
        yield made
