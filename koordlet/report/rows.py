"""The kinds that are written: what makes each due, and what is read and sent for it.

Covers: NodeResourceTopology, NodeMetric, Device, the Node's status.
Does not cover: the loop around them (``writing``), their contents (``objects``).

An idle node sends one patch of NodeMetric in each report interval and reads each other object once
in ``resync_seconds``; it writes nothing else.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from koordlet import log
from koordlet.history import series
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model.record import dataclass
from koordlet.report import applying, view, writing
from koordlet.report.objects import device_object, metric_object, node_status, topology_object

#: Newest first: an installed definition is adapted to.
TOPOLOGIES = tuple(
    dataclasses.replace(kinds.NODE_RESOURCE_TOPOLOGIES, version=version)
    for version in ("v1alpha2", "v1alpha1")
)
#: Rows of pods that are made before others have a turn: each takes some 100 µs.
_BREATH = 8
#: How soon it is asked again whether enough is known for a first report.
_UNKNOWN_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTimes:
    """Intervals of the rows."""

    available: topology_object.AvailableView = topology_object.AvailableView.EXACT
    tolerance: float = 0.1
    resync_seconds: float = 300.0


class Watched:
    """Schedule of reading an object again."""

    def __init__(self, manners: ReportTimes, clock: Callable[[], float], budget: float) -> None:
        self._manners = manners
        self._clock = clock
        self.budget = writing.WriteBudget(clock, seconds=budget)
        self._looked = float("-inf")

    def due(self) -> bool:
        """True if the known object may be out of date."""
        return self._clock() - self._looked >= self._manners.resync_seconds

    def looked(self) -> None:
        """Record a read."""
        self._looked = self._clock()


class TopologyRow:
    """Writes the NodeResourceTopology."""

    name = "NodeResourceTopology"
    period = 3.0

    def __init__(self, manners: ReportTimes, clock: Callable[[], float]) -> None:
        self._manners = manners
        self._watched = Watched(manners, clock, 10.0)
        self._done: object = None
        self._keepers: dict[kinds.Kind, writing.ObjectKeeper] = {}
        self._kind: kinds.Kind | None = None
        #: What was sent last, and the revision that it made: a server may drop a part of it.
        self._sent: tuple[Mapping[str, Any], str] = ({}, "")

    async def bring(self, store: objects.Objects, now: view.ReportView) -> int | None:
        """Render, unless nothing that it is made of has changed."""
        offer = now.plan.offer.zones if now.plan.offer is not None else {}
        basis = (now.epoch, now.revision, now.snapshot.node, now.snapshot.kubelet, offer)
        if basis == self._done and not self._watched.due():
            return 0
        if not self._watched.budget.take():
            return None
        ours = topology_object.render(now, self._manners.available)
        wrote = await self._served(store, ours)
        self._done = basis
        return wrote

    async def _served(self, store: objects.Objects, ours: Mapping[str, Any]) -> int:
        """Write in the newest version that the server has."""
        for kind in TOPOLOGIES if self._kind is None else (self._kind,):
            try:
                wrote = await self._lay(store, kind, ours)
            except refusals.NotServed:
                self._kind = None
                if kind is TOPOLOGIES[-1]:
                    raise
            else:
                self._kind = kind
                return wrote
        raise refusals.NotServed("the version was taken away", culprit=self.name)

    async def _lay(self, store: objects.Objects, kind: kinds.Kind, ours: Mapping[str, Any]) -> int:
        ref = objects.Ref(kind, ours["metadata"]["name"])
        keeper = self._keepers.setdefault(kind, writing.ObjectKeeper(store, ref))
        if self._watched.due():
            await keeper.read()
            self._watched.looked()

        def lay(there: Mapping[str, Any]) -> dict[str, Any] | None:
            body = topology_object.laid_over(there, ours)
            again = (body, objects.revision(there)) == self._sent
            return None if again or says(there, body) else body

        if not await keeper.lay(ours, lay):
            return 0
        after = keeper.known or {}
        # What is laid over the answer differs from what was sent only by foreign parts.
        self._sent = (topology_object.laid_over(after, ours), objects.revision(after))
        return 1


class Metric:
    """NodeMetric's status."""

    name = "NodeMetric"

    def __init__(self, past: series.History) -> None:
        self._past = past
        self._wish = metric_object.CollectPolicy()
        self._known: objects.Object | None = None
        self._hand = applying.Hand()
        #: What is missing of the node's use.
        self.lacking = metric_object.Lacking.NOTHING

    @property
    def period(self) -> float:
        """Interval from the object's spec."""
        unknown = self.lacking is metric_object.Lacking.ALL
        return _UNKNOWN_SECONDS if unknown else float(self._wish.report_seconds)

    async def bring(self, store: objects.Objects, now: view.ReportView) -> int:
        """One apply; its answer brings the newest wish. A missing object is made once.

        While the node's use is not known nothing is written: what stands there keeps its time.
        """
        ref = objects.Ref(kinds.NODE_METRICS, now.snapshot.node.name)
        if self._known is None:
            await self._find(store, ref)
        measured = metric_object.node(now, self._past, self._wish)
        self.lacking = metric_object.lacking(now, self._past, self._wish)
        if self.lacking is metric_object.Lacking.ALL:
            return 0
        status = await self._status(now, measured)
        before = (self._known or {}).get("status") or {}
        gone = {key: None for key in before if key.startswith("prod") and key not in status}
        try:
            ours = {"status": {**status, **gone}}
            self._take(await self._hand.put(store, ref, ours, subresource="status"))
        except refusals.NotFound as error:
            self._known = None
            if isinstance(error, refusals.NotServed):
                raise
            # Deleted since: made again with the next attempt.
            raise refusals.Conflict(error.message, culprit=error.culprit) from error
        return 1

    async def _find(self, store: objects.Objects, ref: objects.Ref) -> None:
        try:
            self._take(await store.get(ref))
        except refusals.NotServed:
            raise
        except refusals.NotFound:
            owners = await writing.owner(store, ref.name)
            metadata = {"name": ref.name, "ownerReferences": owners}
            self._take(await store.create(ref.kind, {"metadata": metadata, "spec": {}}))

    def _take(self, body: objects.Object) -> None:
        self._known = body
        self._wish = metric_object.wish(body)

    async def _status(self, now: view.ReportView, measured: Mapping[str, Any]) -> dict[str, Any]:
        """In small pieces: the loop that protects workloads comes first."""
        pods = []
        for number, row in enumerate(metric_object.pods(now, self._past, self._wish)):
            pods.append(row)
            if number % _BREATH == _BREATH - 1:
                await asyncio.sleep(0)
        applications = list(metric_object.applications(now, self._past, self._wish))
        return metric_object.status(now, measured, pods, applications)


