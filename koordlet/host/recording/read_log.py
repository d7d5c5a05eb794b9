"""A machine whose reads are written down: what was asked for, and what the answer was.

Covers: the reads of one machine, by path. Does not cover: what is done with them.

Whoever reads through it cannot write: every change is refused, as on a recorded machine.
"""

from __future__ import annotations

import errno
import os
import typing
from collections.abc import Callable, Sequence
from typing import TypeVar

from koordlet.host.fs import root
from koordlet.host.recording import directory

if typing.TYPE_CHECKING:
    from koordlet.host.fs import inotify
    from koordlet.host.process import perf_events, scheduler_calls

AnswerT = TypeVar("AnswerT")


class ReadLog(directory.ReadOnly):
    """Reads another machine and remembers each path with the errno of its last answer."""

    def __init__(self, inner: root.HostRoot) -> None:
        self._inner = inner
        self.live = inner.live
        #: Path to errno; 0 where the file was read.
        self.answers: dict[str, int] = {}
        self._opened: dict[int, root.HostPath] = {}

    def read(self, path: root.HostPath) -> bytes:
        return self._asked(path, lambda: self._inner.read(path))

    def open(self, path: root.HostPath) -> int:
        handle = self._asked(path, lambda: self._inner.open(path))
        self._opened[handle] = path
        return handle

    def pread(self, handle: int, size: int) -> bytes:
        return self._asked(self._opened[handle], lambda: self._inner.pread(handle, size))

    def preads(self, handles: Sequence[int], size: int) -> list[bytes | None]:
        texts = self._inner.preads(handles, size)
        for handle, text in zip(handles, texts, strict=True):
            self.answers[self._opened[handle]] = errno.ENODEV if text is None else 0
        return texts

    def close(self, handle: int) -> None:
        self._inner.close(handle)
        self._opened.pop(handle, None)

    def list(self, path: root.HostPath) -> list[str]:
        return self._asked(path, lambda: self._inner.list(path))

    def readlink(self, path: root.HostPath) -> str:
        return self._asked(path, lambda: self._inner.readlink(path))

    def stat(self, path: root.HostPath, *, follow: bool = True) -> root.Stat:
        return self._asked(path, lambda: self._inner.stat(path, follow=follow))

    def access(self, path: root.HostPath, mode: int) -> bool:
        return self._inner.access(path, mode)

    def statvfs(self, path: root.HostPath) -> os.statvfs_result:
        return self._inner.statvfs(path)

    def events(self) -> inotify.Inotify:
        return self._inner.events()

    def performance(self) -> perf_events.PerfEvents:
        return self._inner.performance()

    def scheduler(self) -> scheduler_calls.SchedulerCalls:
        return self._inner.scheduler()

    def _asked(self, path: root.HostPath, ask: Callable[[], AnswerT]) -> AnswerT:
        try:
            answer = ask()
        except OSError as error:
            self.answers[path] = error.errno or errno.EIO
            raise
        self.answers[path] = 0
        return answer
