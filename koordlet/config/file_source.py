"""The text of a configuration file, or a clear refusal.

Covers: everything that can be wrong with a file before its content matters: a directory, a FIFO,
a device, no permission, a giant, bytes that are not text.
Does not cover: YAML (``yaml_source``), noticing a change (``reloader``).
"""

from __future__ import annotations

import errno
import os
import stat

from koordlet.config import places
from koordlet.model import errors
from koordlet.model.record import dataclass

#: A real file is a few KiB.
MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a file, which changes with editing and replacing."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


def identity(path: str) -> Identity | None:
    """Identity by one ``stat``; ``None`` if the file cannot be examined."""
    try:
        return _identity(os.stat(path))
    except (OSError, ValueError):
        return None


def read(path: str) -> str | None:
    """The text; ``None`` where the file does not exist; ``ConfigError`` for all other trouble."""
    try:
        # Looked at before it is opened: opening some devices does something.
        _regular(os.stat(path), path)
        fd = open_unblocked(path)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise errors.ConfigError("not a file name", culprit=repr(path)) from error
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        _regular(os.fstat(fd), path)
        return _text(_bytes(fd), path)
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(fd)


def configured(path: str | None) -> tuple[str | None, str]:
    """Text and place of the configuration; ``None`` is the usual place, where none need be."""
    where = places.DEFAULT_PATH if path is None else path
    text = read(where)
    if text is None and path is not None:
        raise errors.ConfigError("no such file", culprit=where, fix="name an existing file")
    return text, where


def open_unblocked(path: str) -> int:
    """Open for reading. Should a FIFO have taken the file's place, this does not wait for it."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)


def _identity(stat_result: os.stat_result) -> Identity:
    return Identity(
        stat_result.st_ino, stat_result.st_size, stat_result.st_mtime_ns, stat_result.st_ctime_ns
    )


def _regular(stat_result: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(stat_result.st_mode):
        kinds = {
            stat.S_IFDIR: "a directory",
            stat.S_IFIFO: "a FIFO",
            stat.S_IFSOCK: "a socket",
            stat.S_IFCHR: "a device",
            stat.S_IFBLK: "a device",
        }
        kind = kinds.get(stat.S_IFMT(stat_result.st_mode), "something else")
        message = f"{kind}, not a regular file"
        raise errors.ConfigError(message, culprit=path, fix="name a YAML file")
    if stat_result.st_size > MAX_BYTES:
        raise _too_large(path, f"{stat_result.st_size} bytes")


def _bytes(fd: int) -> bytes:
    """Read at most one byte more than allowed: some files grow, some have no size."""
    parts: list[bytes] = []
    left = MAX_BYTES + 1
    while left > 0 and (part := os.read(fd, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _text(raw: bytes, path: str) -> str:
    if len(raw) > MAX_BYTES:
        raise _too_large(path, f"more than {MAX_BYTES} bytes")
    fix = "write plain UTF-8 text"
    if b"\0" in raw:
        line = raw.count(b"\n", 0, raw.index(b"\0")) + 1
        message = "a NUL byte: this is not a text file"
        raise errors.ConfigError(message, culprit=f"{path}:{line}", fix=fix)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8: this is not a text file"
        raise errors.ConfigError(message, culprit=f"{path}:{line}", fix=fix) from error


def _too_large(path: str, size: str) -> errors.ConfigError:
    message = f"{size}, more than the limit ({MAX_BYTES})"
    return errors.ConfigError(message, culprit=path, fix="name the right file")


def _unreadable(path: str, error: OSError) -> errors.ConfigError:
    fixes = {
        errno.EACCES: "make it readable for the agent's user, or run as root",
        errno.EPERM: "make it readable for the agent's user, or run as root",
        errno.ELOOP: "its symbolic links lead in a circle",
        errno.ENOTDIR: "a part of the path is a file",
    }
    message = f"cannot be read: {error.strerror or error}"
    return errors.ConfigError(message, culprit=path, fix=fixes.get(error.errno or 0, ""))