class DeviceRow:
    """Writes the Device."""

    name = "Device"
    period = 60.0

    def __init__(self, manners: ReportTimes, clock: Callable[[], float]) -> None:
        self._watched = Watched(manners, clock, 10.0)
        self._done: object = None

    async def bring(self, store: objects.Objects, now: view.ReportView) -> int | None:
        """Devices of other types, which others wrote, stay."""
        ours = device_object.render(now)
        if ours == self._done and not self._watched.due():
            return 0
        if not self._watched.budget.take():
            return None
        self._watched.looked()
        keeper = writing.ObjectKeeper(store, objects.Ref(kinds.DEVICES, now.snapshot.node.name))

        def lay(there: Mapping[str, Any]) -> dict[str, Any] | None:
            body = device_object.laid_over(there, ours)
            return None if says(there, body) else body

        wrote = await keeper.lay(ours, lay)
        self._done = ours
        return int(wrote)


class StatusRow:
    """Writes the Node's status."""

    name = "Node status"
    period = 1.0

    def __init__(
        self, manners: ReportTimes, clock: Callable[[], float], metric: Metric | None = None
    ) -> None:
        self._manners = manners
        self._clock = clock
        #: Whose report is told as short while it is.
        self._metric = metric
        self._watched = Watched(manners, clock, 10.0)
        self._hand = applying.Hand()
        self._known: objects.Object | None = None
        #: Who else writes the resources, and until when they are left to it.
        self._rivals: tuple[str, ...] = ()
        self._left_until = float("-inf")

    async def bring(self, store: objects.Objects, now: view.ReportView) -> int | None:
        """Compared with what was read or written last."""
        ref = objects.Ref(kinds.NODES, now.snapshot.node.name)
        if self._known is None or self._watched.due():
            self._known = await store.get(ref)
            self._hand.retry()
            self._watched.looked()
        body = self._body(self._known, now)
        if body is None:
            return 0
        if not self._watched.budget.take():
            return None
        try:
            put = self._hand.put
            self._known = await put(store, ref, body, subresource="status", force=False)
        except refusals.Conflict as error:
            if all(cause.reason != "FieldManagerConflict" for cause in error.causes):
                raise
            return await self._contested(store, ref, now, error)
        return 1

    def _body(self, there: objects.Object, now: view.ReportView) -> dict[str, Any] | None:
        return node_status.patch(
            there,
            node_status.wanted(
                now,
                offering=self._clock() >= self._left_until,
                lacking=None if self._metric is None else self._metric.lacking,
            ),
            wall=now.snapshot.wall,
            tolerance=self._manners.tolerance,
        )

    async def _contested(
        self,
        store: objects.Objects,
        ref: objects.Ref,
        now: view.ReportView,
        error: refusals.Conflict,
    ) -> int:
        """Take what is ours alone; leave the resources where another program still writes them."""
        self._known = there = await store.get(ref)
        rivals = node_status.rivals(there)
        if rivals:
            self._left_until = self._clock() + self._manners.resync_seconds
        if rivals and rivals != self._rivals:
            fields = {"kind": self.name, "managers": list(rivals), "detail": error.message}
            log.get().warning("objects.contested", **fields)
        self._rivals = rivals
        body = self._body(there, now)
        if body is None:
            return 0
        self._known = await self._hand.put(store, ref, body, subresource="status")
        return 1


def says(there: Any, body: Any) -> bool:
    """True if a merge patch would change nothing."""
    if not isinstance(body, Mapping):
        return bool(there == body)
    if not isinstance(there, Mapping):
        return False
    return all(
        key not in there if value is None else key in there and says(there[key], value)
        for key, value in body.items()
    )
