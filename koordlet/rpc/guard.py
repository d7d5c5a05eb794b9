"""Every call, held against ``permissions`` before its handler sees it.

Covers: the right, the node that a request names, how often, how a call ends that failed, which
calls have not ended.
Does not cover: the node that a stream names in its first message (``ingest``).

It stands before the handlers as an interceptor, so that no service can be mounted around it: health
and reflection, which are not ours, come through it like any other.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf import message as protobuf

from koordlet.rpc import access, permissions, services, speakers, unix_socket


class ConnectionGuard(grpc.aio.ServerInterceptor):
    """Guards the connections of one server."""

    def __init__(
        self, entry: access.CallAccess, socket: unix_socket.Peers, speaks: speakers.Speakers
    ) -> None:
        self._access = entry
        self._peers = socket
        self._speaks = speaks
        #: The tasks of calls that have begun and not ended.
        self._calls: set[asyncio.Task[Any]] = set()

    async def ended(self, seconds: float) -> None:
        """Wait until no call is under way, for so long at most.

        The core forgets a call as soon as its client has gone; its task ends some turns of the loop
        later. A loop that ends in between cancels the task that waits for it, and gRPC prints a
        traceback for each (``_schedule_rpc_coro`` catches everything).
        """
        if self._calls:
            await asyncio.wait(tuple(self._calls), timeout=seconds)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[services.Handler | None]],
        details: grpc.HandlerCallDetails,
    ) -> services.Handler | None:
        """The handler behind its row; ``None`` where nothing is served."""
        call = asyncio.current_task()
        if call is not None:
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
        handler = await continuation(details)
        row = permissions.METHODS.get(details.method.removeprefix("/"))
        return None if handler is None or row is None else self._behind(row, handler)

    def _behind(self, row: permissions.MethodPermission, handler: Any) -> services.Handler:
        """A handler of the same kind that asks first."""
        kinds: tuple[tuple[Callable[..., services.Handler], Any], ...] = (
            (grpc.unary_unary_rpc_method_handler, handler.unary_unary),
            (grpc.unary_stream_rpc_method_handler, handler.unary_stream),
            (grpc.stream_stream_rpc_method_handler, handler.stream_stream),
        )
        make, inner = next((make, inner) for make, inner in kinds if inner is not None)

        async def guarded(request: Any, context: services.Context) -> Any:
            await self._admit(row, request, context)
            try:
                answer = inner(request, context)
                if not isinstance(answer, types.AsyncGeneratorType):
                    return await answer
                async for each in answer:
                    await context.write(each)
            except Exception as error:
                # The boundary: the caller is told, nobody else suffers.
                await services.fail(context, error)
                raise

        return make(guarded, handler.request_deserializer, handler.response_serializer)

    async def _admit(
        self, row: permissions.MethodPermission, request: Any, context: services.Context
    ) -> None:
        await self._access.check(context, row.rights)
        if not services.secured(context):
            await self._peers.looked()
            if row.changes and self._peers.doubtful:
                await context.abort(
                    grpc.StatusCode.UNAVAILABLE,
                    "an untrusted connection was just closed: try again",
                )
            return
        admin = permissions.Right.ADMIN in self._access.rights(services.names(context))
        if row.node is None or admin:
            return
        try:
            node = row.node(request)
        except protobuf.DecodeError:
            # The handler says what it expects.
            return
        refusal = await speakers.refusal(self._speaks, context, node)
        if refusal is not None:
            self._access.refused += 1
            await context.abort(*refusal)
