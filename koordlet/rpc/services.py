"""A gRPC service: its methods and error handling.

Covers: the shape that ``server`` mounts, handlers made of plain functions, errors as status codes,
who a caller is, the threads that gRPC needs.
Does not cover: listening (``server``), who may call (``permissions``).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf import message as protobuf

from koordlet import log
from koordlet.host.process import threads
from koordlet.kubeapi import refusals
from koordlet.model import errors

Context = grpc.aio.ServicerContext[Any, Any]
Request = TypeVar("Request", bound=protobuf.Message)
AnswerT = TypeVar("AnswerT")


#: One method; it takes and gives bytes.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class RpcService(Protocol):
    """One service of a server."""

    #: The full name, as in the proto.
    name: str

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of client events."""

    def methods(self) -> Mapping[str, Handler]:
        """Method name to handler."""


def unary(
    request_class: type[Request], call: Callable[[Request], Awaitable[protobuf.Message]]
) -> Handler:
    """A method with one answer."""

    async def handle(data: bytes, context: Context) -> bytes:
        return (await call(await parsed(request_class, data, context))).SerializeToString()

    return grpc.unary_unary_rpc_method_handler(handle)


def streamed(
    request_class: type[Request], call: Callable[[Request], AsyncIterator[protobuf.Message]]
) -> Handler:
    """A method with many answers; the iterator is closed when the caller goes."""

    async def handle(data: bytes, context: Context) -> None:
        answers = call(await parsed(request_class, data, context))
        try:
            async for answer in answers:
                await context.write(answer.SerializeToString())
        finally:
            close = getattr(answers, "aclose", None)
            if close is not None:
                await close()

    return grpc.unary_stream_rpc_method_handler(handle)


async def parsed(request_class: type[Request], data: bytes, context: Context) -> Request:
    """The request, or the end of the call."""
    try:
        return request_class.FromString(data)
    except protobuf.DecodeError:
        name = request_class.DESCRIPTOR.full_name
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a {name}")
        raise


async def ask(
    path: str,
    method: str,
    request: protobuf.Message,
    seconds: float,
    options: Sequence[tuple[str, int]] = (),
) -> bytes:
    """The answer of a server on a Unix socket, over a connection of its own."""
    ensure_threads()
    # Servers judge the authority of a request; a socket's path is none.
    channel_options = [("grpc.default_authority", "localhost"), *options]
    async with grpc.aio.insecure_channel(f"unix:{path}", options=channel_options) as channel:
        # Not decoded: gRPC would log an answer that is none, and give None.
        call: Any = channel.unary_unary(method, type(request).SerializeToString, None)
        answer: bytes = await call(request, timeout=seconds)
        return answer


_CODES: tuple[tuple[type[errors.KoordletError], grpc.StatusCode], ...] = (
    (refusals.NotFound, grpc.StatusCode.NOT_FOUND),
    (refusals.AlreadyExists, grpc.StatusCode.ALREADY_EXISTS),
    (refusals.Conflict, grpc.StatusCode.ABORTED),
    (refusals.Invalid, grpc.StatusCode.INVALID_ARGUMENT),
    (refusals.Malformed, grpc.StatusCode.INVALID_ARGUMENT),
    (refusals.Unauthorized, grpc.StatusCode.PERMISSION_DENIED),
    (refusals.Forbidden, grpc.StatusCode.PERMISSION_DENIED),
    (refusals.TooMany, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (refusals.Unavailable, grpc.StatusCode.UNAVAILABLE),
    (errors.ConfigError, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.UsageError, grpc.StatusCode.INVALID_ARGUMENT),
    (errors.KoordletError, grpc.StatusCode.FAILED_PRECONDITION),
)


def code(error: Exception) -> grpc.StatusCode:
    """The status code of an error."""
    codes = (status for kind, status in _CODES if isinstance(error, kind))
    return next(codes, grpc.StatusCode.INTERNAL)


async def fail(context: Context, error: Exception) -> None:
    """End a call with what went wrong: the caller's fault in words, ours by its name."""
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if not isinstance(error, errors.KoordletError):
        log.get().error("grpc.failed", detail=repr(error), exc_info=error)
        await context.abort(grpc.StatusCode.INTERNAL, type(error).__name__)
    await context.abort(code(error), str(error))


def names(context: Context) -> tuple[str, ...]:
    """The subject alternative names of the caller's certificate; empty on a Unix socket."""
    properties = context.auth_context() or {}
    return tuple(
        name.decode("utf-8", "replace")
        for name in properties.get("x509_subject_alternative_name", ())
    )


def secured(context: Context) -> bool:
    """True on a connection with TLS, which here always has a client certificate."""
    return b"ssl" in (context.auth_context() or {}).get("transport_security_type", ())


#: Its pool has one for each CPU, at least four and at most sixteen; beside it there are a watcher
#: of the pool, a timer and a poller. Three more, because ours come and go meanwhile.
_POOL = (4, 16)
_BESIDE = 3
_SPARE = 3


def ensure_threads() -> None:
    """``HostError`` where it may not. Once it has begun it does with the threads that it has."""
    least, most = _POOL
    pool = max(least, min(most, os.cpu_count() or most))
    threads.ensure(pool + _BESIDE + _SPARE, "gRPC")
