"""Agent lock: one agent per host; a second one is refused with the first one's PID.

Covers: the lock file. Does not cover: the claim on the cgroup tree (``host.cgroup.claim``), which
also holds between containers that do not share this directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from koordlet.model import errors
from koordlet.state import ownfiles


class Lock:
    """Held for as long as the process lives: the kernel drops it with the process."""

    def __init__(self, path: Path, describe: Callable[[str], str] = "pid {}".format) -> None:
        self.path = path
        self._describe = describe
        self._file: int | None = None

    def acquire(self) -> None:
        """Take it, or raise ``TakenError`` naming the holder."""
        try:
            ownfiles.directory(self.path.parent)
            handle = ownfiles.open_file(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise ownfiles.explained(
                error,
                "cannot make the lock file",
                culprit=self.path,
                fix="set a writable directory with --state-dir",
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 64, 0).decode("ascii", "replace").strip()
            os.close(handle)
            look = f"ps -fp {holder}" if holder else f"fuser -v {self.path}"
            raise errors.TakenError(
                f"another koordlet is running ({self._describe(holder or 'unknown')})",
                culprit=str(self.path),
                fix=f"stop it first, or look at it: {look}",
            ) from None
        pid_line = b"%d\n" % os.getpid()
        try:
            # In this order the file is never empty, and so its end is no reason to write it out.
            os.pwrite(handle, pid_line, 0)
            os.ftruncate(handle, len(pid_line))
        except OSError:
            # A full disk costs the name of the holder, not the lock; an earlier one's is wrong.
            with contextlib.suppress(OSError):
                os.ftruncate(handle, 0)
        self._file = handle

    def release(self) -> None:
        """Let go. The file stays: removing it would race with the next agent.

        What it says is worth nothing while nobody holds it, and nothing is written here: the disk
        may hang, and who leaves must not.
        """
        if self._file is not None:
            os.close(self._file)
            self._file = None
