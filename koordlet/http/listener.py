"""Listening sockets of one server: which connections are let in, within a share of the loop.

Covers: binding, accepting, the clients that wait to be let in. Does not cover: what a connection
does (``connection``), how many there are (``places``), credit (``pace``).

Rules:
1. What connections cost until their first request is answered is paid from one credit. A client
   that opens one for each request waits like one that repeats requests on one connection.
2. Without credit, clients wait as bare sockets, first come first served. Beyond ``waiting`` of them
   the oldest goes that has asked for something, then the oldest: on a busy machine a probe says
   what it wants long after it has connected.
3. A client that waits and whose first bytes ask for a probe (``routes.PROBES``) pays from the
   credit of probes. Behind TLS nobody can tell.
4. Accepting costs, too: while clients wait, it pauses for as long as its share demands. The kernel
   keeps ``backlog`` connections meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from koordlet.http import authorisation, pace, routes
from koordlet.http import limits as bounds

#: As ``getaddrinfo`` has them.
Addresses = Sequence[tuple[int, int, int, str, Any]]
Admit = Callable[[socket.socket, pace.RequestPace], None]

_PEEKED = 64
_ASKED = tuple(
    f"{method} {path}{end}".encode()
    for method in ("GET", "HEAD")
    for path in routes.PROBES
    for end in " ?"
)
#: Descriptors or memory are short: seconds until the next try.
_SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_SHORT_PAUSE = 1.0
_GONE = (BlockingIOError, InterruptedError, ConnectionAbortedError)


class Listener:
    """The listening sockets, and who waits in front of the server."""

    def __init__(
        self,
        limits: bounds.ServerLimits,
        admit: Admit,
        count: Callable[[str], None],
        failed: Callable[[str, BaseException], None],
        *,
        secure: bool,
    ) -> None:
        """``admit`` takes a socket and the credit that pays for it."""
        self._limits = limits
        self._admit = admit
        self._count = count
        self._failed = failed
        self._secure = secure
        #: What nobody can measure of a connection.
        self._cost = limits.connection_seconds + limits.handshake_work_seconds * secure
        self.newcomers = pace.RequestPace(
            limits.newcomer_share, limits.newcomer_burst_seconds, lambda: count("queued")
        )
        self.probes = pace.RequestPace(limits.probe_share, limits.probe_burst_seconds)
        #: Seconds of letting clients in, which other credits pay for.
        self._admitting = 0.0
        self._sockets: list[socket.socket] = []
        #: The oldest first.
        self._waiting: dict[_Visitor, None] = {}
        self._loop = asyncio.get_running_loop()

    async def open(self, host: str, port: int) -> tuple[str, int]:
        """Listen on every address of the host; the first one."""
        addresses = await self._addresses(host, port)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(addresses):
                listening = socket.socket(family, kind, protocol)
                self._sockets.append(listening)
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listening.bind(address)
                listening.listen(self._limits.backlog)
                listening.settimeout(0)
        except OSError:
            self.close()
            raise
        for listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)
        bound = self._sockets[0].getsockname()
        return str(bound[0]), int(bound[1])

    async def _addresses(self, host: str, port: int) -> Addresses:
        """What is to be bound; only a name is looked up, for which asyncio starts a thread."""
        kind = socket.SOCK_STREAM
        if authorisation.address(host) is not None:
            return socket.getaddrinfo(host, port, type=kind, flags=socket.AI_NUMERICHOST)
        return await self._loop.getaddrinfo(host, port, type=kind, flags=socket.AI_PASSIVE)

    def close(self) -> None:
        """Listen no more; who waits is turned away."""
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()
        for visitor in tuple(self._waiting):
            self._turn_away(visitor)

    def _accept(self, listening: socket.socket) -> None:
        began = time.thread_time() - self._admitting
        for _ in range(self._limits.accepts):
            try:
                client, _ = listening.accept()
            except _GONE:
                break
            except OSError as error:
                if error.errno not in _SHORT:
                    raise
                self._failed("accept", error)
                self._pause(listening, _SHORT_PAUSE)
                return
            client.settimeout(0)
            self._greet(client)
        if self._waiting:
            spent = time.thread_time() - self._admitting - began
            self._pause(listening, spent / self._limits.accept_share)

    def _pause(self, listening: socket.socket, seconds: float) -> None:
        self._loop.remove_reader(listening)
        self._loop.call_later(seconds, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def _greet(self, client: socket.socket) -> None:
        visitor = _Visitor(client, self._let_in)
        self._waiting[visitor] = None
        visitor.wait_for(self.newcomers)
        if visitor in self._waiting and not self._secure:
            self._peek(visitor)
        if len(self._waiting) > self._limits.waiting:
            self._count("displaced")
            asking = (visitor for visitor in self._waiting if visitor.asks)
            self._turn_away(next(asking, None) or next(iter(self._waiting)))

    def _peek(self, visitor: _Visitor) -> None:
        """Rule 3; a client that has said nothing yet is looked at again once it has."""
        self._loop.remove_reader(visitor.client)
        try:
            head = visitor.client.recv(_PEEKED, socket.MSG_PEEK)
        except BlockingIOError:
            self._loop.add_reader(visitor.client, self._peek, visitor)
            return
        except OSError:
            head = b""
        if not head:
            self._turn_away(visitor)
        elif head.startswith(_ASKED):
            visitor.wait_for(self.probes)
        else:
            visitor.wait_as_any()

    def _let_in(self, visitor: _Visitor) -> None:
        del self._waiting[visitor]
        self._loop.remove_reader(visitor.client)
        visitor.pays.spend(self._cost)
        began = time.thread_time()
        self._admit(visitor.client, visitor.pays)
        self._admitting += time.thread_time() - began

    def _turn_away(self, visitor: _Visitor) -> None:
        del self._waiting[visitor]
        visitor.pays.leave(visitor)
        self._loop.remove_reader(visitor.client)
        with contextlib.suppress(OSError):
            visitor.client.close()


class _Visitor:
    """An accepted client that waits for credit."""

    def __init__(self, client: socket.socket, let_in: Callable[[_Visitor], None]) -> None:
        self.client = client
        self._let_in = let_in
        self.pays: pace.RequestPace
        #: Its first bytes are there, and ask for no probe.
        self.asks = False

    def wait_for(self, pays: pace.RequestPace) -> None:
        """Wait for this credit instead of the one before."""
        if hasattr(self, "pays"):
            self.pays.leave(self)
        self.pays = pays
        pays.turn(self)

    def wait_as_any(self) -> None:
        """Its first bytes ask for no probe."""
        self.asks = True

    def again(self) -> None:
        """There is credit."""
        self._let_in(self)
