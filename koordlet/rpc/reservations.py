"""The service ``Reservations``: calls to a backend, and a small client.

Covers: messages, watches, errors as a client understands them. Does not cover: listening
(``server``), errors as a server says them (``services``), the store (``Backend``).

A watch is one list and then the store's own changes: what a client does not read waits in the
store, not here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, Self

import grpc
import grpc.aio

from koordlet.kubeapi import objects, refusals
from koordlet.model import surrogates
from koordlet.rpc import failures, room, services
from koordlet.rpc import reservation_messages as messages
from koordlet.rpc.gen import reservations_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["Reservations"].full_name


class Backend(Protocol):
    """Store of reservations; every call may raise ``refusals.ObjectsError``."""

    async def create(
        self, body: objects.Object, token: str = "", *, dry_run: bool = False
    ) -> objects.Object:
        """A new one, or the one that is there for the same wish."""

    async def get(self, name: str) -> objects.Object:
        """One."""

    async def every(self, labels: str = "") -> objects.Listing:
        """All."""

    def watch(self, since: str) -> AsyncGenerator[objects.Change, None]:
        """Changes after a revision."""

    async def delete(self, name: str, *, uid: str = "") -> None:
        """Remove one."""

    async def told(self, name: str) -> tuple[objects.Object, list[tuple[str, str]], list[str]]:
        """One, its timeline, and warnings about it."""


class Reservations:
    """The calls, as a server offers them."""

    name = SERVICE

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._watches = 0

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of client events."""
        return {"reservation_watches": self._watches}

    def methods(self) -> Mapping[str, services.Handler]:
        """Method name to handler."""
        unary = services.unary
        return {
            "GetReservation": unary(pb.GetReservationRequest, self._get),
            "ListReservations": unary(pb.ListReservationsRequest, self._list),
            "WatchReservations": services.streamed(pb.ListReservationsRequest, self._watch),
            "CreateReservation": unary(pb.CreateReservationRequest, self._create),
            "DeleteReservation": unary(pb.DeleteReservationRequest, self._delete),
            "DescribeReservation": unary(pb.GetReservationRequest, self._describe),
        }

    async def _get(self, request: pb.GetReservationRequest) -> pb.Reservation:
        return messages.message(await self._backend.get(request.name))

    async def _list(self, request: pb.ListReservationsRequest) -> pb.ListReservationsResponse:
        found = await self._backend.every()
        several = [messages.message(item) for item in found.items]
        return pb.ListReservationsResponse(
            reservations=[one for one in several if request.node in {"", one.node}],
            revision=found.revision,
        )

    async def _create(self, request: pb.CreateReservationRequest) -> pb.Reservation:
        try:
            body = surrogates.whole(json.loads(request.manifest))
        except (ValueError, RecursionError) as error:
            raise refusals.Malformed(f"manifest is not JSON: {str(error)[:100]}") from error
        if not isinstance(body, Mapping):
            raise refusals.Malformed("manifest is not a JSON object")
        create = await self._backend.create(body, request.client_token, dry_run=request.dry_run)
        return messages.message(create)

    async def _delete(self, request: pb.DeleteReservationRequest) -> pb.DeleteReservationResponse:
        await self._backend.delete(request.name, uid=request.uid)
        return pb.DeleteReservationResponse()

    async def _describe(self, request: pb.GetReservationRequest) -> pb.ReservationDescription:
        return messages.description(*await self._backend.told(request.name))

    async def _watch(
        self, request: pb.ListReservationsRequest
    ) -> AsyncGenerator[pb.ReservationEvent, None]:
        self._watches += 1
        revision = request.revision
        while True:
            if not revision:
                found = await self._backend.every()
                yield pb.ReservationEvent(verb=pb.ReservationEvent.RESET)
                for body in found.items:
                    message = messages.message(body)
                    if request.node in {"", message.node}:
                        yield _event(pb.ReservationEvent.SET, message, found.revision)
                revision = found.revision
                yield pb.ReservationEvent(verb=pb.ReservationEvent.SYNCED, revision=revision)
            try:
                async for change in self._backend.watch(revision):
                    revision = change.revision
                    if change.verb is not objects.Verb.BOOKMARK:
                        yield _changed(change, request.node)
            except refusals.Gone:
                revision = ""


def _changed(change: objects.Change, node: str) -> pb.ReservationEvent:
    message = messages.message(change.object)
    gone = change.verb is objects.Verb.DELETED or node not in {"", message.node}
    verb = pb.ReservationEvent.REMOVED if gone else pb.ReservationEvent.SET
    return _event(verb, message, change.revision)


def _event(verb: Any, reservation: pb.Reservation, revision: str) -> pb.ReservationEvent:
    return pb.ReservationEvent(verb=verb, reservation=reservation, revision=revision)


