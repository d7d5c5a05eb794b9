"""A Unix socket: making room for its path, and its peers, from the kernel.

Covers: directory, modes, stale sockets; finding our accepted connections, cutting those of users
that are not let in. Does not cover: what is spoken on it.

Rules:
1. The socket is for its owner alone (0600); a directory that we make is, too (0700).
2. An existing socket is replaced only when nobody listens; what is no socket is never touched.

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
import errno
import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path

from koordlet.model import errors

#: ``sun_path`` of ``struct sockaddr_un``, without the final zero.
MAX_PATH = 107


def prepare(path: Path, setting: str = "report.grpc.socket") -> None:
    """Make the path free to bind; ``setting`` is what an operator changes where it is not."""
    if len(os.fsencode(path)) > MAX_PATH:
        raise errors.HostError(
            f"the socket path exceeds {MAX_PATH} bytes",
            culprit=str(path),
            fix=f"set {setting} to a shorter path",
        )
    if os.fsencode(path) != str(path).encode(errors="replace"):
        why, fix = "gRPC takes no socket path that is not UTF-8", f"set {setting} to another path"
        raise errors.HostError(why, culprit=str(path), fix=fix)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise errors.HostError(
                "every user can write to the directory of the socket, and so replace it",
                culprit=str(path.parent),
                fix=f"chmod o-w {path.parent}",
            )
        there = path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise errors.HostError(
            f"cannot create the socket: {error.strerror}",
            culprit=error.filename or str(path),
            fix=f"set {setting} to a directory that the agent's user owns",
            errno=error.errno,
        ) from error
    if not stat.S_ISSOCK(there.st_mode):
        raise errors.HostError(
            "the path exists and is not a socket",
            culprit=str(path),
            fix=f"move it away, or set another {setting}",
        )
    if _listened(path):
        raise errors.HostError(
            "another program already listens there",
            culprit=str(path),
            fix=f"stop it (`ss -xlp src {path}` names the process), or set another {setting}",
        )
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def private() -> Iterator[None]:
    """Create files for their owner only: a chmod after bind would leave a gap."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


def _listened(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        # A listener whose queue is full would make us wait.
        probe.settimeout(0)
        return probe.connect_ex(os.fsencode(path)) not in {errno.ECONNREFUSED, errno.ENOENT}


# Peers --------------------------------------------------------------------------------------------


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
            self._next = asyncio.create_task(self._soon())
        await asyncio.shield(self._next)

    async def _soon(self) -> None:
        await asyncio.sleep(max(0.0, self._last + _APART - self._clock()))
        self._next = None
        self._last = self._clock()
        self.look()

    def look(self) -> None:
        """Look at the connections that are new."""
        sockets = {}
        for number in self._numbers():
            with contextlib.suppress(OSError):
                status = os.fstat(number)
                if stat.S_ISSOCK(status.st_mode):
                    sockets[number] = status.st_ino
                    if self._seen.get(number) != status.st_ino:
                        self._check(number)
        self._seen = sockets

    def _numbers(self) -> Iterable[int]:
        """Our open descriptors, and maybe some that are not open."""
        try:
            return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
        except OSError:
            # None is left to read the directory with; new ones are the lowest that are free.
            return range(max(self._seen, default=0) + _MARGIN)

    def _check(self, number: int) -> None:
        connection = socket.socket(fileno=number)
        try:
            with contextlib.suppress(OSError):
                self._judge(connection)
        finally:
            # It is gRPC's.
            connection.detach()

    def _judge(self, connection: socket.socket) -> None:
        unix = connection.family == socket.AF_UNIX
        if not unix or os.fsencode(connection.getsockname()) != self._path:
            return
        if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, user, _ = _CREDENTIALS.unpack(raw)
        if user not in self._users:
            self.cut += 1
            self._until = self._clock() + _DOUBT
            connection.shutdown(socket.SHUT_RDWR)
