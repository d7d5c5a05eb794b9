"""Shared by the commands about migration jobs: reaching them, their table, one in detail.

Covers: jobs of an API server where a kubeconfig is named, else those that a scheduler or a
descheduler shows over HTTP; a new job of either. Does not cover: the commands (``get``,
``describe``, ``watch``, ``migrate``, ``explain_migration``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.cli import cluster_store, output, scheduler_documents
from koordlet.kubeapi import kinds, objects
from koordlet.model import errors
from koordlet.state import paths

Document = Mapping[str, Any]
ENDED = frozenset({"Succeeded", "Failed", "Aborted"})
_BEAT = 1.0
_HEAD = ("NAME", "POD", "PHASE", "STATUS", "AGE", "FROM", "TO", "NEW POD", "MESSAGE")


class MigrationReach:
    """Jobs, wherever they are kept."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._kubeconfig: str | None = args.kubeconfig
        self._context, self._state_dir = args.context, args.state_dir
        self._address: str | None = getattr(args, "address", None)

    def every(self, name: str | None = None) -> list[Document]:
        """All jobs, or that of a name."""
        if self._kubeconfig is None:
            return scheduler_documents.ask(self._address, "moves", name)
        from koordlet.scheduler.migration import job, summary  # noqa: PLC0415 -- with the scheduler

        listing = asyncio.run(self._listed())
        several = sorted(map(job.read, listing.items), key=lambda each: (each.created, each.name))
        return [summary.document(each) for each in several if name in {None, each.name}]

    async def _listed(self) -> objects.Page:
        async with cluster_store.opened(self._kubeconfig or "", self._context) as store:
            return await objects.collect(store.list(kinds.POD_MIGRATION_JOBS))

    def one(self, name: str) -> Document:
        """The job of a name."""
        several = self.every(name)
        if not several:
            fix = "`koordlet get migrations` lists them"
            raise errors.HostError("no such migration", culprit=name, fix=fix)
        return several[0]

    def watch(self, name: str | None) -> Iterator[Document]:
        """Each job now, then again whenever it has changed, until interrupted."""
        known: dict[str, Document] = {}
        while True:
            for move in self.every(name):
                if known.get(move["name"]) != move:
                    known[move["name"]] = move
                    yield move
            time.sleep(_BEAT)

    def create(self, body: Document) -> str:
        """A new job; its name."""
        if self._kubeconfig is not None:
            return asyncio.run(self._created(body))
        from koordlet.rpc import client as rpc_client  # noqa: PLC0415 -- gRPC: 70 ms of a `--help`

        where = paths.choose(os.environ, root=os.geteuid() == 0, state_dir=self._state_dir)
        with rpc_client.PlacingClient(where.scheduler_socket) as client:
            (taken,) = client.submit([json.dumps(body)])
        if taken.error:
            raise errors.ConfigError(taken.error, culprit=f"migration {taken.name}")
        return str(taken.name)

    async def _created(self, body: Document) -> str:
        async with cluster_store.opened(self._kubeconfig or "", self._context) as store:
            return objects.text(await store.create(kinds.POD_MIGRATION_JOBS, body), "name")


def table(moves: Sequence[Document], now: float | None = None) -> list[str]:
    """A row for each job."""
    at = time.time() if now is None else now
    return output.table([row(move, at) for move in moves], head=_HEAD) if moves else []


def row(move: Document, now: float) -> tuple[str, ...]:
    """One row of the table."""
    shown = (move["status"], output.age(move["created"], now), move["from"], move["to"])
    cells = (move["name"], move["pod"], move["phase"], *shown, move["replacement"], move["message"])
    return tuple(cell or "-" for cell in cells)


def detail(move: Document) -> list[str]:
    """One job with its timeline."""
    ttl = move["ttlSeconds"]
    shown = {
        "Name": move["name"],
        "Pod": move["pod"],
        "Phase": move["phase"],
        "From": move["from"],
        "To": move["to"],
        "New pod": move["replacement"],
        "Reservation": move["reservation"],
        "Mode": move["mode"],
        "By": move["by"],
        "Why": move["why"],
        "TTL": None if ttl is None else f"{ttl:g} s",
        "Message": move["message"],
    }
    lines = [f"{name + ':':<12} {value or ''}".rstrip() for name, value in shown.items()]
    entries = [f"  {e['at']}  {e['what']}  {e['message']}".rstrip() for e in move["timeline"]]
    return [*lines, "Timeline:", *entries]
