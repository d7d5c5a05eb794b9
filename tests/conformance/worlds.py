"""Stores to test: opened, with a namespace of their own, and closed again.

Covers: what all adapters are given alike. Does not cover: how a real API server is started
(``real``).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from koordlet.kubeapi import kinds, objects, refusals, selectors

_Result = TypeVar("_Result")

#: How long a test waits for what must come.
PATIENCE = 30.0

#: Small, so that a handful of objects makes several pages.
PAGE = 3


@dataclass
class World:
    """One store and the loop that it runs in."""

    store: objects.Objects
    runner: asyncio.Runner
    #: Makes every revision so far too old to watch from, and gives one of them.
    age: Callable[[], Awaitable[str]]
    #: False where a store serves whatever kind it is asked for.
    finite: bool = True
    namespace: str = "one"
    other: str = "two"
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self, body: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a part of a test."""
        return self.runner.run(asyncio.wait_for(body, PATIENCE))

    def name(self, stem: str = "thing") -> str:
        """A name that nothing else has in this world."""
        return f"{stem}-{self.namespace}-{next(self._numbers)}"

    # Objects that every API server accepts.

    async def pod(
        self, *, labels: dict[str, str] | None = None, namespace: str = "", **spec: Any
    ) -> objects.Ref:
        """A new pod."""
        ref = objects.Ref(kinds.PODS, self.name("pod"), namespace or self.namespace)
        container = {"name": "main", "image": "registry.example/app:1"}
        await self.store.create(
            kinds.PODS,
            {
                "metadata": {
                    "name": ref.name,
                    "namespace": ref.namespace,
                    "labels": labels or {},
                },
                "spec": {"containers": [container], **spec},
            },
        )
        return ref

    async def running(self, **labels: str) -> objects.Ref:
        """A pod that has a node, runs and is ready."""
        ref = await self.pod(labels=labels)
        await self.store.bind(ref, "node-1")
        ready = {"type": "Ready", "status": "True"}
        await self.store.patch(
            ref,
            objects.Strategic({"status": {"phase": "Running", "conditions": [ready]}}),
            subresource="status",
        )
        return ref

    async def node(self, **labels: str) -> objects.Ref:
        """A new node."""
        ref = objects.Ref(kinds.NODES, self.name("node"))
        body = {"metadata": {"name": ref.name, "labels": {"world": self.namespace, **labels}}}
        await self.store.create(kinds.NODES, body)
        return ref

    async def reservation(self, **spec: Any) -> objects.Ref:
        """A new object of a custom kind."""
        ref = objects.Ref(kinds.RESERVATIONS, self.name("reservation"))
        labels = {"world": self.namespace}
        await self.store.create(
            kinds.RESERVATIONS, {"metadata": {"name": ref.name, "labels": labels}, "spec": spec}
        )
        return ref

    async def budget(self, allowed: int, **labels: str) -> objects.Ref:
        """A disruption budget that allows so many, as its controller would have written it."""
        ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, self.name("budget"), self.namespace)
        made = await self.store.create(
            ref.kind,
            {
                "metadata": {"name": ref.name, "namespace": ref.namespace},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
            },
        )
        status = {
            "disruptionsAllowed": allowed,
            "currentHealthy": 1 + allowed,
            "desiredHealthy": 1,
            "expectedPods": 1 + allowed,
            "observedGeneration": made["metadata"]["generation"],
        }
        await self.store.patch(ref, objects.Merge({"status": status}), subresource="status")
        return ref

    @property
    def mine(self) -> selectors.Selector:
        """Selects the objects without a namespace that this world made."""
        return selectors.Selector(labels=f"world={self.namespace}")

    async def listed(
        self, kind: kinds.Kind, labels: str = "", fields: str = "", namespace: str | None = None
    ) -> list[str]:
        """The names of objects, in the order of the list."""
        where = self.namespace if namespace is None else namespace
        listing = await objects.collect(
            self.store.list(
                kind,
                namespace=where if kind.namespaced else "",
                selector=selectors.Selector(labels, fields),
            )
        )
        return [objects.text(body, "name") for body in listing.items]

    async def revision(self, kind: kinds.Kind) -> str:
        """The revision of the store now."""
        return (await objects.collect(self.store.list(kind, selector=self.mine))).revision

    async def changes(
        self,
        kind: kinds.Kind,
        since: str,
        number: int,
        selector: selectors.Selector = selectors.EVERYTHING,
    ) -> list[objects.Change]:
        """The next changes of a kind in this world's namespace; bookmarks are no changes."""
        changes: list[objects.Change] = []
        where = self.namespace if kind.namespaced else ""
        while True:
            watch = self.store.watch(kind, since, namespace=where, selector=selector)
            try:
                async for change in watch:
                    since = change.revision
                    if change.verb is not objects.Verb.BOOKMARK:
                        changes.append(change)
                    if len(changes) == number:
                        return changes
            finally:
                await watch.aclose()


async def is_gone(world: World, ref: objects.Ref) -> bool:
    """Whether there is no such object."""
    try:
        await world.store.get(ref)
    except refusals.NotFound:
        return True
    return False


def told(changes: list[objects.Change]) -> list[tuple[str, str]]:
    """Verbs and names."""
    return [(change.verb.value, objects.text(change.object, "name")) for change in changes]
