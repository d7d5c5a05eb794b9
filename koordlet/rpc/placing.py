"""The service ``Scheduler``: nodes, assignments, taking objects in, why a pod is where it is.

Covers: messages to values and back. Does not cover: the answers (``PlacingBackend``), access
(``permissions``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from koordlet.rpc import services
from koordlet.rpc.gen import scheduler_pb2

SERVICE = scheduler_pb2.DESCRIPTOR.services_by_name["Scheduler"].full_name


#: A node as the scheduler sees it, a pod assigned to a node and the event that says so.
Node = scheduler_pb2.SchedulerNode
Assignment = scheduler_pb2.Assignment
AssignmentEvent = scheduler_pb2.AssignmentEvent
#: Result of one submitted object (no error if it was accepted), and why a pod is where it is.
Taken = scheduler_pb2.SubmitResult
Why = scheduler_pb2.ExplainResponse


class PlacingBackend(Protocol):
    """Backend of the service."""

    def nodes(self, name: str) -> Sequence[Node]:
        """One node, or all."""

    def assignments(self, node: str, revision: str) -> AsyncIterator[AssignmentEvent]:
        """Assigned pods of a node, then changes."""

    async def submit(self, manifests: Sequence[str], *, dry_run: bool) -> Sequence[Taken]:
        """Take objects in, each by itself."""

    async def why(self, namespace: str, name: str) -> Why:
        """Explanation of a pod's placement; ``refusals.NotFound`` for an unknown pod."""

    async def delete_quota(self, name: str, *, force: bool) -> None:
        """Delete a quota; ``refusals.Invalid`` where pods or children are in it."""


class PlacingService:
    """The gRPC service ``PlacingService``."""

    name = SERVICE
    descriptor = scheduler_pb2.DESCRIPTOR

    def __init__(self, desk: PlacingBackend) -> None:
        self._desk = desk
        #: Counts of calls.
        self.counts = {"submitted": 0}

    def methods(self) -> Mapping[str, services.Handler]:
        """The handlers."""
        return {
            "ListNodes": services.unary(scheduler_pb2.ListNodesRequest, self._nodes),
            "WatchAssignments": services.streamed(
                scheduler_pb2.WatchAssignmentsRequest, self._assignments
            ),
            "Submit": services.unary(scheduler_pb2.SubmitRequest, self._submit),
            "Explain": services.unary(scheduler_pb2.ExplainRequest, self._explain),
            "DeleteQuota": services.unary(scheduler_pb2.DeleteQuotaRequest, self._delete_quota),
        }

    async def _nodes(
        self, request: scheduler_pb2.ListNodesRequest
    ) -> scheduler_pb2.ListNodesResponse:
        return scheduler_pb2.ListNodesResponse(nodes=self._desk.nodes(request.name))

    def _assignments(
        self, request: scheduler_pb2.WatchAssignmentsRequest
    ) -> AsyncIterator[AssignmentEvent]:
        return self._desk.assignments(request.node, request.revision)

    async def _submit(self, request: scheduler_pb2.SubmitRequest) -> scheduler_pb2.SubmitResponse:
        taken = await self._desk.submit(tuple(request.manifests), dry_run=request.dry_run)
        self.counts["submitted"] += len(taken)
        return scheduler_pb2.SubmitResponse(results=taken)

    async def _explain(self, request: scheduler_pb2.ExplainRequest) -> Why:
        return await self._desk.why(request.namespace, request.name)

    async def _delete_quota(
        self, request: scheduler_pb2.DeleteQuotaRequest
    ) -> scheduler_pb2.DeleteQuotaResponse:
        await self._desk.delete_quota(request.name, force=request.force)
        return scheduler_pb2.DeleteQuotaResponse()
