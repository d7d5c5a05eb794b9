"""The only syscall port for kernel files, and the place where every kernel path is born.

Covers: the port (``HostRoot``), what all roots on a disk have in common.
Does not cover: this machine (``host.fs.live_host``), recordings (``host.recording``), our own files
(``state``).

Rules:
1. Paths are absolute, as on the machine that they come from: a recording of another machine speaks
   of ``/sys/...`` too. Only this module knows where such a path lives on this disk.
2. Methods raise ``OSError`` with errno and ``filename``; explaining it is the caller's job.
3. A write is one ``write(2)`` without ``O_CREAT``: cgroup and resctrl files take one value per
   call, and with ``O_CREAT`` a missing cgroup file answers EACCES instead of ENOENT.
4. What is recorded is read-only, and its symbolic links never lead out of it.
"""

from __future__ import annotations

import abc
import enum
import errno
import functools
import os
import stat as stat_bits
import typing
from collections.abc import Sequence
from itertools import repeat
from typing import NewType

from koordlet.host.fs import silence
from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    from koordlet.host.fs import inotify
    from koordlet.host.process import perf_events, scheduler_calls

#: An absolute path on the observed machine. Only ``HostRoot`` makes them.
HostPath = NewType("HostPath", str)

#: What one ``read`` returns at most: a recording with a larger kernel file is damaged.
MAX_READ = 16 << 20

CHUNK, PAGE = 1 << 16, 4096
#: Opening a pipe must not hang us; kernel files do not care.
READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class FileKind(enum.Enum):
    """File type of a path, by the kernel's mode bits."""

    FILE = stat_bits.S_IFREG
    DIRECTORY = stat_bits.S_IFDIR
    LINK = stat_bits.S_IFLNK
    OTHER = 0

    @classmethod
    def _missing_(cls, _: object) -> FileKind:
        return cls.OTHER


@dataclass(frozen=True, slots=True)
class Stat:
    """The part of ``struct stat`` that we use."""

    kind: FileKind
    inode: int
    #: On cgroup directories this changes with mkdir/rmdir of children; mtime does not.
    links: int
    mode: int
    size: int
    mtime: float


class HostRoot(abc.ABC):
    """One machine as we may touch it: births of paths, and the system calls on them."""

    #: True when these are the running kernel's files: only then may anything be enforced.
    live: bool = False

    @functools.cached_property
    def silence(self) -> silence.Silence:
        """The reads that got no answer."""
        return silence.Silence()

    @staticmethod
    def at(path: str) -> HostPath:
        """A path that the machine itself told us, such as a mount point in mountinfo."""
        if not path.startswith("/"):
            raise ValueError(f"not an absolute path: {path!r}")
        # Nearly none has a part that is empty or begins with a dot.
        odd = "//" in path or "/." in path or path.endswith("/")
        return HostPath(os.path.normpath("/" + path.lstrip("/")) if odd else path)

    def sys(self, *parts: str) -> HostPath:
        """Below ``/sys``."""
        return HostPath("/".join(("/sys", *parts)))

    def proc(self, *parts: str) -> HostPath:
        """Below ``/proc``."""
        return HostPath("/".join(("/proc", *parts)))

    def etc(self, *parts: str) -> HostPath:
        """Below ``/etc``."""
        return HostPath("/".join(("/etc", *parts)))

    @staticmethod
    def below(path: HostPath, *parts: str) -> HostPath:
        """A path below another one; empty parts are skipped."""
        return HostPath("/".join((path.rstrip("/"), *(part.strip("/") for part in parts if part))))

    @abc.abstractmethod
    def read(self, path: HostPath) -> bytes:
        """The whole file, at most ``MAX_READ`` bytes (``EFBIG`` beyond)."""

    @abc.abstractmethod
    def write(self, path: HostPath, data: bytes) -> None:
        """One ``write(2)`` of ``data``; a short write is ``EIO``."""

    def write_each(self, path: HostPath, lines: Sequence[bytes]) -> list[int]:
        """One ``write(2)`` of each line: its errno, 0 if taken. What cannot be opened raises."""
        answers = []
        for line in lines:
            try:
                self.write(path, line)
            except OSError as error:
                if error.errno == errno.ENOENT:
                    raise
                answers.append(error.errno or errno.EIO)
            else:
                answers.append(0)
        return answers

    def exchange(self, path: HostPath, data: bytes) -> bytes | OSError:
        """``write``, and what the file says right after; an error of reading only is a value."""
        self.write(path, data)
        try:
            return self.read(path)
        except OSError as error:
            return error

    @abc.abstractmethod
    def open(self, path: HostPath) -> int:
        """A handle for ``pread``, to be closed with ``close``."""

    @abc.abstractmethod
    def pread(self, handle: int, size: int) -> bytes:
        """Up to ``size`` bytes from the start. ``ENODEV`` once the group was removed."""

    def preads(self, handles: Sequence[int], size: int) -> list[bytes | None]:
        """Like ``pread`` for many handles; ``None`` for each that the kernel refused."""
        texts: list[bytes | None] = []
        for handle in handles:
            try:
                texts.append(self.pread(handle, size))
            except OSError:
                texts.append(None)
        return texts

    @abc.abstractmethod
    def close(self, handle: int) -> None:
        """Give a handle back."""

    @abc.abstractmethod
    def list(self, path: HostPath) -> list[str]:
        """The names in a directory, sorted."""

    @abc.abstractmethod
    def stat(self, path: HostPath, *, follow: bool = True) -> Stat:
        """Status of a path; ``follow=False`` examines a link itself."""

    def inode(self, path: HostPath) -> int:
        """The identity of what is there."""
        return self.stat(path).inode

    @abc.abstractmethod
    def readlink(self, path: HostPath) -> str:
        """The text of a symbolic link."""

    @abc.abstractmethod
    def mkdir(self, path: HostPath) -> None:
        """Make one directory."""

    @abc.abstractmethod
    def rmdir(self, path: HostPath) -> None:
        """Remove one empty directory."""

    @abc.abstractmethod
    def statvfs(self, path: HostPath) -> os.statvfs_result:
        """Space and inodes of the filesystem that holds the path."""

    @abc.abstractmethod
    def access(self, path: HostPath, mode: int) -> bool:
        """``access(2)``: whether we may read, write or search there; a read-only mount says no."""

    @abc.abstractmethod
    def mount(self, source: str, target: HostPath, fstype: str, options: str) -> None:
        """Mount a kernel filesystem."""

    @abc.abstractmethod
    def unmount(self, target: HostPath) -> None:
        """Unmount it again."""

    def events(self) -> inotify.Inotify:
        """A new instance of inotify(7); ``ENOSYS`` where nothing ever happens by itself."""
        raise fail(errno.ENOSYS, "inotify")

    def performance(self) -> perf_events.PerfEvents:
        """The processor's counters; ``ENOSYS`` where nothing runs that could be counted."""
        raise fail(errno.ENOSYS, "perf_event_open")

    def scheduler(self) -> scheduler_calls.SchedulerCalls:
        """The scheduler's calls; ``ENOSYS`` on a machine that is not running."""
        raise fail(errno.ENOSYS, "prctl, sched_setscheduler")

    def content(self, path: HostPath, limit: int) -> bytes:
        """A file that may be anything: ``EFBIG`` beyond ``limit``, ``EINVAL`` if it is no file.

        A pipe in a recording would wait, and a giant would swamp us; the kernel has neither.
        """
        if not self.live:
            stat = self.stat(path)
            if stat.kind is not FileKind.FILE:
                raise fail(errno.EINVAL, path)
            if stat.size > limit:
                raise fail(errno.EFBIG, path)
        data = self.read(path)
        if len(data) > limit:
            raise fail(errno.EFBIG, path)
        return data

    def text(self, path: HostPath) -> str:
        """The file as text; damage is kept visible as replacement characters."""
        return self.read(path).decode("utf-8", "replace")

    def exists(self, path: HostPath) -> bool:
        """True if the path exists, even if it cannot be read or does not answer."""
        try:
            self.stat(path)
        except OSError as error:
            return self.silence.met(error, gap=True)
        return True


