"""Peer credentials of a Unix socket, from the kernel, checked for each connection.

Covers: finding our accepted connections, cutting those of users that are not let in.
Does not cover: the mode of the socket, which keeps most of them away before (``unix_socket``).

gRPC does not tell which connection a call came through. But the connection of a call is accepted
before the call is handled, so looking at every connection that was not looked at before, at the
beginning of each call, has always looked at the caller's. A foreign one is shut down: no answer
reaches it. Calls that change something are refused for a moment then, because one of them may have
come through the connection that was just cut (``doubtful``).

A look costs a system call for each open descriptor, so calls that arrive together share one, and
looks are at least ``_APART`` seconds apart.

Kernel facts: ``SO_PEERCRED`` gives the credentials at the time of ``connect`` (unix(7)).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Container, Iterable
from pathlib import Path

#: Seconds for which calls that change something are refused after a foreign connection.
_DOUBT = 1.0
_APART = 0.05
#: How many more descriptors than at the last look there may be where nobody can count them.
_MARGIN = 4096
_CREDENTIALS = struct.Struct("3i")


class Peers:
    """The connections of one listening socket."""

    def __init__(
        self,
        path: Path,
        users: Container[int],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = os.fsencode(path)
        self._users = users
        self._clock = clock
        #: Descriptor to the inode of what it was when it was looked at.
        self._seen: dict[int, int] = {}
        self._until = self._last = float("-inf")
        self._next: asyncio.Task[None] | None = None
        self.cut = 0

    @property
    def doubtful(self) -> bool:
        """True while a call may be one of a connection that was cut."""
        return self._clock() < self._until

    async def looked(self) -> None:
        """Wait for a look that begins after now."""
        if self._next is None or self._next.done():
            pause = max(0.0, self._last + _APART - self._clock())
            self._next = asyncio.create_task(self._soon(pause))
        await asyncio.shield(self._next)

    async def _soon(self, pause: float) -> None:
        await asyncio.sleep(pause)
        self._next = None
        self._last = self._clock()
        self.look()

    def look(self) -> None:
        """Look at the connections that are new."""
        found = {}
        for number in self._numbers():
            with contextlib.suppress(OSError):
                status = os.fstat(number)
                if stat.S_ISSOCK(status.st_mode):
                    found[number] = status.st_ino
                    if self._seen.get(number) != status.st_ino:
                        self._check(number)
        self._seen = found

    def _numbers(self) -> Iterable[int]:
        """Our open descriptors, and maybe some that are not open."""
        try:
            return [int(one.name) for one in Path("/proc/self/fd").iterdir()]
        except OSError:
            # None is left to read the directory with; new ones are the lowest that are free.
            return range(max(self._seen, default=0) + _MARGIN)

    def _check(self, number: int) -> None:
        one = socket.socket(fileno=number)
        try:
            self._judge(one)
        finally:
            # It is gRPC's.
            one.detach()

    def _judge(self, one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if one.family != socket.AF_UNIX or os.fsencode(one.getsockname()) != self._path:
                return
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return
            raw = one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            _, user, _ = _CREDENTIALS.unpack(raw)
            if user not in self._users:
                self.cut += 1
                self._until = self._clock() + _DOUBT
                one.shutdown(socket.SHUT_RDWR)
