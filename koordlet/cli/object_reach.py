"""Shared by the commands about jobs and plans: reaching objects, wherever they are kept.

Covers: objects of an API server where a kubeconfig is named, else those that a scheduler or a
descheduler shows over HTTP; new ones and changes of either. Does not cover: the commands, what the
documents say (``migration.summary``, ``rescheduling.move_plan``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from koordlet.cli import cluster_store, scheduler_documents
from koordlet.kubeapi import kinds, objects
from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.state import paths

Document = Mapping[str, Any]
_BEAT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownKind:
    """A kind of objects, and how it is shown."""

    kind: kinds.Kind
    #: In errors.
    noun: str
    #: Of ``koordlet get``.
    several: str
    #: Of the path that has them, and of the key in its document.
    path: str
    #: The documents of objects.
    read: Callable[[Sequence[objects.Object]], list[Document]]


class ObjectReach:
    """Objects of one kind."""

    def __init__(self, args: argparse.Namespace, shown: ShownKind) -> None:
        self._shown = shown
        self._kubeconfig: str | None = args.kubeconfig
        self._context, self._state_dir = args.context, args.state_dir
        self._address: str | None = getattr(args, "address", None)

    def every(self, name: str | None = None) -> list[Document]:
        """All of them, or that of a name."""
        if self._kubeconfig is None:
            return scheduler_documents.ask(self._address, self._shown.path, name)
        several = self._shown.read(asyncio.run(self._listed()).items)
        return [each for each in several if name in {None, each["name"]}]

    async def _listed(self) -> objects.Page:
        async with cluster_store.opened(self._kubeconfig or "", self._context) as store:
            return await objects.collect(store.list(self._shown.kind))

    def one(self, name: str) -> Document:
        """That of a name."""
        several = self.every(name)
        if not several:
            fix = f"`koordlet get {self._shown.several}` lists them"
            raise errors.HostError(f"no such {self._shown.noun}", culprit=name, fix=fix)
        return several[0]

    def watch(self, name: str | None) -> Iterator[Document]:
        """Each now, and again when it has changed, until interrupted; a named one until it goes."""
        known: dict[str, Document] = {}
        while True:
            several = self.every(name)
            if name is not None and known and not several:
                return
            for document in several:
                if known.get(document["name"]) != document:
                    known[document["name"]] = document
                    yield document
            time.sleep(_BEAT)

    def create(self, body: Document) -> str:
        """A new one; its name."""
        if self._kubeconfig is None:
            return self._submitted(body)
        return asyncio.run(self._created(body))

    async def _created(self, body: Document) -> str:
        async with cluster_store.opened(self._kubeconfig or "", self._context) as store:
            return objects.text(await store.create(self._shown.kind, body), "name")

    def annotate(self, name: str, notes: Mapping[str, str]) -> None:
        """Write annotations of one that is there."""
        self.one(name)
        meta = {"name": name, "annotations": dict(notes)}
        if self._kubeconfig is None:
            kind = self._shown.kind
            self._submitted({"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta})
            return
        asyncio.run(self._patched(name, {"metadata": {"annotations": dict(notes)}}))

    async def _patched(self, name: str, body: Document) -> None:
        async with cluster_store.opened(self._kubeconfig or "", self._context) as store:
            await store.patch(objects.Ref(self._shown.kind, name), objects.Merge(body))

    def _submitted(self, body: Document) -> str:
        from koordlet.rpc import client as rpc_client  # noqa: PLC0415 -- gRPC: 70 ms of a `--help`

        where = paths.current(self._state_dir)
        with rpc_client.PlacingClient(where.scheduler_socket) as client:
            (taken,) = client.submit([json.dumps(body)])
        if taken.error:
            raise errors.ConfigError(taken.error, culprit=f"{self._shown.noun} {taken.name}")
        return str(taken.name)
