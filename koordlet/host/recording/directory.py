"""A recorded tree below a directory: the same answers as the machine, read-only, never left.

Covers: the read calls of the port on plain files, links re-rooted at the directory.
Does not cover: archives (``archive``), finding the recorded root (``roots``).
"""

from __future__ import annotations

import errno
import os
import stat

from koordlet.host.fs import root

_MAX_LINKS = 40
#: Names that are no entry of a directory.
_SPECIAL = frozenset({"", ".", ".."})


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


class DirHost(ReadOnly, root.DiskRoot):
    """A recorded tree below a directory. Read-only; its links stay inside it.

    It is taken as unchanging in what is a directory and what a link: each directory is looked at
    once, so that a file costs what it costs on the live host.
    """

    def __init__(self, directory: str) -> None:
        self.directory = os.path.realpath(directory)
        #: Directories of the machine to where they are on this disk, all links resolved.
        self._known: dict[str, str] = {"": self.directory}

    def content(self, path: root.HostPath, limit: int) -> bytes:
        folder, _, name = path.rpartition("/")
        known = self._known.get(folder)
        if name in _SPECIAL:
            handle = os.open(self._where(path), root.READ)
        else:
            handle = self._open_plain(path, f"{known or self._folder(folder)}/{name}")
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise root.fail(errno.EINVAL, path)
            if status.st_size > limit:
                raise root.fail(errno.EFBIG, path)
            data = os.read(handle, (status.st_size or limit) + 1)
            # Below /proc and /sys the size says nothing: there, read until the end.
            while len(data) != status.st_size and len(data) <= limit:
                more = os.read(handle, limit + 1 - len(data))
                if not more:
                    break
                data += more
        finally:
            os.close(handle)
        if len(data) > limit:
            raise root.fail(errno.EFBIG, path)
        return data

    def list(self, path: root.HostPath) -> list[str]:
        here = self._folder(path)
        names: list[str] = []
        with os.scandir(here) as entries:
            for entry in entries:
                names.append(entry.name)
                if entry.is_dir(follow_symlinks=False):
                    self._known[f"{path}/{entry.name}"] = f"{here}/{entry.name}"
        return sorted(names)

    def _open_plain(self, path: root.HostPath, here: str) -> int:
        """Open what is probably no link; a link takes the long way."""
        try:
            return os.open(here, root.READ | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return os.open(self._where(path), root.READ)

    def _where(self, path: root.HostPath, *, follow: bool = True) -> str:
        folder, _, name = path.rpartition("/")
        if name in _SPECIAL:
            return self._walk(path, follow=follow)
        here = f"{self._folder(folder)}/{name}"
        if follow and os.path.islink(here):
            return self._walk(path, follow=True)
        return here

    def _folder(self, path: str) -> str:
        """Path of a directory; only directories are cached."""
        known = self._known.get(path)
        if known is not None:
            return known
        above, _, name = path.rpartition("/")
        here = self._walk(path) if name in _SPECIAL else f"{self._folder(above)}/{name}"
        try:
            if stat.S_ISLNK(os.lstat(here).st_mode):
                here = self._walk(path)
            if stat.S_ISDIR(os.lstat(here).st_mode):
                self._known[path] = here
        except OSError:
            # What is not there is not remembered; whoever opens it hears of it.
            return here
        return here

    def _walk(self, path: str, *, follow: bool = True) -> str:
        """Walk the components, so that an absolute link re-roots at the recorded root."""
        todo = [part for part in path.split("/") if part][::-1]
        done: list[str] = []
        links = 0
        while todo:
            part = todo.pop()
            if part == ".":
                continue
            if part == "..":
                # At the root, ".." is the root itself, as for a process after chroot(2).
                del done[-1:]
                continue
            here = os.path.join(self.directory, *done, part)
            if (todo or follow) and os.path.islink(here):
                links += 1
                if links > _MAX_LINKS:
                    raise root.fail(errno.ELOOP, path)
                target = os.readlink(here)
                if target.startswith("/"):
                    done = []
                todo.extend(reversed([step for step in target.split("/") if step]))
                continue
            done.append(part)
        return os.path.join(self.directory, *done)
