"""Blocking clients of our services: the feed of a node, a scheduler, its reservations.

Covers: one server on a Unix socket or over mutual TLS, one call each, failures in words.
Does not cover: coming back after a cut (``koordlet.client``), clients that an agent uses
(``reporting``, ``unary``).
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

import grpc
from google.protobuf import message as protobuf

from koordlet.http import limits
from koordlet.kubeapi import objects, refusals
from koordlet.model import errors
from koordlet.rpc import tls
from koordlet.rpc.gen import feed_pb2, scheduler_pb2
from koordlet.rpc.gen import reservations_pb2 as pb

#: What a failing call raises.
Error = grpc.RpcError

#: The kernel's words where nobody listens, and where this user may not connect.
_ABSENT = frozenset(map(os.strerror, (errno.ENOENT, errno.ECONNREFUSED)))
_FORBIDDEN = os.strerror(errno.EACCES)
#: Nobody answers, or not in time.
_SILENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_SECONDS = 30.0
#: For all objects of a cluster.
_LISTING = 120.0
#: A path is no authority that servers accept, and a socket has no other name.
UNIX_OPTIONS = [("grpc.default_authority", "localhost")]

_AnswerT = TypeVar("_AnswerT", bound=protobuf.Message)


class RpcNoAnswerError(Exception):
    """The server does not answer, or not in time."""


class RpcRefusedError(Exception):
    """The server refused the call."""


def shortened(words: str) -> str:
    """Shorten gRPC's message for an unreachable address, which repeats the kernel's error."""
    if words.startswith("errors resolving "):
        return "no such host: an address is HOST:PORT or unix:/path"
    last = words.rpartition(": ")[2]
    return last if last == _FORBIDDEN or last in _ABSENT else words


def explained(error: Any, address: str) -> RpcNoAnswerError | RpcRefusedError:
    """Explain a gRPC error. gRPC's errors are calls as well, which their types do not show."""
    status: grpc.StatusCode | None = error.code() if hasattr(error, "code") else None
    words = error.details() if hasattr(error, "details") else str(error)
    if status is None or status in _SILENT:
        return RpcNoAnswerError(f"{address}: {shortened(str(words))}")
    return RpcRefusedError(f"{address}: {words} ({status.name})")


