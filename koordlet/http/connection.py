"""One connection: bytes in, requests to the routes, responses out, nothing unbounded.

Covers: the phases of a connection and their deadlines, back pressure, early refusals.
Does not cover: HTTP's grammar (h11), how many connections there are (``server``).

Rules:
1. Every phase has one deadline that no amount of dripping bytes moves.
2. One request for each turn of the loop: a client that sends a thousand at once waits for the
   others. The work of each is paid for (``pace``).
3. A response is handed over in pieces, the next one when the transport has taken the last; all
   connections share the bytes of the body.
4. Nothing that a client does raises into the loop.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import h11

from koordlet.http import authorisation, message, pace, places, routes
from koordlet.http.places import ConnectionPhase

#: One read. It bounds what h11 has to look at in one go.
_READ_BYTES = 8 << 10


class HttpConnection(asyncio.BufferedProtocol):
    """A client connection until it is closed."""

    def __init__(self, owner: places.ConnectionOwner, pays: pace.RequestPace) -> None:
        """``pays``: the credit for the first request."""
        self._owner, self._pays = owner, pays
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=owner.limits.head_bytes)
        self._buffer = bytearray(_READ_BYTES)
        self.phase = ConnectionPhase.CLOSED
        self._deadline: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Future[authorisation.AccessVerdict] | None = None
        self._head: h11.Request | None = None
        self._request: message.HttpRequest | None = None
        self._body = bytearray()
        self._rest = memoryview(b"")
        self._writable = True
        self._last = False
        self._channel: message.Channel | None = None
        self._discarded = 0
        #: What ``places`` asks.
        self.since = self._loop.time()
        self.stalled_since: float | None = None
        self.probe = False

    # What the transport tells us.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, or turn away."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - narrows the type
        self._transport = transport
        self._peer = authorisation.peer(
            transport.get_extra_info("peername"),
            secure=transport.get_extra_info("ssl_object") is not None,
        )
        self._owner.opened(self)
        transport.set_write_buffer_limits(high=self._owner.limits.chunk_bytes)
        # A new connection owes us a request soon; only later ones may come at leisure.
        self._enter(ConnectionPhase.IDLE, self._owner.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release all resources after a disconnection by either side."""
        del exc
        self._enter(ConnectionPhase.CLOSED, None)
        self._rest = memoryview(b"")
        if self._channel is not None:
            self._channel.leave(self)
        self._owner.pace.leave(self)
        if self._waiting is not None:
            self._waiting.cancel()
        self._owner.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Buffer that the transport reads into; TLS puts several records there, slice by slice."""
        del sizehint
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        """Bytes came."""
        if self.phase is ConnectionPhase.CLOSED or self._transport.is_closing():
            return
        if self.phase is ConnectionPhase.STREAM:
            # Whoever listens has nothing more to ask on this connection.
            self._transport.abort()
            return
        if self.phase is ConnectionPhase.LINGER:
            self._discarded += nbytes
            if self._discarded > self._owner.limits.linger_bytes:
                self._transport.abort()
            return
        if self.phase is ConnectionPhase.IDLE:
            self._enter(ConnectionPhase.HEAD, self._owner.limits.head_seconds)
        self._guarded(bytes(self._buffer[:nbytes]))

    def eof_received(self) -> bool:
        """The client has said all it has to say; it may still read the response."""
        self._guarded(b"")
        return self.phase in {ConnectionPhase.WRITE, ConnectionPhase.AUTHORISE}

    def pause_writing(self) -> None:
        """The client reads slower than we write."""
        self._writable = False
        self.stalled_since = self._loop.time()

    def resume_writing(self) -> None:
        """Resume writing: the client has caught up."""
        self._writable = True
        self.stalled_since = None
        # Not at once: the transport calls this in the middle of its own work, and would notice a
        # close that comes now twice.
        self._loop.call_soon(self._go_on)

    # What the server tells us.

    def close(self) -> None:
        """Go when nothing is being sent; the deadline of the phase bounds the rest."""
        if self.phase is ConnectionPhase.WRITE:
            self._last = True
        else:
            self._finish(self._owner.limits.linger_seconds)

    def abort(self) -> None:
        """Go now."""
        self._transport.abort()

    # Requests.

    def _guarded(self, data: bytes | None) -> None:
        """Take bytes (``None``: only what is there already) and go on as far as they reach."""
        try:
            with self._pays.paid():
                if data is not None:
                    self._http.receive_data(data)
                self._advance()
        except h11.RemoteProtocolError as error:
            self._refuse_malformed(str(error), "speak HTTP/1.1", error.error_status_hint)
        except Exception as error:  # noqa: BLE001 - a client must not cost more than itself
            self._owner.failed("connection", error)
            self._transport.abort()

    def _advance(self) -> None:
        while self.phase in {ConnectionPhase.HEAD, ConnectionPhase.BODY}:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                return
            if isinstance(event, h11.Request):
                self._on_head(event)
            elif isinstance(event, h11.Data):
                self._body += event.data
                most = self._owner.limits.body_bytes
                if len(self._body) > most:
                    problem = f"the request body exceeds {most} bytes"
                    self._refuse(message.error(413, "too_large", problem))
            elif isinstance(event, h11.EndOfMessage):
                self._on_end()
                # Rule 2: what comes next waits for its turn, even if it is here.
                return
            else:
                # PAUSED cannot be while we wait for bytes; the other is the client gone.
                self._finish(self._owner.limits.linger_seconds)
                return

    def _on_head(self, event: h11.Request) -> None:
        headers = list(event.headers)
        if len(headers) > self._owner.limits.headers:
            self._refuse_malformed("too many headers", "send fewer", 431)
            return
        self._head = event
        self._body.clear()
        try:
            self._request = message.parse(event.method, event.target, headers)
        except ValueError as error:
            self._refuse_malformed(str(error)[:200], "correct the request")
            return
        self.probe = self._request.path in routes.PROBES
        if not self._owner.admitted(self):
            self._refuse(
                message.error(
                    429, "busy", "too many requests at once", fix="send fewer, or try again later"
                )
            )
            return
        self._owner.count("requests")
        verdict = authorisation.rebound(self._request, self._peer)
        answer = self._owner.authorise(self._request, self._peer) if verdict.allowed else verdict
        if isinstance(answer, authorisation.AccessVerdict):
            self._judged(answer)
        else:
            self._enter(ConnectionPhase.AUTHORISE, self._owner.limits.authorise_seconds)
            self._transport.pause_reading()
            self._waiting = asyncio.ensure_future(answer)
            self._waiting.add_done_callback(self._answered)

    def _answered(self, verdict: asyncio.Future[authorisation.AccessVerdict]) -> None:
        """A verdict that took its time."""
        self._waiting = None
        if verdict.cancelled() or self.phase is not ConnectionPhase.AUTHORISE:
            return
        error = verdict.exception()
        if error is not None:
            self._owner.failed("authorise", error)
            self._refuse(message.error(500, "failed", "the request could not be authorized"))
            return
        self._transport.resume_reading()
        self._judged(verdict.result())
        self._guarded(None)

    def _judged(self, verdict: authorisation.AccessVerdict) -> None:
        if verdict.refusal is not None:
            self._owner.count("refused")
            self._refuse(verdict.refusal)
            return
        self._enter(ConnectionPhase.BODY, self._owner.limits.body_seconds)
        if self._http.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            self._transport.write(self._http.send(go_on) or b"")

    def _on_end(self) -> None:
        request = self._request
        assert request is not None  # noqa: S101 - a body has a head before it
        if self._body:
            request = replace(request, body=bytes(self._body))
        try:
            response = self._owner.routes.answer(request)
        except Exception as error:  # noqa: BLE001 - an endpoint that fails costs its answer only
            self._owner.failed(request.path, error)
            response = message.error(
                500,
                "failed",
                "the response could not be created",
                fix="see the agent's log for the error",
            )
        if isinstance(response, message.EventStream) and request.method == "GET":
            self._transport.write(self._head_of(request, response, close=True))
            self._enter(ConnectionPhase.STREAM, None)
            self._channel = response.channel
            self._channel.listen(self)
        else:
            self._respond(request, response)

    # Responses.

    def _refuse(self, response: message.HttpResponse) -> None:
        """Answer before the request is complete, and close."""
        if self._http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            # An answer has begun already: another one would be read as part of it.
            self._transport.abort()
            return
        self._respond(self._request if self._head is not None else None, response, close=True)

    def _refuse_malformed(self, problem: str, fix: str, status: int = 400) -> None:
        self._owner.count("malformed")
        self._refuse(message.error(status, "malformed", problem, fix=fix))

    def _respond(
        self,
        request: message.HttpRequest | None,
        response: message.HttpResponse,
        *,
        close: bool = False,
    ) -> None:
        self._enter(ConnectionPhase.WRITE, self._owner.limits.write_seconds)
        self._transport.pause_reading()
        self._push(self._head_of(request, response, close=close))

    def _head_of(
        self, request: message.HttpRequest | None, response: message.HttpResponse, *, close: bool
    ) -> bytes:
        """The head as bytes; the body becomes the rest that is to be sent."""
        status, headers, body = message.finish(request, response, now=time.time())
        if close:
            headers.append(("connection", "close"))
        self._rest = memoryview(body)
        reason = message.REASONS.get(status, "")
        head = h11.Response(status_code=status, headers=headers, reason=reason)
        return self._http.send(head) or b""

    def event(self, data: bytes) -> None:
        """A newer state of the channel; what the client has not begun to take is replaced."""
        if self.phase is not ConnectionPhase.STREAM or self._transport.is_closing():
            return
        if self._writable:
            self._transport.write(self._http.send(h11.Data(data=data)) or b"")
            return
        self._rest = memoryview(data)
        if self._deadline is None:
            self._enter(ConnectionPhase.STREAM, self._owner.limits.write_seconds)

    def _push(self, head: bytes = b"") -> None:
        """Hand over as much as the transport takes."""
        size = self._owner.limits.chunk_bytes
        while (head or self._rest) and self._writable and not self._transport.is_closing():
            piece, self._rest = self._rest[:size], self._rest[size:]
            self._transport.write(head + (self._http.send(h11.Data(data=bytes(piece))) or b""))
            head = b""
        if not self._rest and self._writable:
            self._http.send(h11.EndOfMessage())
            self._after()

    def _go_on(self) -> None:
        """Hand over more, if that is still what we are at."""
        if self.phase is ConnectionPhase.WRITE and self._writable:
            with self._pays.paid():
                self._push()
        elif self.phase is ConnectionPhase.STREAM and self._rest:
            newest, self._rest = bytes(self._rest), memoryview(b"")
            self._enter(ConnectionPhase.STREAM, None)
            self.event(newest)

    def _after(self) -> None:
        """The response is on its way: next request, or good-bye."""
        self._head = self._request = None
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            if self._last:
                self._finish(self._owner.limits.write_seconds)
                return
            self._http.start_next_cycle()
            self._enter(ConnectionPhase.IDLE, self._owner.limits.idle_seconds)
            self._owner.pace.turn(self)
        elif self._http.their_state in {h11.MUST_CLOSE, h11.CLOSED}:
            self._finish(self._owner.limits.write_seconds)
        else:
            self._linger()

    def again(self) -> None:
        """Read the next request, of which some may be here."""
        if self.phase is not ConnectionPhase.IDLE:
            return
        self._pays = self._owner.pace
        self._transport.resume_reading()
        if any(self._http.trailing_data):
            self._enter(ConnectionPhase.HEAD, self._owner.limits.head_seconds)
            self._loop.call_soon(self._guarded, None)

    def _finish(self, seconds: float) -> None:
        """Close when the client has taken what was sent, and in any case after some time."""
        self._enter(ConnectionPhase.CLOSING, seconds)
        self._transport.close()

    def _linger(self) -> None:
        """Close our half and read on a little: a reset would take the answer from the client."""
        self._enter(ConnectionPhase.LINGER, self._owner.limits.linger_seconds)
        _, gone = self._http.trailing_data
        if gone or not self._transport.can_write_eof():
            self._finish(self._owner.limits.write_seconds)
            return
        self._transport.write_eof()
        self._transport.resume_reading()

    # Deadlines.

    def _enter(self, phase: ConnectionPhase, seconds: float | None) -> None:
        if (self.phase, phase) != (ConnectionPhase.IDLE, ConnectionPhase.HEAD):
            # A byte of a head makes nobody younger.
            self.since = self._loop.time()
        self.phase = phase
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if seconds is not None:
            self._deadline = self._loop.call_later(seconds, self._expired, phase)

    def _expired(self, phase: ConnectionPhase) -> None:
        self._deadline = None
        if phase is ConnectionPhase.IDLE:
            self._finish(self._owner.limits.linger_seconds)
            return
        self._owner.count("timeouts")
        if phase in {ConnectionPhase.HEAD, ConnectionPhase.BODY}:
            self._refuse(message.error(408, "timeout", "the request took too long"))
        elif phase is ConnectionPhase.AUTHORISE:
            if self._waiting is not None:
                self._waiting.cancel()
            self._refuse(message.error(503, "timeout", "the authorization took too long"))
        else:
            self._transport.abort()
