"""A small blocking client of the service ``Scheduler``, for commands.

Covers: handing objects in, asking why, on a Unix socket. Does not cover: TLS, reconnecting.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import grpc

from koordlet.model import errors
from koordlet.rpc import placing
from koordlet.rpc.gen import scheduler_pb2

_SECONDS = 30.0


class PlacingClient:
    """A connection; use it with ``with``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._channel = grpc.insecure_channel(f"unix:{path}")

    def submit(
        self, manifests: Sequence[str], *, dry_run: bool = False
    ) -> tuple[placing.Taken, ...]:
        """Hand objects in."""
        request = scheduler_pb2.SubmitRequest(manifests=manifests, dry_run=dry_run)
        answer = self._ask("Submit", request, scheduler_pb2.SubmitResponse)
        return tuple(
            placing.Taken(
                kind=result.kind,
                namespace=result.namespace,
                name=result.name,
                uid=result.uid,
                error=result.error,
            )
            for result in answer.results
        )

    def why(self, namespace: str, name: str) -> placing.Why:
        """Explanation of a pod's placement."""
        request = scheduler_pb2.ExplainRequest(namespace=namespace, name=name)
        answer = self._ask("Explain", request, scheduler_pb2.ExplainResponse)
        return placing.Why(
            node=answer.node,
            message=answer.message,
            scores=dict(answer.scores),
            refusals=dict(answer.refusals),
        )

    def _ask(self, method: str, request: Any, kind: Any) -> Any:
        call = self._channel.unary_unary(
            f"/{placing.SERVICE}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=kind.FromString,
        )
        try:
            return call(request, timeout=_SECONDS)
        except grpc.RpcError as error:
            code, words = error.code(), error.details()
            if code is grpc.StatusCode.UNAVAILABLE:
                raise errors.HostError(
                    "no scheduler listens on this socket",
                    culprit=str(self._path),
                    fix="start one: koordlet scheduler --standalone",
                ) from error
            raise errors.HostError(f"{words}", culprit=f"{method} ({code.name})") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