#: What a status code of ours means to a client.
_MEANINGS: Mapping[grpc.StatusCode, type[refusals.ObjectsError]] = {
    grpc.StatusCode.NOT_FOUND: refusals.NotFound,
    grpc.StatusCode.ALREADY_EXISTS: refusals.AlreadyExists,
    grpc.StatusCode.ABORTED: refusals.Conflict,
    grpc.StatusCode.INVALID_ARGUMENT: refusals.Invalid,
    grpc.StatusCode.PERMISSION_DENIED: refusals.Forbidden,
    grpc.StatusCode.RESOURCE_EXHAUSTED: refusals.TooMany,
    grpc.StatusCode.FAILED_PRECONDITION: refusals.Refused,
}


class ReservationLister:
    """Asks a scheduler for the reservations of one node; a connection serves one question."""

    def __init__(self, socket: str, node: str, *, seconds: float = 5.0) -> None:
        self._socket, self._node, self._seconds = socket, node, seconds

    async def fetch(self) -> bytes:
        """Their objects, as a JSON list; the same bytes while nothing changes."""
        room.check()
        options = [("grpc.default_authority", "localhost")]
        async with grpc.aio.insecure_channel(f"unix:{self._socket}", options=options) as channel:
            ask: Any = channel.unary_unary(
                f"/{SERVICE}/ListReservations",
                request_serializer=pb.ListReservationsRequest.SerializeToString,
                response_deserializer=pb.ListReservationsResponse.FromString,
            )
            request = pb.ListReservationsRequest(node=self._node)
            try:
                found = await ask(request, timeout=self._seconds)
            except grpc.aio.AioRpcError as error:
                raise refusals.Unavailable(
                    f"no answer: {error.code().name}",
                    culprit=f"scheduler {self._socket}",
                    fix="check that `koordlet scheduler` runs, and that scheduler.socket is right",
                ) from error
        return f"[{','.join(reservation.manifest for reservation in found.reservations)}]".encode()


class ReservationsClient:
    """A blocking client on a Unix socket; use it with ``with``."""

    def __init__(self, path: Path) -> None:
        # A socket's path is no authority that servers accept.
        options = [("grpc.default_authority", "localhost")]
        self._path = path
        self.channel = grpc.insecure_channel(f"unix:{path}", options=options)

    def _call(self, name: str, request: Any, answer: Any, timeout: float) -> Any:
        ask: Any = self.channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=lambda one: one.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        try:
            return ask(request, timeout=timeout)
        except grpc.RpcError as error:
            raise self._explained(error) from error

    def _explained(self, error: Any) -> refusals.ObjectsError:
        code, details = error.code(), str(error.details() or "")
        known = _MEANINGS.get(code)
        if known is not None:
            return known(details)
        return refusals.Unavailable(
            f"the scheduler does not answer: {failures.plain(details) or code.name}",
            culprit=str(self._path),
            fix="start `koordlet scheduler` there, or give --kubeconfig",
        )

    def create(
        self, body: objects.Object, token: str = "", *, timeout: float = 10.0
    ) -> pb.Reservation:
        """A new one, or the one that is there for the same wish."""
        request = pb.CreateReservationRequest(
            manifest=json.dumps(body, default=str), client_token=token
        )
        found: pb.Reservation = self._call("CreateReservation", request, pb.Reservation, timeout)
        return found

    def get(self, name: str, *, timeout: float = 10.0) -> pb.Reservation:
        """One."""
        request = pb.GetReservationRequest(name=name)
        found: pb.Reservation = self._call("GetReservation", request, pb.Reservation, timeout)
        return found

    def list(self, node: str = "", *, timeout: float = 10.0) -> list[pb.Reservation]:
        """All, or those of a node."""
        request = pb.ListReservationsRequest(node=node)
        found = self._call("ListReservations", request, pb.ListReservationsResponse, timeout)
        return list(found.reservations)

    def delete(self, name: str, uid: str = "", *, timeout: float = 10.0) -> None:
        """Remove one."""
        request = pb.DeleteReservationRequest(name=name, uid=uid)
        self._call("DeleteReservation", request, pb.DeleteReservationResponse, timeout)

    def describe(self, name: str, *, timeout: float = 10.0) -> pb.ReservationDescription:
        """One with its timeline."""
        request = pb.GetReservationRequest(name=name)
        found: pb.ReservationDescription = self._call(
            "DescribeReservation", request, pb.ReservationDescription, timeout
        )
        return found

    def watch(self, revision: str = "", *, node: str = "") -> Iterator[pb.ReservationEvent]:
        """All reservations, then changes."""
        ask: Any = self.channel.unary_stream(
            f"/{SERVICE}/WatchReservations",
            request_serializer=pb.ListReservationsRequest.SerializeToString,
            response_deserializer=pb.ReservationEvent.FromString,
        )
        try:
            yield from ask(pb.ListReservationsRequest(node=node, revision=revision))
        except grpc.RpcError as error:
            raise self._explained(error) from error

    def close(self) -> None:
        """Close the connection, and with it every watch."""
        self.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
