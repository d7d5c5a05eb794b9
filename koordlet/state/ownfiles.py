"""Files of our own, opened only where nobody else can have put them or can change them.

Covers: the directories that lead to them, owners, links, pipes, what is too large, JSON in them
that may be damaged or forged.
Does not cover: which files those are (``state.paths``), what is in them.

A program that can write to a directory can replace koordlet's files by links, pipes or its own, and
root writes to the kernel's files what the journal says.

Rules:
1. Every directory and link on the way belongs to root or to koordlet's user, and no other user can
   write there; above the last one a sticky bit is enough. Missing directories are made.
2. A file is opened without following links or waiting for a pipe, and used only if it is a regular
   file of root or koordlet's user that no other user can write.
3. A replacement is always a new file: the old name is removed first.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import json
import math
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from koordlet.model import errors

#: More than this is damage: the largest of our files, the journal of a full node, has 6 MB.
MOST = 64 << 20

_SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_CHUNK = 1 << 20
#: As many links as the kernel follows in one path.
_LINKS = 40
#: Numbers of groups below this one are the system's: /var/log is root:syslog, 0775, on Ubuntu.
_FIRST_USER_GROUP = 1000
_WAYS = {errno.ELOOP: "is a symbolic link", errno.ENXIO: "is a pipe or a socket"}


class UntrustedError(OSError):
    """A file or directory that others may have made or can change."""

    def __init__(self, path: Path, why: str, fix: str) -> None:
        super().__init__(errno.EPERM, why, str(path))
        self.fix = fix


def explained(error: OSError, what: str, *, culprit: Path, fix: str) -> errors.HostError:
    """What ends a start: what is not to be trusted, or what the system answered."""
    if not isinstance(error, UntrustedError):
        return errors.HostError.of(error, what, culprit=str(culprit), fix=fix)
    why, where = str(error.strerror), str(error.filename)
    return errors.HostError(why, culprit=where, fix=error.fix, errno=error.errno)


def directory(path: Path, *, make: bool = True) -> None:
    """Make it where it is missing; ``UntrustedError`` names what on the way is not to be trusted.

    It is checked after it was made: where somebody is faster, it is his. Without ``make`` a missing
    one raises ``FileNotFoundError``, once what is there has been checked.
    """
    for place, status in _way(path, make=make):
        _check_owner(place, status)
        if _others_write(place, status, ours=False) and not status.st_mode & stat.S_ISVTX:
            raise _writable(place)
    if _others_write(path, path.stat(), ours=True):
        raise _writable(path)


def open_file(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor of one of our files (rule 2). Not for ``O_TRUNC``, which comes before looks."""
    handle = _open(path, flags, mode)
    try:
        _check_file(path, os.fstat(handle), writing=flags & (os.O_WRONLY | os.O_RDWR) != 0)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _check_file(path: Path, stat_result: os.stat_result, *, writing: bool) -> None:
    if not stat.S_ISREG(stat_result.st_mode):
        raise _no_file(path, "is not a regular file")
    _check_owner(path, stat_result)
    if _others_write(path, stat_result, ours=True):
        raise _writable(path)
    if writing and stat_result.st_nlink > 1:
        raise _no_file(path, "has another hard link, and a write would change both")


