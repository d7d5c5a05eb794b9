"""A small blocking client of the service ``Scheduler``, for commands.

Covers: handing objects in, asking why, on a Unix socket. Does not cover: TLS, reconnecting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import grpc

from koordlet.model import errors
from koordlet.rpc import limits, placing
from koordlet.rpc.gen import scheduler_pb2

_SECONDS = 30.0
#: Bytes of manifests in one request: what a server takes, less what the message adds.
_MOST = limits.CallLimits().request_bytes - 256
#: What the message adds to each.
_EACH = 8


def _pieces(manifests: Sequence[str]) -> Iterator[list[str]]:
    """Lists of manifests that fit into one request; one that does not is alone."""
    piece: list[str] = []
    size = 0
    for manifest in manifests:
        length = len(manifest.encode()) + _EACH
        if piece and size + length > _MOST:
            yield piece
            piece, size = [], 0
        piece.append(manifest)
        size += length
    if piece:
        yield piece


def _too_large(manifest: str) -> placing.Taken:
    body = json.loads(manifest)
    meta = body.get("metadata") or {}
    return placing.Taken(
        kind=str(body.get("kind") or ""),
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or ""),
        error=f"the object has {len(manifest.encode())} bytes, a scheduler takes {_MOST}",
    )


class PlacingClient:
    """A connection; use it with ``with``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._channel = grpc.insecure_channel(f"unix:{path}")

    def submit(
        self, manifests: Sequence[str], *, dry_run: bool = False
    ) -> tuple[placing.Taken, ...]:
        """Hand objects in, in as many requests as the scheduler's bound makes of them."""
        taken: list[placing.Taken] = []
        for piece in _pieces(manifests):
            if len(piece[0].encode()) > _MOST:
                taken.append(_too_large(piece[0]))
                continue
            request = scheduler_pb2.SubmitRequest(manifests=piece, dry_run=dry_run)
            answer = self._ask("Submit", request, scheduler_pb2.SubmitResponse)
            taken += (
                placing.Taken(
                    kind=result.kind,
                    namespace=result.namespace,
                    name=result.name,
                    uid=result.uid,
                    error=result.error,
                )
                for result in answer.results
            )
        return tuple(taken)

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
