"""A machine whose kernel gives no answer to some reads.

Covers: every call of the port that reads, answered with an errno where a test says so, and a record
of what was read. Does not cover: changes, which are the machine's own to refuse.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from koordlet.host.fs.root import HostPath, HostRoot, Stat, fail
from tests.kit import dying


class UnansweringHost(dying.DyingHost):
    """Wraps any host; while ``number`` is set, reads of ``paths`` (``None``: all) fail with it."""

    def __init__(self, inner: HostRoot) -> None:
        super().__init__(inner, after=1 << 30)
        #: The errno of reads, 0 while all are answered.
        self.number = 0
        #: Which paths are not answered; ``None``: none is.
        self.paths: frozenset[str] | None = None
        #: Everything that was read, in the order of the first time.
        self.read_so_far: dict[str, None] = {}
        self._handles: dict[int, HostPath] = {}

    def _ask(self, path: str) -> None:
        self.read_so_far[path] = None
        if self.number and (self.paths is None or path in self.paths):
            raise fail(self.number, path)

    def read(self, path: HostPath) -> bytes:
        self._ask(path)
        return super().read(path)

    def open(self, path: HostPath) -> int:
        self._ask(path)
        handle = super().open(path)
        self._handles[handle] = path
        return handle

    def pread(self, handle: int, size: int) -> bytes:
        self._ask(self._handles[handle])
        return super().pread(handle, size)

    def preads(self, handles: Sequence[int], size: int) -> list[bytes | None]:
        return HostRoot.preads(self, handles, size)

    def list(self, path: HostPath) -> list[str]:
        self._ask(path)
        return super().list(path)

    def stat(self, path: HostPath, *, follow: bool = True) -> Stat:
        self._ask(path)
        return super().stat(path, follow=follow)

    def readlink(self, path: HostPath) -> str:
        self._ask(path)
        return super().readlink(path)

    def statvfs(self, path: HostPath) -> os.statvfs_result:
        self._ask(path)
        return super().statvfs(path)
