"""What one client may cost: sizes, counts, seconds."""

from __future__ import annotations

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of the server. Memory is at most ``connections`` times (header + body + chunk)."""

    #: Connections beyond it are answered 429 and closed, after the idle ones have been closed.
    connections: int = 64
    #: Connections that the kernel keeps for us and that we accept in one go: so many descriptors
    #: may be open beyond ``connections`` for an instant.
    backlog: int = 64
    #: TLS handshakes that run at once, beside the connections, and how long each may take.
    handshakes: int = 32
    handshake_seconds: float = 5.0
    #: Request line and headers together.
    head_bytes: int = 16 << 10
    headers: int = 100
    body_bytes: int = 64 << 10
    #: What is handed to the transport in one piece: a slow reader holds no more than this.
    chunk_bytes: int = 64 << 10
    #: From the first byte (or the connection) to the last header.
    head_seconds: float = 10.0
    body_seconds: float = 10.0
    #: For the authorisation of one request.
    authorise_seconds: float = 5.0
    #: For the client to take the whole response.
    write_seconds: float = 30.0
    #: Between two requests of one connection.
    idle_seconds: float = 60.0
    #: What is still read after an early refusal, so that the client sees the answer.
    linger_seconds: float = 1.0
    linger_bytes: int = 1 << 20
    #: Running responses at a stop.
    stop_seconds: float = 1.0
