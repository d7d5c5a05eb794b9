"""The service ``Reservations``: calls to a backend, objects as messages, what an agent asks.

Covers: messages, watches. Does not cover: listening (``server``), errors as a server says them
(``services``), the store (``Backend``), commands (``client``).

A watch is one list and then the store's own changes: what a client does not read waits in the
store, not here.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

import grpc.aio
from google.protobuf.timestamp_pb2 import Timestamp

from koordlet.kubeapi import objects, refusals
from koordlet.model import moment, surrogates
from koordlet.rpc import services
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

    async def every(self, labels: str = "") -> objects.Page:
        """All."""

    def watch(self, since: str) -> AsyncGenerator[objects.Change, None]:
        """Changes after a revision."""

    async def delete(self, name: str, *, uid: str = "") -> None:
        """Remove one."""

    async def describe(self, name: str) -> tuple[objects.Object, list[tuple[str, str]], list[str]]:
        """One, its timeline, and warnings about it."""


class Reservations:
    """The calls, as a server offers them."""

    name = SERVICE

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        #: Counts of client events.
        self.counts = {"reservation_watches": 0}

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
        return message(await self._backend.get(request.name))

    async def _list(self, request: pb.ListReservationsRequest) -> pb.ListReservationsResponse:
        listing = await self._backend.every()
        several = [
            reservation
            for reservation in map(message, listing.items)
            if request.node in {"", reservation.node}
        ]
        return pb.ListReservationsResponse(reservations=several, revision=listing.revision)

    async def _create(self, request: pb.CreateReservationRequest) -> pb.Reservation:
        try:
            body = surrogates.whole(json.loads(request.manifest))
        except (ValueError, RecursionError) as error:
            raise refusals.Malformed(f"manifest is not JSON: {str(error)[:100]}") from error
        if not isinstance(body, Mapping):
            raise refusals.Malformed("manifest is not a JSON object")
        stored = await self._backend.create(body, request.client_token, dry_run=request.dry_run)
        return message(stored)

    async def _delete(self, request: pb.DeleteReservationRequest) -> pb.DeleteReservationResponse:
        await self._backend.delete(request.name, uid=request.uid)
        return pb.DeleteReservationResponse()

    async def _describe(self, request: pb.GetReservationRequest) -> pb.ReservationDescription:
        body, timeline, warnings = await self._backend.describe(request.name)
        entry = pb.ReservationDescription.Entry
        return pb.ReservationDescription(
            reservation=message(body),
            timeline=[entry(at=_time(at), what=what) for at, what in timeline],
            warnings=warnings,
        )

    async def _watch(
        self, request: pb.ListReservationsRequest
    ) -> AsyncGenerator[pb.ReservationEvent, None]:
        self.counts["reservation_watches"] += 1
        revision = request.revision
        while True:
            if not revision:
                listing = await self._list(request)
                revision = listing.revision
                yield pb.ReservationEvent(verb=pb.ReservationEvent.RESET)
                for reservation in listing.reservations:
                    yield _event(pb.ReservationEvent.SET, reservation, revision)
                yield pb.ReservationEvent(verb=pb.ReservationEvent.SYNCED, revision=revision)
            try:
                async for change in self._backend.watch(revision):
                    revision = change.revision
                    if change.verb is not objects.Verb.BOOKMARK:
                        reservation = message(change.object)
                        gone = change.verb is objects.Verb.DELETED
                        gone = gone or request.node not in {"", reservation.node}
                        verb = pb.ReservationEvent.REMOVED if gone else pb.ReservationEvent.SET
                        yield _event(verb, reservation, change.revision)
            except refusals.Gone:
                revision = ""


def _event(verb: Any, reservation: pb.Reservation, revision: str) -> pb.ReservationEvent:
    return pb.ReservationEvent(verb=verb, reservation=reservation, revision=revision)


class ReservationLister:
    """Asks a scheduler for the reservations of one node; a connection serves one question."""

    def __init__(self, socket: str, node: str, *, seconds: float = 5.0) -> None:
        self._socket, self._node, self._seconds = socket, node, seconds

    async def fetch(self) -> bytes:
        """Their objects, as a JSON list; the same bytes while nothing changes."""
        method, request = (
            f"/{SERVICE}/ListReservations",
            pb.ListReservationsRequest(node=self._node),
        )
        try:
            data = await services.ask(self._socket, method, request, self._seconds)
        except grpc.aio.AioRpcError as error:
            raise refusals.Unavailable(
                f"no answer: {error.code().name}",
                culprit=f"scheduler {self._socket}",
                fix="check that `koordlet scheduler` runs, and that scheduler.socket is right",
            ) from error
        answer = pb.ListReservationsResponse.FromString(data)
        return f"[{','.join(reservation.manifest for reservation in answer.reservations)}]".encode()


# Objects as messages ------------------------------------------------------------------------------


def message(body: objects.Object) -> pb.Reservation:
    """The message of an object; parts of a wrong type are as if they were not there."""
    spec, status = objects.part(body, "spec"), objects.part(body, "status")
    born = objects.text(body, "creationTimestamp")
    return pb.Reservation(
        name=objects.text(body, "name"),
        uid=objects.text(body, "uid"),
        revision=objects.revision(body),
        phase=str(status.get("phase") or "Pending"),
        node=str(status.get("nodeName") or ""),
        allocatable=_amounts(status, "allocatable"),
        allocated=_amounts(status, "allocated"),
        current_owners=[
            pb.CurrentOwner(**_texts(owner, "namespace", "name", "uid"))
            for owner in objects.parts(status, "currentOwners")
        ],
        conditions=[
            pb.ReservationCondition(
                **_texts(condition, "type", "status", "reason", "message"),
                changed=_time(str(condition.get("lastTransitionTime") or "")),
            )
            for condition in objects.parts(status, "conditions")
        ],
        allocate_once=spec.get("allocateOnce") is not False,
        allocate_policy=str(spec.get("allocatePolicy") or ""),
        cpus=str(_held(body).get("cpuset") or ""),
        manifest=json.dumps(body, separators=(",", ":"), default=str),
        created=_time(born),
        expires=_expires(spec, born),
    )


def _texts(body: Mapping[str, Any], *names: str) -> dict[str, str]:
    return {name: str(body.get(name) or "") for name in names}


def _expires(spec: Mapping[str, Any], created: str) -> Timestamp | None:
    """``expires`` has the say; a ttl of nothing never ends."""
    if spec.get("expires"):
        return _time(str(spec["expires"]))
    try:
        ttl = moment.duration(spec.get("ttl", "24h"))
        return _time(moment.spell(moment.parse(created) + ttl)) if ttl > 0 else None
    except ValueError:
        return None


def _time(spelled: str) -> Timestamp | None:
    try:
        return Timestamp(seconds=int(moment.parse(spelled)))
    except ValueError:
        return None


def _held(body: objects.Object) -> Mapping[str, Any]:
    """The CPUs that it holds by number."""
    notes = objects.part(objects.metadata(body), "annotations")
    try:
        held = json.loads(str(notes.get("scheduling.koordinator.sh/resource-status") or "{}"))
    except ValueError:
        return {}
    return held if isinstance(held, Mapping) else {}


def _amounts(status: Mapping[str, Any], key: str) -> dict[str, str]:
    return {str(name): str(amount) for name, amount in objects.part(status, key).items()}
