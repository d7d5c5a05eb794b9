"""Resource limits of gRPC clients, for each and for all together."""

from __future__ import annotations

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Bounds of the server."""

    watchers: int = 1024
    #: Calls beside the watchers: GetNode, health, reflection.
    calls: int = 64
    #: For each address, on the long run and at once.
    calls_per_second: float = 100.0
    calls_burst: float = 2000.0
    #: Connections, of which each costs some 40 KB …
    connections: int = 2048
    #: … and the share of the process's descriptors that they may take: the loop's own stay free.
    descriptor_share: float = 0.25
    #: A request is some bytes; only answers are large.
    request_bytes: int = 64 << 10
    answer_bytes: int = 16 << 20
    metadata_bytes: int = 8 << 10
    #: An event is sent when nothing else was for so long.
    heartbeat_seconds: float = 10.0
    #: For a new connection to speak HTTP/2.
    handshake_seconds: float = 5.0
    keepalive_seconds: float = 30.0
    keepalive_timeout_seconds: float = 10.0
    #: A connection without calls is closed.
    idle_seconds: float = 300.0
    #: Every connection is closed after so long (10 % more or less): a watcher goes on where it was,
    #: and one that never reads loses its place.
    age_seconds: float = 1800.0
    age_grace_seconds: float = 5.0
    #: Running calls at a stop.
    stop_seconds: float = 1.0
