"""Writes the ResourceSlices of this node: once for each change of what is offered.

Covers: which slices are made, patched and deleted, and when those that stand there are read.
Does not cover: the loop around it (``writing``), what they say (``objects.resource_slices``).

Rules:
1. Slices are written once the kubelet has the driver: a pod that is bound earlier waits for the
   kubelet's next attempt.
2. A kubelet deletes all slices of its node some seconds after its start, by its own backoff, and
   those of a driver that is away for 30 seconds. So what stands there is read at each registration,
   then after pauses that double from ``period`` to ``resync_seconds``.
3. A slice that the server keeps in another form than it was sent is not sent again until something
   changes here: its revision says that it is the one that was sent.
4. Where nothing is offered any more, the slices that this agent knows are deleted. Those of an
   agent before it are the kubelet's to delete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from koordlet.kubeapi import kinds, objects, refusals, selectors
from koordlet.model import prepared_claim
from koordlet.report import rows, view, writing
from koordlet.report.objects import resource_slices


class SliceRow:
    """Writes the slices."""

    name = "ResourceSlice"
    period = 2.0

    def __init__(self, manners: rows.ReportTimes, clock: Callable[[], float]) -> None:
        self._clock, self._budget = clock, writing.WriteBudget(clock, seconds=10.0)
        self._resync = manners.resync_seconds
        #: The registration for which slices are written; when they are read next, and the pause
        #: after that.
        self._registration = 0.0
        self._next_read, self._pause = clock(), self.period
        #: The slices by name, as they were read or written last; ``None``: not known.
        self._there: dict[str, objects.Object] | None = None
        #: What was sent last, and the revisions that it made.
        self._sent: tuple[list[dict[str, Any]], Mapping[str, str]] = ([], {})

    async def bring(self, store: objects.Objects, now: view.ReportView) -> int | None:
        """Compared with what was read or written last."""
        registration = now.driver.get(prepared_claim.REGISTRATION, 0)
        offer, node = now.plan.devices if registration else None, now.snapshot.node.name
        if offer is None and not self._there:
            return 0
        wanted = [] if offer is None else resource_slices.render(node, offer)
        if registration != self._registration:
            self._registration = registration
            self._next_read, self._pause = self._clock(), self.period
        if self._there is None or self._clock() >= self._next_read:
            self._there = await _read(store, node)
            self._next_read = self._clock() + self._pause
            self._pause = min(2 * self._pause, self._resync)
        if self._stands(wanted, self._there):
            return 0
        if not self._budget.take():
            return None
        try:
            return await self._write(store, node, wanted, self._there)
        except refusals.ObjectsError:
            self._there = None
            raise

    def _stands(self, wanted: list[dict[str, Any]], there: Mapping[str, objects.Object]) -> bool:
        """Whether nothing is to be written (rule 3)."""
        revisions = {name: objects.revision(body) for name, body in there.items()}
        if (wanted, revisions) == self._sent:
            return True
        names = {body["metadata"]["name"] for body in wanted}
        if names != there.keys() or not resource_slices.whole(list(there.values())):
            return False
        return all(rows.says(there[body["metadata"]["name"]], body) for body in wanted)

    async def _write(
        self,
        store: objects.Objects,
        node: str,
        wanted: list[dict[str, Any]],
        there: dict[str, objects.Object],
    ) -> int:
        """One generation; slices that are not wanted go last."""
        generation = resource_slices.generation(list(there.values())) + 1
        after: dict[str, objects.Object] = {}
        for body in wanted:
            name, spec = body["metadata"]["name"], body["spec"]
            pool = {**spec["pool"], "generation": generation}
            sent = {**body, "spec": {**spec, "pool": pool}}
            if name in there:
                patch = objects.Merge(sent, objects.revision(there[name]))
                after[name] = await store.patch(objects.Ref(kinds.RESOURCE_SLICES, name), patch)
            else:
                owners = await writing.owner(store, node)
                metadata = {**body["metadata"], "ownerReferences": owners}
                made = {**sent, "metadata": metadata}
                after[name] = await store.create(kinds.RESOURCE_SLICES, made)
        gone = there.keys() - after.keys()
        for name in sorted(gone):
            await _delete(store, there[name])
        self._there = after
        revisions = {name: objects.revision(body) for name, body in after.items()}
        self._sent = (wanted, revisions)
        return len(after) + len(gone)


async def _read(store: objects.Objects, node: str) -> dict[str, objects.Object]:
    selector = selectors.Selector(fields=f"spec.nodeName={node}")
    page = await objects.collect(store.list(kinds.RESOURCE_SLICES, selector=selector))
    return {objects.text(body, "name"): body for body in page.items if resource_slices.ours(body)}


async def _delete(store: objects.Objects, body: objects.Object) -> None:
    try:
        await store.delete(objects.ref(kinds.RESOURCE_SLICES, body), uid=objects.text(body, "uid"))
    except refusals.NotFound:
        return


async def withdraw(store: objects.Objects, node: str) -> int:
    """Delete the slices of a node on which no agent follows; how many there were."""
    try:
        there = await _read(store, node)
    except (refusals.NotFound, refusals.Forbidden):  # Also a kind that is not served.
        return 0
    for body in there.values():
        await _delete(store, body)
    return len(there)