class RpcClient:
    """A connection; use it with ``with``."""

    def __init__(self, address: Path | str, files: tls.TlsFiles | None = None) -> None:
        #: A path is that of a Unix socket; a text is as gRPC writes addresses.
        self.address = f"unix:{address}" if isinstance(address, Path) else address
        if self.address != self.address.encode(errors="replace").decode():
            raise errors.HostError(
                "gRPC takes no socket path that is not UTF-8: nobody can listen there",
                culprit=self.address,
                fix="name another with --address or --state-dir",
            )
        if files is None:
            options = UNIX_OPTIONS if isinstance(address, Path) else []
            self.channel = grpc.insecure_channel(self.address, options=options)
        else:
            self.channel = grpc.secure_channel(self.address, tls.channel_credentials(files))

    def call(
        self, method: str, request: Any, answer: type[_AnswerT], timeout: float | None
    ) -> _AnswerT:
        """Make one call of ``Service/Method``, with one answer."""
        path, encode = f"/koordlet.v1.{method}", type(request).SerializeToString
        ask: Any = self.channel.unary_unary(path, encode, answer.FromString)
        returned: _AnswerT = ask(request, timeout=timeout)
        return returned

    def follow(
        self, method: str, request: Any, answer: type[_AnswerT], timeout: float | None = None
    ) -> Iterator[_AnswerT]:
        """Make one call, with many answers."""
        path, encode = f"/koordlet.v1.{method}", type(request).SerializeToString
        ask: Any = self.channel.unary_stream(path, encode, answer.FromString)
        answers: Iterator[_AnswerT] = ask(request, timeout=timeout)
        return answers

    def get_node(self, *, timeout: float = 5.0) -> feed_pb2.Node:
        """The whole node, now."""
        return self.call("NodeFeed/GetNode", feed_pb2.GetNodeRequest(), feed_pb2.Node, timeout)

    def watch_node(
        self, *, epoch: str = "", revision: int = 0, timeout: float | None = None
    ) -> Iterator[feed_pb2.WatchEvent]:
        """Events, the first one full unless the revision can be resumed."""
        request = feed_pb2.WatchRequest(epoch=epoch, revision=revision)
        return self.follow("NodeFeed/WatchNode", request, feed_pb2.WatchEvent, timeout)

    def list_nodes(
        self, name: str = "", *, timeout: float = 5.0
    ) -> list[scheduler_pb2.SchedulerNode]:
        """List the scheduler's nodes, or one of them."""
        request = scheduler_pb2.ListNodesRequest(name=name)
        answer = self.call("Scheduler/ListNodes", request, scheduler_pb2.ListNodesResponse, timeout)
        return list(answer.nodes)

    def close(self) -> None:
        """Close the connection, and with it every watch."""
        self.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PlacingClient(RpcClient):
    """Hands objects to a scheduler on a Unix socket, and asks why a pod is where it is."""

    def submit(
        self, manifests: Sequence[str], *, dry_run: bool = False
    ) -> Sequence[scheduler_pb2.SubmitResult]:
        """Hand objects in, in as many requests as the scheduler's bound makes of them."""
        taken: list[scheduler_pb2.SubmitResult] = []
        for piece in _pieces(manifests):
            if len(piece[0].encode()) > _MOST:
                taken.append(_too_large(piece[0]))
                continue
            request = scheduler_pb2.SubmitRequest(manifests=piece, dry_run=dry_run)
            taken += self._ask("Submit", request, scheduler_pb2.SubmitResponse).results
        return taken

    def why(self, namespace: str, name: str) -> scheduler_pb2.ExplainResponse:
        """Explanation of a pod's placement."""
        request = scheduler_pb2.ExplainRequest(namespace=namespace, name=name)
        return self._ask("Explain", request, scheduler_pb2.ExplainResponse)

    def delete_quota(self, name: str, *, force: bool) -> None:
        """Delete a quota; with pods or children in it only by force."""
        request = scheduler_pb2.DeleteQuotaRequest(name=name, force=force)
        try:
            self._ask("DeleteQuota", request, scheduler_pb2.DeleteQuotaResponse)
        except errors.HostError as error:
            status: Any = error.__cause__
            if status.code() in _MEANINGS:
                raise _MEANINGS[status.code()](str(status.details() or "")) from status
            raise

    def _ask(self, method: str, request: Any, answer_class: type[_AnswerT]) -> _AnswerT:
        try:
            return self.call(f"Scheduler/{method}", request, answer_class, _SECONDS)
        except grpc.RpcError as error:
            raise refusal(error, method, self.address) from error


class MovesClient(RpcClient):
    """Has a standalone scheduler move pods, and follows it."""

    def move(self, wanted: scheduler_pb2.MovePodsRequest) -> Iterator[scheduler_pb2.PodMove]:
        """Each change of a pod's state; whoever ends the iteration ends the moves."""
        answers: Any = self.follow("Moves/MovePods", wanted, scheduler_pb2.PodMove)
        try:
            yield from answers
        except grpc.RpcError as error:
            raise refusal(error, "MovePods", self.address) from error
        finally:
            answers.cancel()

    def objects(self, *, timeout: float = _LISTING) -> Iterator[str]:
        """All objects by which pods are placed and evicted, as JSON."""
        request, answer = scheduler_pb2.ListObjectsRequest(), scheduler_pb2.ClusterObject
        try:
            for each in self.follow("Moves/ListObjects", request, answer, timeout):
                yield each.json
        except grpc.RpcError as error:
            raise refusal(error, "ListObjects", self.address) from error

    def undo_drain(self, node: str) -> int:
        """Uncordon a node, and end what is under way; how many moves that were."""
        request = scheduler_pb2.UndoDrainRequest(node=node)
        try:
            answer = self.call(
                "Moves/UndoDrain", request, scheduler_pb2.UndoDrainResponse, _SECONDS
            )
        except grpc.RpcError as error:
            raise refusal(error, "UndoDrain", self.address) from error
        return int(answer.ended)


