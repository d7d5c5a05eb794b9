"""What a node reports, and the stores that the writers bring it to.

Covers: views of the node, a store in a file that counts, the same one behind an API server.
Does not cover: the rows and their writers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.model import best_effort
from koordlet.report import rows, view
from koordlet.scheduler.store import adapter
from tests.kit import clocks, views

NODE = "node-a"
NRT = objects.Ref(dataclasses.replace(kinds.NODE_RESOURCE_TOPOLOGIES, version="v1alpha2"), NODE)
METRIC = objects.Ref(kinds.NODE_METRICS, NODE)
NODE_REF = objects.Ref(kinds.NODES, NODE)
MANNERS = rows.ReportTimes()
CUSTOM = [NRT.kind, kinds.NODE_METRICS, kinds.DEVICES]


class Racing(clocks.Clock):
    """Time that no budget can hold up."""

    def __call__(self) -> float:
        self.now += 20
        return self.now


class Counting:
    """A store that counts what it is asked."""

    def __init__(self, store: objects.Objects) -> None:
        self.store = store
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self.store, name)


def node_view(**changes: Any) -> view.ReportView:
    """A view of this node."""
    base = views.view(views.pods(2))
    node = dataclasses.replace(base.snapshot.node, name=NODE)
    snap = dataclasses.replace(base.snapshot, node=node)
    return dataclasses.replace(base, **{"snapshot": snap, "ready": True, **changes})


def offering(now: view.ReportView, **amounts: int) -> view.ReportView:
    """The same view with an offer of batch resources."""
    batch = {f"kubernetes.io/batch-{name}": amount for name, amount in amounts.items()}
    offer = best_effort.Offer(amounts=batch)
    return dataclasses.replace(now, plan=dataclasses.replace(now.plan, offer=offer))


@asynccontextmanager
async def stored_node(path: Path) -> AsyncGenerator[Counting]:
    """A store that has this node."""
    store = adapter.Store(path / "store.db")
    await store.open()
    try:
        await store.create(kinds.NODES, {"metadata": {"name": NODE}})
        yield Counting(store)
    finally:
        await store.close()
