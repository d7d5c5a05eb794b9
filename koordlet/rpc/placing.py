"""The service ``Scheduler``: nodes, assignments, taking objects in, why a pod is where it is.

Covers: messages to values and back. Does not cover: the answers (``PlacingBackend``), access
(``permissions``).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from koordlet.model.record import dataclass
from koordlet.rpc import plain, services
from koordlet.rpc.gen import scheduler_pb2

SERVICE = scheduler_pb2.DESCRIPTOR.services_by_name["Scheduler"].full_name


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLine:
    """A node as the scheduler sees it; amounts as quantities."""

    name: str
    allocatable: Mapping[str, str] = field(default_factory=dict)
    requested: Mapping[str, str] = field(default_factory=dict)
    pods: int = 0
    unschedulable: bool = False
    #: Seconds since 1970; ``None``: it reports nothing here.
    heard: float | None = None
    pressures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """A pod assigned to a node; ``verb`` as in the proto."""

    verb: str
    revision: str
    namespace: str = ""
    name: str = ""
    uid: str = ""
    node: str = ""
    cpus: str = ""
    reservation: str = ""
    qos: str = ""
    manifest: str = ""


#: Result of one submitted object (no error if it was accepted), and why a pod is where it is.
Taken = scheduler_pb2.SubmitResult
Why = scheduler_pb2.ExplainResponse


class PlacingBackend(Protocol):
    """Backend of the service."""

    def nodes(self, name: str) -> Sequence[NodeLine]:
        """One node, or all."""

    def assignments(self, node: str, revision: str) -> AsyncIterator[Assigned]:
        """Assigned pods of a node, then changes."""

    async def submit(self, manifests: Sequence[str], *, dry_run: bool) -> Sequence[Taken]:
        """Take objects in, each by itself."""

    def why(self, namespace: str, name: str) -> Why:
        """Explanation of a pod's placement; ``refusals.NotFound`` for an unknown pod."""


class PlacingService:
    """The gRPC service ``PlacingService``."""

    name = SERVICE
    descriptor = scheduler_pb2.DESCRIPTOR

    def __init__(self, desk: PlacingBackend) -> None:
        self._desk = desk
        self._counts = {"submitted": 0}

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of calls."""
        return dict(self._counts)

    def methods(self) -> Mapping[str, services.Handler]:
        """The handlers."""
        return {
            "ListNodes": services.unary(scheduler_pb2.ListNodesRequest, self._nodes),
            "WatchAssignments": services.streamed(
                scheduler_pb2.WatchAssignmentsRequest, self._assignments
            ),
            "Submit": services.unary(scheduler_pb2.SubmitRequest, self._submit),
            "Explain": services.unary(scheduler_pb2.ExplainRequest, self._explain),
        }

    async def _nodes(
        self, request: scheduler_pb2.ListNodesRequest
    ) -> scheduler_pb2.ListNodesResponse:
        nodes = []
        for line in self._desk.nodes(request.name):
            node = plain.message(scheduler_pb2.SchedulerNode, line, heard=None)
            if line.heard is not None:
                node.heard.FromDatetime(dt.datetime.fromtimestamp(line.heard, dt.UTC))
            nodes.append(node)
        return scheduler_pb2.ListNodesResponse(nodes=nodes)

    async def _assignments(
        self, request: scheduler_pb2.WatchAssignmentsRequest
    ) -> AsyncIterator[scheduler_pb2.AssignmentEvent]:
        async for change in self._desk.assignments(request.node, request.revision):
            pod = plain.message(scheduler_pb2.Assignment, change) if change.name else None
            yield plain.message(scheduler_pb2.AssignmentEvent, change, assignment=pod)

    async def _submit(self, request: scheduler_pb2.SubmitRequest) -> scheduler_pb2.SubmitResponse:
        taken = await self._desk.submit(tuple(request.manifests), dry_run=request.dry_run)
        self._counts["submitted"] += len(taken)
        return scheduler_pb2.SubmitResponse(results=taken)

    async def _explain(self, request: scheduler_pb2.ExplainRequest) -> Why:
        return self._desk.why(request.namespace, request.name)
