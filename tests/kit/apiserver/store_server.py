"""An API server over a store in a file, and a client of it, while a test runs."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from koordlet.kube import adapter as kube
from koordlet.kube import credentials
from koordlet.kubeapi import kinds
from koordlet.scheduler.store import adapter
from tests.kit.apiserver import server


class ServedStore(NamedTuple):
    """The server, a client of it, and the store that it serves."""

    serving: server.Server
    client: kube.KubeStore
    store: adapter.Store


@asynccontextmanager
async def opened(
    path: Path,
    *nodes: str,
    custom: Sequence[kinds.Kind] = (),
    times: kube.RequestTimes | None = None,
    clock: Callable[[], float] = time.time,
) -> AsyncGenerator[ServedStore]:
    """A server of these nodes by a clock, and a client with these timeouts."""
    store = adapter.Store(path / "store.db", clock=clock)
    await store.open()
    for name in nodes:
        await store.create(kinds.NODES, {"metadata": {"name": name}})
    serving = server.Server(store, custom=custom)
    await serving.start()
    config = serving.kubeconfig(path / "kubeconfig")
    who = credentials.Credentials(credentials.CredentialSource(kubeconfig=str(config)))
    client = kube.KubeStore(who, times)
    try:
        yield ServedStore(serving, client, store)
    finally:
        serving.go_on.set()
        await client.close()
        await serving.stop()
        await store.close()
