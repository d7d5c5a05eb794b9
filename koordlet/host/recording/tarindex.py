"""A tar archive as a tree in memory: read once, checked while reading, never unpacked onto disk.

Covers: plain and gzip tar, the limits, the refusal of archives that are out to harm.
Does not cover: answering system calls from it (``archive``).

Rules:
1. Everything is refused with the reason and the member that gave it (``ConfigError``): names that
   are absolute or climb (``..``), links that climb out, devices and pipes, sparse files, members
   below something that is no directory, sizes that lie, and more of anything than the limits.
2. Sizes are checked before data is read, and decompressed bytes are counted below tarfile, which
   would otherwise trust the size of its own headers.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from dataclasses import field

from koordlet.host.fs import root
from koordlet.model import errors
from koordlet.model.record import dataclass

_GZIP = b"\x1f\x8b"
_OTHERS = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstd", b"PK\x03\x04": "zip"}
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """Limits of an archive: a 2 048-CPU machine with 5 000 cgroups stays far below."""

    entries: int = 200_000
    file_bytes: int = root.MAX_READ
    total_bytes: int = 256 << 20
    #: Headers and padding included: a thousand bytes per entry beside the data.
    stream_bytes: int = 768 << 20


LIMITS = ArchiveLimits()


@dataclass(slots=True)
class ArchiveEntry:
    """A file, a directory or a symbolic link."""

    kind: root.FileKind
    inode: int
    mode: int = 0o755
    mtime: float = 0.0
    data: bytes = b""
    link: str = ""
    children: dict[str, ArchiveEntry] = field(default_factory=dict)


class _Stream(io.RawIOBase):
    """Counts what comes out of the decompressor."""

    def __init__(self, inner: io.BufferedIOBase, limit: int) -> None:
        super().__init__()
        self._inner = inner
        self._left = limit

    def read(self, size: int = -1) -> bytes:
        data = self._inner.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise tarfile.ReadError("it unpacks to more than a recording can contain")
        return data


class _Index:
    """The tree while it grows."""

    def __init__(self, name: str, limits: ArchiveLimits) -> None:
        self.name = name
        self.limits = limits
        self.top = ArchiveEntry(root.FileKind.DIRECTORY, inode=1)
        self._entries = 0
        self._bytes = 0
        # The same few values fill thousands of files.
        self._same: dict[bytes, bytes] = {}

    def add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self._count(member)
        parts = self._path(member, member.name, "has an absolute name or one with '..'")
        if not parts:
            return
        folder = self._folder(member, parts[:-1])
        entry = self._entry(archive, member, parts)
        before = folder.children.get(parts[-1])
        if before is not None and root.FileKind.DIRECTORY in (before.kind, entry.kind):
            if before.kind is not entry.kind:
                raise self.refuse(member, "occurs twice, once as a directory")
            return
        folder.children[parts[-1]] = entry

    def refuse(self, member: tarfile.TarInfo, why: str) -> errors.ConfigError:
        return errors.ConfigError(
            f"refused: member {member.name[:120]!r} {why}",
            culprit=self.name,
            fix="record it again with 'koordlet record'",
        )

    def _count(self, member: tarfile.TarInfo) -> None:
        self._entries += 1
        if self._entries > self.limits.entries:
            raise self.refuse(member, f"is one too many: the limit is {self.limits.entries}")
        if member.issparse():
            raise self.refuse(member, "is a sparse file")
        if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
            raise self.refuse(member, "is not a regular file")
        size = member.size if member.isreg() else 0
        if not 0 <= size <= self.limits.file_bytes:
            raise self.refuse(
                member, f"claims {member.size} bytes: the limit is {self.limits.file_bytes}"
            )
        self._bytes += size
        if self._bytes > self.limits.total_bytes:
            raise self.refuse(member, f"goes beyond {self.limits.total_bytes} bytes in total")

    def _path(self, member: tarfile.TarInfo, name: str, why: str) -> list[str]:
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name or len(parts) > _MAX_DEPTH:
            raise self.refuse(member, why)
        return parts

    def _folder(self, member: tarfile.TarInfo, parts: list[str]) -> ArchiveEntry:
        """The directory that holds the member, made where the archive leaves it out."""
        here = self.top
        for part in parts:
            below = here.children.get(part)
            if below is None:
                below = here.children[part] = ArchiveEntry(
                    root.FileKind.DIRECTORY, inode=self._inode()
                )
            if below.kind is not root.FileKind.DIRECTORY:
                raise self.refuse(member, f"lies below {part!r}, which is not a directory")
            here = below
        return here

    def _inode(self) -> int:
        self._entries += 1
        return self._entries

    def _entry(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, parts: list[str]
    ) -> ArchiveEntry:
        entry = ArchiveEntry(
            root.FileKind.FILE,
            inode=self._entries,
            mode=member.mode & 0o7777,
            mtime=float(member.mtime),
        )
        if member.isdir():
            entry.kind = root.FileKind.DIRECTORY
        elif member.issym():
            entry.kind, entry.link = root.FileKind.LINK, self._link(member, parts)
        elif member.islnk():
            entry.data = self._hard_link(member)
        else:
            data = self._data(archive, member)
            entry.data = self._same.setdefault(data, data)
        return entry

    def _data(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
        reader = archive.extractfile(member)
        data = reader.read() if reader is not None else b""
        if len(data) != member.size:
            raise self.refuse(member, f"claims {member.size} bytes and has {len(data)}")
        return data

    def _link(self, member: tarfile.TarInfo, parts: list[str]) -> str:
        """The link's text; an absolute one re-roots, one that climbs above the top is refused."""
        depth = 0 if member.linkname.startswith("/") else len(parts) - 1
        for step in member.linkname.split("/"):
            if step == "..":
                depth -= 1
            elif step not in ("", "."):
                depth += 1
            if depth < 0:
                raise self.refuse(member, f"links out of the tree: {member.linkname[:120]!r}")
        return member.linkname

    def _hard_link(self, member: tarfile.TarInfo) -> bytes:
        here = self.top
        for part in self._path(member, member.linkname, "is a hard link out of the tree"):
            below = here.children.get(part)
            if below is None:
                raise self.refuse(member, "is a hard link to a missing file")
            here = below
        if here.kind is not root.FileKind.FILE:
            raise self.refuse(member, "is a hard link to something other than a file")
        return here.data


