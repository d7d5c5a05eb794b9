"""The service ``Moves``: a node is emptied, or one pod moved, for whoever follows it.

Covers: messages to values and back. Does not cover: the moves (``MovingBackend``), access
(``permissions``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

from koordlet.rpc import services
from koordlet.rpc.gen import scheduler_pb2

#: What somebody wants, and the state of one pod.
MoveRequest = scheduler_pb2.MovePodsRequest
PodMove = scheduler_pb2.PodMove
ClusterObject = scheduler_pb2.ClusterObject


class MovingBackend(Protocol):
    """Backend of the service."""

    def move(self, wanted: MoveRequest) -> AsyncIterator[PodMove]:
        """Move; each change of a pod's state. Closed early, it gives back what it holds."""

    async def undo_drain(self, node: str) -> int:
        """Uncordon a node, and end what is under way; how many moves that were."""

    def objects(self) -> AsyncIterator[ClusterObject]:
        """All objects by which pods are placed and evicted."""


class MovingService:
    """The gRPC service ``Moves``."""

    name = scheduler_pb2.DESCRIPTOR.services_by_name["Moves"].full_name
    descriptor = scheduler_pb2.DESCRIPTOR

    def __init__(self, backend: MovingBackend) -> None:
        self._backend = backend
        #: Counts of calls.
        self.counts = {"moves": 0}

    def methods(self) -> Mapping[str, services.Handler]:
        """The handlers."""
        return {
            "MovePods": services.streamed(MoveRequest, self._move),
            "UndoDrain": services.unary(scheduler_pb2.UndoDrainRequest, self._undo),
            "ListObjects": services.streamed(
                scheduler_pb2.ListObjectsRequest, lambda _: self._backend.objects()
            ),
        }

    def _move(self, request: MoveRequest) -> AsyncIterator[PodMove]:
        self.counts["moves"] += 1
        return self._backend.move(request)

    async def _undo(
        self, request: scheduler_pb2.UndoDrainRequest
    ) -> scheduler_pb2.UndoDrainResponse:
        ended = await self._backend.undo_drain(request.node)
        return scheduler_pb2.UndoDrainResponse(ended=ended)
