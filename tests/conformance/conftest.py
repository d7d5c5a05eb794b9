"""Every test of the suite runs once for each adapter, in a loop of its own."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from inspect import iscoroutinefunction, signature
from pathlib import Path

import pytest

from koordlet.kube import adapter as kube
from koordlet.kube import credentials
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.store import adapter
from tests.conformance import real
from tests.conformance.worlds import PAGE, World
from tests.kit.apiserver import server


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutines in the loop of the world that they asked for."""
    if not iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in signature(pyfuncitem.obj).parameters}
    world = arguments["world"]
    assert isinstance(world, World)
    world.run(pyfuncitem.obj(**arguments))
    return True


_Opened = tuple[objects.Objects, Callable[[], Awaitable[str]]]


@asynccontextmanager
async def _sqlite(path: Path) -> AsyncGenerator[_Opened]:
    store = adapter.Store(path / "store.db", page=PAGE)
    await store.open()

    async def age() -> str:
        await store.compact("2")
        return "1"

    yield store, age
    await store.close()


@asynccontextmanager
async def _kube(path: Path) -> AsyncGenerator[_Opened]:
    async with _sqlite(path) as (store, age):
        assert isinstance(store, adapter.Store)
        serving = server.Server(store, custom=[kinds.RESERVATIONS])
        await serving.start()
        config = serving.kubeconfig(path / "kubeconfig")
        async with _client(config) as client:
            yield client, age
        await serving.stop()


@asynccontextmanager
async def _real(config: Path) -> AsyncGenerator[_Opened]:
    async def age() -> str:
        # The server has begun to remember custom resources later than at its first revision.
        return "1"

    async with _client(config) as client:
        yield client, age


@asynccontextmanager
async def _client(config: Path) -> AsyncGenerator[objects.Objects]:
    who = credentials.Credentials(credentials.CredentialSource(kubeconfig=str(config)))
    client = kube.KubeStore(who, kube.RequestTimes(page=PAGE))
    yield client
    await client.close()


async def _made(store: objects.Objects, kind: kinds.Kind, name: str) -> None:
    with suppress(refusals.AlreadyExists):
        await store.create(kind, {"metadata": {"name": name}})


@contextmanager
def _world(opening: AbstractAsyncContextManager[_Opened], *, finite: bool) -> Iterator[World]:
    tag = uuid.uuid4().hex[:8]
    namespace, two = f"one-{tag}", f"two-{tag}"
    with asyncio.Runner() as runner:
        store, age = runner.run(opening.__aenter__())
        try:
            for name in (namespace, two):
                runner.run(_made(store, kinds.NAMESPACES, name))
            for name in ("node-1", "node-2", "node-7"):
                runner.run(_made(store, kinds.NODES, name))
            yield World(store, runner, age, finite=finite, namespace=namespace, other=two)
        finally:
            runner.run(opening.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a real API server, where there are programs to start one."""
    assets = real.assets()
    if assets is None:
        pytest.skip(real.WHY_NOT)
    with real.running(assets, tmp_path_factory.mktemp("cluster")) as config:
        yield config


@pytest.fixture(params=["sqlite", "kube", "real"])
def world(request: pytest.FixtureRequest, ram: Path) -> Iterator[World]:
    """One store, empty but for what other tests left in a real API server."""
    match request.param:
        case "sqlite":
            opening = _sqlite(ram)
        case "kube":
            opening = _kube(ram)
        case _:
            opening = _real(request.getfixturevalue("cluster"))
    with _world(opening, finite=request.param != "sqlite") as made:
        yield made