_FIX = "give a directory with sys/ and proc/, or a .tar or .tar.gz of one"


def load(name: str, limits: ArchiveLimits = LIMITS) -> ArchiveEntry:
    """The top of the archive's tree; ``ConfigError`` when it is no archive or not a kind one."""
    index = _Index(name, limits)
    try:
        with open(name, "rb") as file:
            _fill(index, file)
    except errors.ConfigError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise errors.ConfigError(
                f"cannot be read: {error.strerror}", culprit=name, fix=_FIX
            ) from None
        raise _broken(name, str(error)) from None
    except (tarfile.TarError, EOFError, zlib.error, ValueError, ArithmeticError) as error:
        raise _broken(name, str(error)) from None
    except (LookupError, RecursionError, MemoryError) as error:
        raise _broken(name, f"its headers are malformed ({type(error).__name__})") from None
    return index.top


def _fill(index: _Index, file: io.BufferedReader) -> None:
    start = file.peek(8)[:8]
    for magic, kind in _OTHERS.items():
        if start.startswith(magic):
            raise _broken(index.name, f"it is {kind}, not .tar or .tar.gz")
    plain: io.BufferedIOBase = file
    if start.startswith(_GZIP):
        plain = gzip.GzipFile(fileobj=file)
    stream = _Stream(plain, index.limits.stream_bytes)
    with tarfile.open(fileobj=stream, mode="r|", errorlevel=2) as archive:
        for member in archive:
            index.add(archive, member)
            # tarfile remembers every member; we have our own index.
            archive.members.clear()  # type: ignore[attr-defined]


def _broken(name: str, why: str) -> errors.ConfigError:
    return errors.ConfigError(
        f"cannot be read as an archive: {why}",
        culprit=name,
        fix=_FIX,
    )
