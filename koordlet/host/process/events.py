"""Processes that executed a program, by the kernel's process connector.

Covers: listening, draining. Does not cover: what follows (``host.resctrl.reader``).

Kernel facts (Documentation/driver-api/connector.rst, drivers/connector/cn_proc.c): one asks for the
events with a message to the group 1 of NETLINK_CONNECTOR, as root in the first network namespace.
Since 6.6 a second form of that message says which events; an older kernel ignores it, and sends
all.

It is a socket and three structs, and not pyroute2, whose import takes 25 MB and half a second.
Nobody is woken by an event: the socket is emptied once in a tick, and where it overflows (some
hundred events) that is all that is known of them.
"""

from __future__ import annotations

import contextlib
import socket
import struct

_CONNECTOR = 11
_PROC = 1
_DONE = 3
_LISTEN = 1
#: Numbers of events.
_EXEC = 0x2
_NETLINK = struct.Struct("=IHHII")
_MESSAGE = struct.Struct("=IIIIHH")
#: What, processor, time; then, of an exec, its thread and its process.
_EVENT = struct.Struct("=IIQ")
_PIDS = struct.Struct("=II")
_BEGINS = _NETLINK.size + _MESSAGE.size
#: Bytes of events in the kernel: a tick's worth on a busy machine.
_ROOM = 1 << 20
#: The option that root may exceed the system's limit with.
_SO_RCVBUFFORCE = 33


class ProcessEvents:
    """A subscription; ``OSError`` if the kernel refuses it."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, _CONNECTOR
        )
        try:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM)
            self._socket.bind((0, _PROC))
            for asked in (struct.pack("=I", _LISTEN), struct.pack("=II", _LISTEN, _EXEC)):
                self._socket.send(_wrapped(asked))
        except OSError:
            self._socket.close()
            raise

    def hear(self) -> frozenset[int] | None:
        """Processes that began a program since the last time; ``None`` where some were lost."""
        pids: set[int] = set()
        lost = False
        while True:
            try:
                data = self._socket.recv(4096)
            except BlockingIOError:
                return None if lost else frozenset(pids)
            except OSError:
                # ENOBUFS: the socket goes on, with what comes from now on.
                lost = True
                continue
            pid = executed(data)
            if pid is not None:
                pids.add(pid)

    def close(self) -> None:
        """Give the socket back; the kernel ceases to tell."""
        self._socket.close()


def _wrapped(asked: bytes) -> bytes:
    size = _NETLINK.size + _MESSAGE.size + len(asked)
    head = _NETLINK.pack(size, _DONE, 0, 0, 0)
    return head + _MESSAGE.pack(_PROC, _PROC, 0, 0, len(asked), 0) + asked


def executed(data: bytes) -> int | None:
    """The process of an event, where it is the start of a program."""
    if len(data) < _BEGINS + _EVENT.size + _PIDS.size:
        return None
    what, _, _ = _EVENT.unpack_from(data, _BEGINS)
    if what != _EXEC:
        return None
    _, process = _PIDS.unpack_from(data, _BEGINS + _EVENT.size)
    return int(process)
