"""Changes in directories since the last read, by inotify.

Covers: one inotify(7) instance: watches, and events as values. Does not cover: what follows from
them (``host.cgroup.tree``).

Kernel facts, tried on 6.1 and 6.18: cgroup directories report mkdir and rmdir of groups, and every
write(2) to a file in them, with its name. What the kernel changes by itself (effective sets after
hotplug) is not reported, nor is what happens through another superblock of the same tree (another
cgroup namespace), nor does who watches a single file hear that its group was removed: so whoever
relies on events looks again, slowly, too.
"""

from __future__ import annotations

import ctypes
import os
import struct

from koordlet.model.record import dataclass

_MODIFY = 0x002
_MOVED = 0x0C0
_CREATE = 0x100
_DELETE = 0x200
_OVERFLOW = 0x4000
_ONLYDIR = 0x0100_0000
_ISDIR = 0x4000_0000

_HEAD = struct.Struct("iIII")
#: A page for each read: some two hundred events.
_SIZE = 1 << 14


@dataclass(frozen=True, slots=True)
class InotifyEvent:
    """One inotify event."""

    #: What is watched, as ``add`` numbered it; -1 when events were lost: all may have changed.
    watch: int
    name: str
    #: A group came or went; else a file was written.
    directory: bool


class Inotify:
    """One instance; ``OSError`` as the system calls give it."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.handle = self._called(
            self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1"
        )

    def add(self, path: str) -> int:
        """Watch a directory; the same number for the same directory."""
        mask = _MODIFY | _MOVED | _CREATE | _DELETE | _ONLYDIR
        return self._called(
            self._libc.inotify_add_watch(self.handle, os.fsencode(path), mask), path
        )

    def add_file(self, path: str) -> int:
        """Watch one file for writes; its events have no name."""
        return self._called(
            self._libc.inotify_add_watch(self.handle, os.fsencode(path), _MODIFY), path
        )

    def remove(self, watch: int) -> None:
        """Watch it no more. It may be gone already."""
        self._libc.inotify_rm_watch(self.handle, watch)

    def drain(self) -> list[InotifyEvent]:
        """Everything since the last call, oldest first; never waits."""
        events: list[InotifyEvent] = []
        while True:
            try:
                data = os.read(self.handle, _SIZE)
            except BlockingIOError:
                return events
            events.extend(parse(data))

    def close(self) -> None:
        """Give the descriptor back, and all watches with it."""
        os.close(self.handle)

    @staticmethod
    def _called(answer: int, name: str) -> int:
        if answer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name)
        return answer


def parse(data: bytes) -> list[InotifyEvent]:
    """The events in what one read returned: whole records, each with a padded name."""
    events = []
    at = 0
    while at + _HEAD.size <= len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        name = data[at : at + length].split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
        at += length
        if mask & _OVERFLOW:
            events.append(InotifyEvent(-1, "", directory=True))
        elif mask & (_MODIFY | _MOVED | _CREATE | _DELETE):
            events.append(InotifyEvent(watch, name, directory=bool(mask & _ISDIR)))
    return events
