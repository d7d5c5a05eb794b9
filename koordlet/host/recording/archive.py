"""A recorded machine in an archive: the same answers as a recorded directory.

Covers: the read calls of the port, answered from the index in memory, with the same link rules.
Does not cover: reading and checking the archive (``tarindex``), finding the recorded root in
it (``roots``).
"""

from __future__ import annotations

import errno
import os

from koordlet.host.fs import root
from koordlet.host.recording import directory, tarindex

_MAX_LINKS = 40


class ArchiveHost(directory.ReadOnly):
    """A machine below one directory of an archive. Read-only; links stay inside it."""

    def __init__(self, top: tarindex.ArchiveEntry) -> None:
        self._top = top
        self._open: dict[int, tarindex.ArchiveEntry] = {}
        self._next = 3

    def _find(self, path: root.HostPath, *, follow: bool = True) -> tarindex.ArchiveEntry:
        """Walk the components; absolute links start again at the top, ``..`` stops there."""
        todo = [part for part in path.split("/") if part][::-1]
        trail = [self._top]
        links = 0
        while todo:
            part = todo.pop()
            if part in (".", ".."):
                if part == ".." and len(trail) > 1:
                    trail.pop()
                continue
            here = trail[-1]
            if here.kind is not root.FileKind.DIRECTORY:
                raise root.fail(errno.ENOTDIR, path)
            below = here.children.get(part)
            if below is None:
                raise root.fail(errno.ENOENT, path)
            if below.kind is root.FileKind.LINK and (todo or follow):
                links += 1
                if links > _MAX_LINKS:
                    raise root.fail(errno.ELOOP, path)
                if below.link.startswith("/"):
                    del trail[1:]
                todo.extend(step for step in reversed(below.link.split("/")) if step)
                continue
            trail.append(below)
        return trail[-1]

    def _file(self, path: root.HostPath) -> tarindex.ArchiveEntry:
        entry = self._find(path)
        if entry.kind is root.FileKind.DIRECTORY:
            raise root.fail(errno.EISDIR, path)
        return entry

    def read(self, path: root.HostPath) -> bytes:
        return self._file(path).data

    def content(self, path: root.HostPath, limit: int) -> bytes:
        entry = self._find(path)
        if entry.kind is not root.FileKind.FILE:
            raise root.fail(errno.EINVAL, path)
        if len(entry.data) > limit:
            raise root.fail(errno.EFBIG, path)
        return entry.data

    def open(self, path: root.HostPath) -> int:
        entry = self._file(path)
        handle, self._next = self._next, self._next + 1
        self._open[handle] = entry
        return handle

    def pread(self, handle: int, size: int) -> bytes:
        entry = self._open.get(handle)
        if entry is None:
            raise root.fail(errno.EBADF, str(handle))
        return entry.data[:size]

    def close(self, handle: int) -> None:
        if self._open.pop(handle, None) is None:
            raise root.fail(errno.EBADF, str(handle))

    def list(self, path: root.HostPath) -> list[str]:
        entry = self._find(path)
        if entry.kind is not root.FileKind.DIRECTORY:
            raise root.fail(errno.ENOTDIR, path)
        return sorted(entry.children)

    def stat(self, path: root.HostPath, *, follow: bool = True) -> root.Stat:
        entry = self._find(path, follow=follow)
        below = entry.children.values()
        return root.Stat(
            kind=entry.kind,
            inode=entry.inode,
            links=2 + sum(child.kind is root.FileKind.DIRECTORY for child in below)
            if entry.kind is root.FileKind.DIRECTORY
            else 1,
            mode=entry.mode,
            size=len(entry.link or entry.data),
            mtime=entry.mtime,
        )

    def readlink(self, path: root.HostPath) -> str:
        entry = self._find(path, follow=False)
        if entry.kind is not root.FileKind.LINK:
            raise root.fail(errno.EINVAL, path)
        return entry.link

    def statvfs(self, path: root.HostPath) -> os.statvfs_result:
        raise root.fail(errno.ENOSYS, path)
