"""Refusals of a recorded machine, which is read-only.

Covers: the writing calls of the port. Does not cover: reading (``directory``,
``archive``).
"""

from __future__ import annotations

import errno
import os

from koordlet.host.fs import root


class ReadOnly(root.HostRoot):
    """Refuses every change, as a file system that is mounted read-only."""

    def access(self, path: root.HostPath, mode: int) -> bool:
        return not mode & os.W_OK and self.exists(path)

    def write(self, path: root.HostPath, data: bytes) -> None:
        del data
        raise root.fail(errno.EROFS, path)

    def mkdir(self, path: root.HostPath) -> None:
        raise root.fail(errno.EROFS, path)

    def rmdir(self, path: root.HostPath) -> None:
        raise root.fail(errno.EROFS, path)

    def mount(self, source: str, target: root.HostPath, fstype: str, options: str) -> None:
        del source, fstype, options
        raise root.fail(errno.EROFS, target)

    def unmount(self, target: root.HostPath) -> None:
        raise root.fail(errno.EROFS, target)