def refusal(error: Any, method: str, address: str) -> errors.HostError:
    """Why a standalone scheduler did not do it. gRPC's errors are calls as well."""
    code, words = error.code(), str(error.details() or "")
    if code not in _SILENT:
        return errors.HostError(words, culprit=f"{method} ({code.name})")
    why, socket = shortened(words), address.removeprefix("unix:")
    if why in _ABSENT:
        return errors.HostError(
            "no scheduler listens on this socket",
            culprit=socket,
            fix="start one: koordlet scheduler --standalone",
        )
    if why == _FORBIDDEN:
        return errors.HostError(
            "this socket is not for this user", culprit=socket, fix="run the command as root"
        )
    return errors.HostError(
        f"the scheduler does not answer {method}: {why or code.name}",
        culprit=socket,
        fix="its log says what it does; if nothing, start it anew",
    )


#: Bytes of manifests in one request: what a server takes, less what the message adds.
_MOST = limits.CallLimits().body_bytes - 256
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


def _too_large(manifest: str) -> scheduler_pb2.SubmitResult:
    body = json.loads(manifest)
    meta = body.get("metadata") or {}
    return scheduler_pb2.SubmitResult(
        kind=str(body.get("kind") or ""),
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or ""),
        error=f"the object has {len(manifest.encode())} bytes, a scheduler takes {_MOST}",
    )


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


class ReservationsClient(RpcClient):
    """Asks a scheduler on a Unix socket for reservations."""

    def call(
        self, method: str, request: Any, answer: type[_AnswerT], timeout: float | None
    ) -> _AnswerT:
        """Make one call of ``Reservations``."""
        try:
            return super().call(f"Reservations/{method}", request, answer, timeout)
        except grpc.RpcError as error:
            self._refuse(error)

    def _refuse(self, error: Any) -> NoReturn:
        code, details = error.code(), str(error.details() or "")
        if code in _MEANINGS:
            raise _MEANINGS[code](details) from error
        raise refusals.Unavailable(
            f"the scheduler does not answer: {shortened(details) or code.name}",
            culprit=self.address.removeprefix("unix:"),
            fix="start `koordlet scheduler` there, or give --kubeconfig",
        ) from error

    def create(
        self, body: objects.Object, token: str = "", *, timeout: float = 10.0
    ) -> pb.Reservation:
        """A new one, or the one that is there for the same wish."""
        manifest = json.dumps(body, default=str)
        request = pb.CreateReservationRequest(manifest=manifest, client_token=token)
        return self.call("CreateReservation", request, pb.Reservation, timeout)

    def get(self, name: str, *, timeout: float = 10.0) -> pb.Reservation:
        """One."""
        request = pb.GetReservationRequest(name=name)
        return self.call("GetReservation", request, pb.Reservation, timeout)

    def list(self, node: str = "", *, timeout: float = 10.0) -> list[pb.Reservation]:
        """All, or those of a node."""
        request = pb.ListReservationsRequest(node=node)
        answer = self.call("ListReservations", request, pb.ListReservationsResponse, timeout)
        return [*answer.reservations]

    def delete(self, name: str, uid: str = "", *, timeout: float = 10.0) -> None:
        """Remove one."""
        request = pb.DeleteReservationRequest(name=name, uid=uid)
        self.call("DeleteReservation", request, pb.DeleteReservationResponse, timeout)

    def describe(self, name: str, *, timeout: float = 10.0) -> pb.ReservationDescription:
        """One with its timeline."""
        request = pb.GetReservationRequest(name=name)
        return self.call("DescribeReservation", request, pb.ReservationDescription, timeout)

    def watch(self, revision: str = "", *, node: str = "") -> Iterator[pb.ReservationEvent]:
        """All reservations, then changes."""
        request = pb.ListReservationsRequest(node=node, revision=revision)
        try:
            yield from self.follow("Reservations/WatchReservations", request, pb.ReservationEvent)
        except grpc.RpcError as error:
            self._refuse(error)