def fresh(path: Path, mode: int = 0o600) -> int:
    """A descriptor of a new, empty file under this name (rule 3), to append to."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | _SAFE, mode)


def sync_directory(path: Path) -> None:
    """Make a rename or a new name in a directory survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, data: bytes) -> None:
    """All of it, in as many writes as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def read(path: Path, most: int = MOST) -> bytes:
    """All of one of our files; ``EFBIG`` where that is more than there can be."""
    handle = open_file(path, os.O_RDONLY)
    try:
        return _content(handle, path, most)
    finally:
        os.close(handle)


def _open(path: Path, flags: int, mode: int) -> int:
    try:
        return os.open(path, flags | _SAFE, mode)
    except OSError as error:
        if error.errno in _WAYS:
            raise _no_file(path, _WAYS[error.errno]) from error
        raise


def _content(handle: int, path: Path, most: int) -> bytes:
    parts = []
    left = most + 1
    while left and (part := os.read(handle, min(left, _CHUNK))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", str(path))
    return b"".join(parts)


def _way(path: Path, *, make: bool) -> Iterator[tuple[Path, os.stat_result]]:
    """Every directory and every link on the way to a directory, as the kernel goes it."""
    here, links = Path("/"), 0
    yield here, here.stat()
    todo = list(reversed(path.absolute().parts[1:]))
    while todo:
        step = todo.pop()
        if step == os.pardir:
            here = here.parent
            continue
        place = here / step
        status = _look(place, make=make)
        yield place, status
        if stat.S_ISDIR(status.st_mode):
            here = place
        elif not stat.S_ISLNK(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
        else:
            links += 1
            if links > _LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))
            target = place.readlink()
            here = Path("/") if target.is_absolute() else here
            todo += reversed(target.parts[target.is_absolute() :])


def _look(place: Path, *, make: bool) -> os.stat_result:
    try:
        return place.lstat()
    except FileNotFoundError:
        if not make:
            raise
        with contextlib.suppress(FileExistsError):
            place.mkdir(0o755)
        return place.lstat()


def _check_owner(place: Path, stat_result: os.stat_result) -> None:
    if stat_result.st_uid not in (0, os.geteuid()):
        why = f"belongs to uid {stat_result.st_uid}, who can replace files in it"
        raise UntrustedError(
            place, why, "set a directory that only you can write to with --state-dir"
        )


def _others_write(place: Path, stat_result: os.stat_result, *, ours: bool) -> bool:
    """Whether somebody beside root and us may write there by its mode.

    A list of access rights shows in the bits of the group as well.
    """
    if not stat_result.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or stat.S_ISLNK(stat_result.st_mode):
        return False
    if stat_result.st_mode & stat.S_IWOTH:
        return True
    if stat_result.st_gid == 0 or (
        not ours and stat_result.st_uid == 0 and stat_result.st_gid < _FIRST_USER_GROUP
    ):
        return _has_list(place)
    return not _is_private(stat_result.st_gid) or _has_list(place)


def _is_private(group: int) -> bool:
    """Whether a group is its user's alone, as where each user has one and the umask is 002."""
    try:
        user, group_entry = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return group_entry.gr_name == user.pw_name and set(group_entry.gr_mem) <= {user.pw_name}


def _has_list(place: Path) -> bool:
    """Whether there are rights beyond the mode; a file system without such lists has none."""
    try:
        return bool(os.getxattr(place, "system.posix_acl_access", follow_symlinks=False))
    except OSError:
        return False


def _writable(place: Path) -> UntrustedError:
    fix = f"chmod go-w {place}, if everything in it is yours, or set another --state-dir"
    return UntrustedError(place, "others can write to it and replace files in it", fix)


def _no_file(path: Path, why: str) -> UntrustedError:
    return UntrustedError(
        path,
        f"{why}, and none of koordlet's files",
        f"move {path} away, or set another --state-dir",
    )


# JSON ---------------------------------------------------------------------------------------------


#: Nothing that we write is nested half as deep; recursion over it must end well.
_DEPTH = 64
#: Inode numbers have 64 bits without a sign.
_LEAST, _MOST = -(1 << 63), 1 << 64


def load_json(data: bytes) -> object:
    """Load a document; ``ValueError`` where koordlet cannot have written it."""
    try:
        document: object = _DECODER.decode(data.decode())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    _check_depth(document)
    return document


def _whole(text: str) -> int:
    # As many characters as such a number may have: longer ones are not even converted.
    number = int(text) if len(text) <= 20 else _MOST
    if not _LEAST <= number < _MOST:
        raise ValueError(f"a number beyond 64 bits: {text[:20]}…")
    return number


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"a number beyond range: {text[:20]}")
    return number


def _refuse(text: str) -> object:
    raise ValueError(f"not a number: {text}")


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=_refuse)


def _check_depth(document: object) -> None:
    level = [document]
    for _ in range(_DEPTH):
        level = [
            inner for each in level if isinstance(each, dict | list) for inner in _inside(each)
        ]
        if not level:
            return
    raise ValueError(f"nested more than {_DEPTH} deep")


def _inside(value: dict[str, object] | list[object]) -> list[object]:
    every = value.values() if isinstance(value, dict) else value
    return [each for each in every if isinstance(each, dict | list)]