def fail(number: int, path: str) -> OSError:
    """An ``OSError`` as the kernel would raise it."""
    return OSError(number, os.strerror(number), path)


class DiskRoot(HostRoot):
    """Base of the two roots on a disk: file calls over a path lookup."""

    @abc.abstractmethod
    def _where(self, path: HostPath, *, follow: bool = True) -> str:
        """Location of the path on this disk."""

    def read(self, path: HostPath) -> bytes:
        handle = os.open(self._where(path), READ)
        try:
            data = os.read(handle, PAGE)
            if len(data) < PAGE:
                # seq_file stops at a page, so a short read is no end: ask once more.
                rest = os.read(handle, PAGE)
                if not rest:
                    return data
                data += rest
            parts, total = [data], len(data)
            while more := os.read(handle, CHUNK):
                parts.append(more)
                total += len(more)
                if total > MAX_READ:
                    raise fail(errno.EFBIG, path)
            return b"".join(parts)
        finally:
            os.close(handle)

    def open(self, path: HostPath) -> int:
        return os.open(self._where(path), READ)

    def pread(self, handle: int, size: int) -> bytes:
        return os.pread(handle, size, 0)

    def preads(self, handles: Sequence[int], size: int) -> list[bytes | None]:
        try:
            return list(map(os.pread, handles, repeat(size), repeat(0)))
        except OSError:
            return super().preads(handles, size)

    def close(self, handle: int) -> None:
        os.close(handle)

    def list(self, path: HostPath) -> list[str]:
        return sorted(os.listdir(self._where(path)))

    def stat(self, path: HostPath, *, follow: bool = True) -> Stat:
        status = os.stat(self._where(path, follow=follow), follow_symlinks=follow)
        return Stat(
            kind=FileKind(stat_bits.S_IFMT(status.st_mode)),
            inode=status.st_ino,
            links=status.st_nlink,
            mode=stat_bits.S_IMODE(status.st_mode),
            size=status.st_size,
            mtime=status.st_mtime,
        )

    def inode(self, path: HostPath) -> int:
        return os.stat(self._where(path)).st_ino

    def readlink(self, path: HostPath) -> str:
        return os.readlink(self._where(path, follow=False))

    def statvfs(self, path: HostPath) -> os.statvfs_result:
        return os.statvfs(self._where(path))
