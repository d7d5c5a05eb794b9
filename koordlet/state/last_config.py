"""The last good configuration: the text of the file that an agent was ready with.

Covers: keeping it, reading it back as somebody who trusts only himself.
Does not cover: what is good (``config``), when it is used (``agent.bootstrap``).

It says what becomes root's decisions, so it is read like nothing else is believed: a regular file
of our own that nobody else may write, through no link, and no more of it than a configuration has.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from koordlet.state import checkpoint

#: A real file is a few KiB; more is not read (as of the configuration file itself).
MAX_BYTES = 1 << 20
#: A pipe must not be waited for, a terminal not become ours.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class UntrustedError(Exception):
    """The file exists but cannot be trusted as the last good configuration."""


def keep(path: Path, text: str) -> None:
    """Have it on disk, whole or not at all; ``OSError`` where that fails."""
    with contextlib.suppress(UntrustedError):
        if load(path) == text:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.write_atomically(path, text.encode("utf-8", "surrogateescape"))


def load(path: Path) -> str | None:
    """The text; ``None`` where there is none; ``UntrustedError`` for what may not be ours."""
    try:
        handle = os.open(path, _OPEN)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UntrustedError(f"{path}: {error.strerror or error}") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedError(f"{path}: not a regular file")
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise UntrustedError(f"{path}: others can write to it")
        with os.fdopen(handle, "rb", closefd=False) as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise UntrustedError(f"{path}: more than {MAX_BYTES} bytes")
        return raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UntrustedError(f"{path}: {error}") from error
    finally:
        os.close(handle)
