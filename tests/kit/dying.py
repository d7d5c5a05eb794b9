"""A machine that kills whoever works on it, between two changes of one's choice.

Covers: the proof that a process killed before or after any single change is repaired by the next
one. Does not cover: a change that is half done (the kernel's are atomic), losing our own files.
"""

from __future__ import annotations

import os

from koordlet.host.fs.root import HostPath, HostRoot, Stat


class Killed(BaseException):
    """The process ends here, as by SIGKILL: no ``except Exception`` sees it."""


class DyingHost(HostRoot):
    """Wraps any host; at the n-th write, mkdir or rmdir (from 1) it raises ``Killed``.

    ``done=False`` dies right before that change, ``done=True`` right after it. Once dead, every
    further change is refused the same way: a dead process makes none. Refused changes count too,
    because a process may be killed at those as well.
    """

    def __init__(self, inner: HostRoot, after: int, *, done: bool = False) -> None:
        self.inner = inner
        self.live = inner.live
        self.after = after
        self.done = done
        #: Changes asked for so far.
        self.count = 0

    def _step(self) -> bool:
        """Counts a change; True when this one still happens but is the last."""
        self.count += 1
        if self.count > self.after or (self.count == self.after and not self.done):
            raise Killed
        return self.count == self.after

    def write(self, path: HostPath, data: bytes) -> None:
        last = self._step()
        try:
            self.inner.write(path, data)
        finally:
            _die(last)

    def mkdir(self, path: HostPath) -> None:
        last = self._step()
        try:
            self.inner.mkdir(path)
        finally:
            _die(last)

    def rmdir(self, path: HostPath) -> None:
        last = self._step()
        try:
            self.inner.rmdir(path)
        finally:
            _die(last)

    def read(self, path: HostPath) -> bytes:
        return self.inner.read(path)

    def open(self, path: HostPath) -> int:
        return self.inner.open(path)

    def pread(self, handle: int, size: int) -> bytes:
        return self.inner.pread(handle, size)

    def close(self, handle: int) -> None:
        self.inner.close(handle)

    def list(self, path: HostPath) -> list[str]:
        return self.inner.list(path)

    def stat(self, path: HostPath, *, follow: bool = True) -> Stat:
        return self.inner.stat(path, follow=follow)

    def readlink(self, path: HostPath) -> str:
        return self.inner.readlink(path)

    def statvfs(self, path: HostPath) -> os.statvfs_result:
        return self.inner.statvfs(path)

    def access(self, path: HostPath, mode: int) -> bool:
        return self.inner.access(path, mode)

    def mount(self, source: str, target: HostPath, fstype: str, options: str) -> None:
        self.inner.mount(source, target, fstype, options)

    def unmount(self, target: HostPath) -> None:
        self.inner.unmount(target)


def _die(last: bool) -> None:
    if last:
        raise Killed
