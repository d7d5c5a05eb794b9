"""An inode tree in memory: directories, files with behaviour, plain texts, symbolic links.

Covers: names, path walks, inode numbers that are never used twice, what ``stat`` says.
Does not cover: what any file means (``group``, ``machine``), the port itself (``host``).

Errors raised here carry no file name: the port knows what was asked for and adds it.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Mapping

from koordlet.host.fs.root import FileKind

_MAX_LINKS = 40
#: One write to a kernel file takes at most a page unless the file says otherwise (fs/kernfs).
MAX_WRITE = 4096


def refused(number: int) -> OSError:
    """The kernel's no, without a name yet."""
    return OSError(number, os.strerror(number))


class Node:
    """Something that has a name and an inode number."""

    kind = FileKind.OTHER
    _inodes = itertools.count(1)

    def __init__(self, mode: int) -> None:
        self.inode = next(Node._inodes)
        self.mode = mode
        #: True once it was removed: handles on it answer ENODEV.
        self.gone = False

    @property
    def links(self) -> int:
        """``st_nlink``."""
        return 1


class File(Node):
    """A file that computes what it says and decides what it takes."""

    kind = FileKind.FILE

    def __init__(
        self,
        read: Callable[[], str] | None = None,
        write: Callable[[str], None] | None = None,
        *,
        mode: int | None = None,
        max_write: int = MAX_WRITE,
    ) -> None:
        super().__init__(mode if mode is not None else 0o644 if write else 0o444)
        self._read = read
        self._write = write
        self._max_write = max_write

    def read(self) -> bytes:
        """What a reader gets; a file that only takes answers EINVAL (``cgroup_seqfile_show``)."""
        self.check_alive()
        if self._read is None:
            raise refused(errno.EINVAL)
        return self._read().encode()

    def write(self, data: bytes) -> None:
        """Takes one write; an empty one changes nothing and is no error (``cgroup_file_write``)."""
        self.check_alive()
        if len(data) > self._max_write:
            raise refused(errno.E2BIG)
        if not data:
            return
        if self._write is None:
            raise refused(errno.EINVAL)
        # The kernel handles the buffer as a C string.
        self._write(data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape"))

    def check_alive(self) -> None:
        """ENODEV once the group or controller behind the file has gone."""
        if self.gone:
            raise refused(errno.ENODEV)


class Text(File):
    """A file with fixed content; tests may replace it. Writing is refused as in sysfs: EACCES."""

    def __init__(self, content: str) -> None:
        super().__init__(lambda: self.content, self._refuse, mode=0o444)
        self.content = content

    @staticmethod
    def _refuse(text: str) -> None:
        del text
        raise refused(errno.EACCES)


class Link(Node):
    """A symbolic link."""

    kind = FileKind.LINK

    def __init__(self, target: str) -> None:
        super().__init__(0o777)
        self.target = target


class Directory(Node):
    """A directory whose entries only the machine itself changes, such as those of sysfs."""

    kind = FileKind.DIRECTORY
    #: What mkdir and rmdir answer here.
    closed = errno.EPERM

    def __init__(self, entries: Mapping[str, Node] | None = None) -> None:
        super().__init__(0o755)
        self._entries: dict[str, Node] = dict(entries or {})

    @property
    def entries(self) -> Mapping[str, Node]:
        """Name to node."""
        return self._entries

    @property
    def links(self) -> int:
        return 2 + sum(isinstance(entry, Directory) for entry in self.entries.values())

    def put(self, name: str, node: Node) -> None:
        """The machine itself makes or replaces an entry."""
        self._entries[name] = node

    def drop(self, name: str) -> None:
        """The machine itself takes an entry away; handles on it answer ENODEV from now on."""
        self._entries.pop(name).gone = True

    def mkdir(self, name: str) -> None:
        """Makes a directory for whoever calls mkdir."""
        raise refused(errno.EEXIST if name in self.entries else self.closed)

    def rmdir(self, name: str) -> None:
        """Removes a directory for whoever calls rmdir."""
        entry = self.entries.get(name)
        if entry is None:
            raise refused(errno.ENOENT)
        raise refused(self.closed if isinstance(entry, Directory) else errno.ENOTDIR)


class ReadOnly(Directory):
    """A directory on a read-only mount, such as systemd's tmpfs at ``/sys/fs/cgroup`` (v1)."""

    closed = errno.EROFS


class Tree:
    """The whole file system of one machine."""

    def __init__(self) -> None:
        self.root = Directory()

    def find(self, path: str, *, follow: bool = True) -> Node:
        """The node at an absolute path; ENOENT, ENOTDIR, ELOOP as path_resolution(7)."""
        todo = [part for part in path.split("/") if part not in {"", "."}][::-1]
        trail: list[Directory] = []
        here: Node = self.root
        links = 0
        while todo:
            part = todo.pop()
            if not isinstance(here, Directory):
                raise refused(errno.ENOTDIR)
            if part == "..":
                here = trail.pop() if trail else self.root
                continue
            entry = here.entries.get(part)
            if entry is None:
                raise refused(errno.ENOENT)
            if isinstance(entry, Link) and (todo or follow):
                links += 1
                if links > _MAX_LINKS:
                    raise refused(errno.ELOOP)
                if entry.target.startswith("/"):
                    trail, here = [], self.root
                steps = [step for step in entry.target.split("/") if step not in {"", "."}]
                todo.extend(reversed(steps))
                continue
            trail.append(here)
            here = entry
        return here

    def directory(self, path: str) -> Directory:
        """The directory at a path; made with its parents when absent (by the machine itself)."""
        here = self.root
        for part in (part for part in path.split("/") if part):
            child = here.entries.get(part)
            if child is None:
                child = Directory()
                here.put(part, child)
            if not isinstance(child, Directory):
                msg = f"{part!r} in {path!r} is no directory"
                raise TypeError(msg)
            here = child
        return here

    def put(self, path: str, node: Node) -> None:
        """Places a node, making parent directories."""
        parent, _, name = path.rpartition("/")
        self.directory(parent).put(name, node)

    def text(self, path: str, content: str) -> None:
        """Places a fixed text."""
        self.put(path, Text(content))

    def computed(self, path: str, read: Callable[[], str]) -> None:
        """Places a text that is computed at each read."""
        self.put(path, File(read))
