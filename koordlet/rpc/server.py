"""One gRPC server: services, health and reflection on a Unix socket, and over TCP with mTLS.

Covers: listening, bounds, starting and stopping.
Does not cover: what the services do (``node_feed``, ``ingest``, …), the socket's path
(``unix_socket``), certificates (``tls``), who may what (``guard``, ``permissions``).

Rules:
1. Handlers take and give bytes: an event is encoded once, whoever reads it.
2. What a client does costs itself: its call, its place among the callers, at most its connection.
3. Connections take a share of the process's descriptors, so that a flood never costs a read.
"""

from __future__ import annotations

import collections
import os
import resource
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from koordlet.http import limits as bounds
from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.rpc import access, guard, permissions, services, speakers, tls, unix_socket


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteListener:
    """A listener that other machines reach."""

    #: ``host:port``.
    address: str
    files: tls.TlsFiles
    rules: Sequence[access.AccessRule] = ()


def remote(
    address: str | None, files: tls.TlsFiles | None, clients: Iterable[tuple[str, Iterable[str]]]
) -> RemoteListener | None:
    """Listener for other machines; ``None`` if the configuration has none.

    ``clients`` are names in certificates with their rights.
    """
    if address is None or files is None:
        return None
    rules = [
        access.AccessRule(name=name, rights=frozenset(map(permissions.Right, rights)))
        for name, rights in clients
    ]
    return RemoteListener(address=address, files=files, rules=rules)


class RpcServer:
    """Listens in the running loop."""

    def __init__(
        self,
        path: Path,
        offered: Sequence[services.RpcService],
        *,
        limits: bounds.CallLimits | None = None,
        remote: RemoteListener | None = None,
        speaks: speakers.Speakers = speakers.NAMED,
    ) -> None:
        self._path = path
        self._offered = tuple(offered)
        self._limits = bounds.CallLimits() if limits is None else limits
        self._remote = remote
        self._access = access.CallAccess(
            remote.rules if remote is not None else (),
            rate=self._limits.calls_per_second,
            burst=self._limits.calls_burst,
        )
        #: Root and whoever we are.
        self._peers = unix_socket.Peers(path, {0, os.geteuid()})
        self._guard = guard.ConnectionGuard(self._access, self._peers, speaks)
        self._server: grpc.aio.Server | None = None
        self._health = health.aio.HealthServicer()
        #: Of the TCP listener; the system's choice where the configuration says 0.
        self.port: int | None = None

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of client events."""
        counts: collections.Counter[str] = collections.Counter()
        for service in self._offered:
            counts.update(service.counts)
        counts["refused"] += self._access.refused + self._peers.cut
        return counts

    async def start(self) -> str:
        """Listen; the addresses as gRPC clients write them."""
        services.ensure_threads()
        unix_socket.prepare(self._path)
        server = grpc.aio.server(
            options=_options(self._limits),
            maximum_concurrent_rpcs=self._limits.watchers + self._limits.calls,
            interceptors=(self._guard,),
        )
        for service in self._offered:
            server.add_generic_rpc_handlers((_mounted(service),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = [service.name for service in self._offered]
        reflection.enable_server_reflection(
            (*names, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        addresses = [f"unix:{self._path}"]
        try:
            with unix_socket.private():
                server.add_insecure_port(addresses[0])
        except RuntimeError as error:
            await server.stop(None)
            raise errors.HostError(
                "cannot listen", culprit=str(self._path), fix="set another report.grpc.socket"
            ) from error
        if self._remote is not None:
            addresses.append(await self._listen(server, self._remote))
        await self.say(serving=False)
        await server.start()
        self._server = server
        return ", ".join(addresses)

    async def _listen(self, server: grpc.aio.Server, remote: RemoteListener) -> str:
        try:
            credentials = tls.server_credentials(remote.files)
            self.port = server.add_secure_port(remote.address, credentials)
        except (RuntimeError, errors.HostError) as error:
            await server.stop(None)
            if isinstance(error, errors.HostError):
                raise
            raise errors.HostError(
                "cannot listen", culprit=remote.address, fix="set another report.grpc.address"
            ) from error
        host = remote.address.rpartition(":")[0]
        return f"{host}:{self.port} (mTLS)"

    async def stop(self) -> None:
        """Let running calls end, then cut. gRPC takes the socket away."""
        if self._server is None:
            return
        server, self._server = self._server, None
        await self._health.enter_graceful_shutdown()
        await server.stop(self._limits.stop_seconds)
        await self._guard.ended(self._limits.stop_seconds)

    async def say(self, *, serving: bool) -> None:
        """Set the answer of the health service."""
        states = health_pb2.HealthCheckResponse
        status = states.SERVING if serving else states.NOT_SERVING
        for name in ("", *(service.name for service in self._offered)):
            await self._health.set(name, status)


def _mounted(offered: services.RpcService) -> grpc.GenericRpcHandler:
    """The handlers of a service, each of which has its row."""
    methods = offered.methods()
    for name in methods:
        method = f"{offered.name}/{name}"
        if method not in permissions.METHODS:
            raise errors.BugError(
                "the permissions table has no row for this method", culprit=method
            )
    return grpc.method_handlers_generic_handler(offered.name, dict(methods))


def _options(limits: bounds.CallLimits) -> list[tuple[str, int]]:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    share = int(min(descriptors, 1 << 16) * limits.descriptor_share)
    connections = max(8, min(limits.connections, share))
    return [
        ("grpc.so_reuseport", 0),
        # Messages are small: a ping after each, to find a better window, would double their cost.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.max_allowed_incoming_connections", connections),
        ("grpc.max_receive_message_length", limits.body_bytes),
        ("grpc.max_send_message_length", limits.answer_bytes),
        ("grpc.max_metadata_size", limits.metadata_bytes),
        ("grpc.max_concurrent_streams", limits.watchers + limits.calls),
        ("grpc.server_handshake_timeout_ms", _milli(limits.handshake_seconds)),
        ("grpc.keepalive_time_ms", _milli(limits.keepalive_seconds)),
        ("grpc.keepalive_timeout_ms", _milli(limits.keepalive_timeout_seconds)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.max_connection_idle_ms", _milli(limits.idle_seconds)),
        ("grpc.max_connection_age_ms", _milli(limits.age_seconds)),
        ("grpc.max_connection_age_grace_ms", _milli(limits.age_grace_seconds)),
    ]


def _milli(seconds: float) -> int:
    return round(seconds * 1000)
