"""A standalone keeper of reservations: the store, the service and its socket, in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from koordlet.rpc import reservations, server
from koordlet.scheduler.reservation import service
from koordlet.scheduler.store import adapter


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Path]:
    """The directory of state whose scheduler listens, until the block ends."""
    socket = folder / "run" / "scheduler.sock"
    started = threading.Event()
    ends: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def work() -> None:
        store = adapter.Store(folder / "store.db", admit=(service.admit,))
        await store.open()
        offered = reservations.Reservations(service.ReservationService(store))
        rpc = server.RpcServer(socket, [offered])
        await rpc.start()
        end = asyncio.Event()
        ends.append((asyncio.get_running_loop(), end))
        started.set()
        await end.wait()
        await rpc.stop()
        await store.close()

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    if not started.wait(10):
        raise RuntimeError("the server did not start")
    try:
        yield folder
    finally:
        [(loop, end)] = ends
        loop.call_soon_threadsafe(end.set)
        thread.join(10)
