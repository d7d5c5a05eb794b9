"""Shared by the commands about reservations: reaching their store, and their table.

Covers: the scheduler's socket, or the API server where a kubeconfig is named; printing.
Does not cover: the commands (``reserve``, ``describe``, ``delete``, ``get``, ``watch``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from koordlet.cli import cluster_store, options, output
from koordlet.kubeapi import objects
from koordlet.model import errors, moment
from koordlet.report import documents
from koordlet.state import paths

if TYPE_CHECKING:
    from koordlet.scheduler.reservation.service import ReservationService

Body = Mapping[str, Any]
_Result = TypeVar("_Result")
_CLUSTER = {
    "--kubeconfig FILE": "ask that cluster's API server for reservations, not a standalone"
    " scheduler",
    "--context NAME": "a context of the kubeconfig",
}
#: Object, its timeline, warnings about it.
Told = tuple[Body, list[tuple[str, str]], list[str]]


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Declare which cluster has them."""
    options.declare(parser, _CLUSTER, context={"default": ""})


def add(parser: argparse.ArgumentParser) -> None:
    """Declare how the reservations are reached."""
    add_cluster(parser)
    options.declare(
        parser, {"--state-dir DIR": "the DIR that the standalone scheduler was started with"}
    )
    options.output(parser, ("table", "json"))


class Reach:
    """Reservations, wherever they are kept; every call may raise ``ObjectsError``."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._kubeconfig: str | None = args.kubeconfig
        self._context = args.context
        where = paths.current(args.state_dir)
        self._socket: Path = _named(getattr(args, "address", None)) or where.scheduler_socket

    def create(self, body: Body, token: str) -> Body:
        """A new one, or the one that is there for the same wish."""
        if self._kubeconfig is not None:
            return self._direct(lambda service: service.create(body, token))
        with self._client() as client:
            return _body(client.create(body, token).manifest)

    def get(self, name: str) -> Body:
        """Get one reservation."""
        if self._kubeconfig is not None:
            return self._direct(lambda service: service.get(name))
        with self._client() as client:
            return _body(client.get(name).manifest)

    def every(self) -> list[Body]:
        """List all reservations."""
        if self._kubeconfig is not None:
            return list(self._direct(lambda service: service.every()).items)
        with self._client() as client:
            return [_body(reservation.manifest) for reservation in client.list()]

    def delete(self, name: str) -> None:
        """Remove one."""
        if self._kubeconfig is not None:
            self._direct(lambda service: service.delete(name))
            return
        with self._client() as client:
            client.delete(name)

    def describe(self, name: str) -> Told:
        """Get one reservation with its timeline."""
        if self._kubeconfig is not None:
            return self._direct(lambda service: service.describe(name))
        with self._client() as client:
            description = client.describe(name)
            timeline = [
                (moment.spell(entry.at.seconds), entry.what) for entry in description.timeline
            ]
            return _body(description.reservation.manifest), timeline, list(description.warnings)

    def watch(self) -> Iterator[tuple[str, Body]]:
        """Yield every reservation, then each change, until interrupted."""
        if self._kubeconfig is not None:
            yield from self._watched()
            return
        with self._client() as client:
            for change in client.watch():
                if change.HasField("reservation"):
                    gone = change.verb == 3
                    yield "DELETED" if gone else "SET", _body(change.reservation.manifest)

    def _client(self) -> Any:
        # gRPC is loaded where it is spoken.
        from koordlet.rpc import client  # noqa: PLC0415

        return client.ReservationsClient(self._socket)

    def _direct(self, call: Callable[[ReservationService], Awaitable[_Result]]) -> _Result:
        async def work() -> _Result:
            async with self._service() as service:
                return await call(service)

        return asyncio.run(work())

    def _watched(self) -> Iterator[tuple[str, Body]]:
        """Yield the changes of one event loop; a new loop for each would lose some."""
        loop = asyncio.new_event_loop()
        stack = contextlib.AsyncExitStack()
        try:
            service = loop.run_until_complete(stack.enter_async_context(self._service()))
            listing = loop.run_until_complete(service.every())
            for body in listing.items:
                yield "SET", body
            changes = service.watch(listing.revision)
            while True:
                try:
                    change = loop.run_until_complete(anext(changes))
                except StopAsyncIteration:
                    return
                if change.verb is not objects.Verb.BOOKMARK:
                    gone = change.verb is objects.Verb.DELETED
                    yield "DELETED" if gone else "SET", change.object
        finally:
            loop.run_until_complete(stack.aclose())
            loop.close()

    @contextlib.asynccontextmanager
    async def _service(self) -> Any:
        from koordlet.scheduler.reservation import service  # noqa: PLC0415 -- with the scheduler

        async with cluster_store.opened(self._kubeconfig or "", self._context) as kube:
            yield service.ReservationService(kube)


def _named(address: str | None) -> Path | None:
    """The socket of ``--address``, where it was given."""
    if not address:
        return None
    if not address.startswith("unix:"):
        raise errors.UsageError(
            "reservations are asked for on a Unix socket, or of an API server",
            culprit="--address",
            fix="give unix:/path, or --kubeconfig",
        )
    return Path(address.removeprefix("unix:"))


def _body(manifest: str) -> Body:
    body: Body = json.loads(manifest)
    return body


def table(bodies: list[Body], now: float | None = None) -> list[str]:
    """The columns of the definition; EXPIRES, which kubectl leaves empty, of a ``ttl``, too."""
    at = time.time() if now is None else now
    rows = [row(body, at) for body in bodies]
    return output.table(rows, head=("NAME", "PHASE", "AGE", "NODE", "TTL", "EXPIRES"))


def row(body: Body, now: float) -> tuple[str, ...]:
    """Format one row of the table."""
    spec, status = documents.part(body, "spec"), documents.part(body, "status")
    return (
        objects.text(body, "name"),
        str(status.get("phase") or "Pending"),
        output.age(objects.text(body, "creationTimestamp"), now),
        str(status.get("nodeName") or ""),
        str(spec.get("ttl") or ""),
        str(spec.get("expires") or _end(body, spec.get("ttl"))),
    )


def _end(body: Body, ttl: object) -> str:
    """When a ``ttl`` is over; empty where there is none, or it never is."""
    created = objects.text(body, "creationTimestamp")
    with contextlib.suppress(ValueError):
        seconds = moment.duration(ttl)
        return moment.spell(moment.parse(created) + seconds) if seconds else ""
    return ""
