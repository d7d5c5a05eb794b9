"""Resource limits of clients, of HTTP and of gRPC: sizes, counts, seconds."""

from __future__ import annotations

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """Bounds that every server has."""

    #: For a new connection to speak the protocol: TLS, or HTTP/2.
    handshake_seconds: float = 5.0
    #: A request is some bytes; only answers are large.
    body_bytes: int = 64 << 10
    #: Running answers at a stop.
    stop_seconds: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits(ListenerLimits):
    """Bounds of an HTTP server.

    Its memory: connections times (head + body + chunk), and the heads.
    """

    #: Whole requests at once, beside probes; ``places`` says who gives way before a 429 is said.
    connections: int = 64
    #: Connections beside those that have not sent a whole head.
    heads: int = 64
    #: Requests of ``routes.PROBES`` at once, in places of their own.
    probes: int = 8
    #: Connections that the kernel keeps for us, and that we accept in one go. Beyond the three
    #: bounds above, as many descriptors may be open for an instant as we accept in one go.
    backlog: int = 1024
    accepts: int = 64
    #: Clients that wait for credit before they have a connection.
    waiting: int = 64
    #: TLS handshakes that run at once, beside the connections.
    handshakes: int = 32
    #: Request line and headers together.
    head_bytes: int = 16 << 10
    headers: int = 100
    #: What is handed to the transport in one piece: a slow reader holds no more than this.
    chunk_bytes: int = 64 << 10
    #: From the first byte (or the connection) to the last header.
    head_seconds: float = 10.0
    body_seconds: float = 10.0
    #: For the authorisation of one request.
    authorise_seconds: float = 5.0
    #: For the client to take the whole response.
    write_seconds: float = 30.0
    #: After so long without taking any of it, a newcomer may have the place.
    stall_seconds: float = 1.0
    #: Of the loop's time, on the long run, and seconds of work at once: for new connections with
    #: their first requests, for those that ask for a probe where the former is used up, for all
    #: later requests, and for accepting while clients wait for the first credit.
    newcomer_share: float = 0.2
    newcomer_burst_seconds: float = 1.0
    probe_share: float = 0.1
    probe_burst_seconds: float = 0.5
    repeat_share: float = 0.2
    repeat_burst_seconds: float = 1.0
    accept_share: float = 0.1
    #: What it costs to make and end a connection, and a TLS handshake, which asyncio spends
    #: between callbacks of ours.
    connection_seconds: float = 0.0003
    handshake_work_seconds: float = 0.002
    #: Between two requests of one connection.
    idle_seconds: float = 60.0
    #: What is still read after an early refusal, so that the client sees the answer.
    linger_seconds: float = 1.0
    linger_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits(ListenerLimits):
    """Bounds of a gRPC server, for each client and for all together."""

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
    answer_bytes: int = 16 << 20
    metadata_bytes: int = 8 << 10
    #: An event is sent when nothing else was for so long.
    heartbeat_seconds: float = 10.0
    keepalive_seconds: float = 30.0
    keepalive_timeout_seconds: float = 10.0
    #: A connection without calls is closed.
    idle_seconds: float = 300.0
    #: Every connection is closed after so long (10 % more or less): a watcher goes on where it was,
    #: and one that never reads loses its place.
    age_seconds: float = 1800.0
    age_grace_seconds: float = 5.0
