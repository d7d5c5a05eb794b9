"""The standard streams as callers leave them: closed, full, unable to write every character.

Covers: three open descriptors, what becomes of a character and of a write that the other side does
not take. Does not cover: what is printed (``output``).

Rules:
1. Descriptors 0 to 2 are open before anything else is: otherwise a file that is opened later, such
   as one of a cgroup, gets the number of standard output, and what is printed goes there.
2. A character that the terminal's encoding lacks is a ``?``: a table with one is better than none.
3. A write to standard output that fails for another reason than a reader that has gone is an error
   of ours, with the reason.
4. A write to standard error that fails is forgotten: there is nobody to tell, and an agent does not
   end because its log is full, or because whoever read it did. Nor does a service wait for one who
   does not read on; others wait, as their reader may be ``less``.
5. What restores after a service waits for no reader at all, of standard output neither: its unit
   would never end.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any, cast

from koordlet.model import errors

#: Commands that stay, and have other things to do than to be read.
SERVICES = ("run", "scheduler", "descheduler", "webhook")
#: Options of a ``restore`` that a service manager runs once an agent has ended.
_AFTER = ("--after-", "--when-")
#: Bytes that a pipe with room takes at once.
_PAGE = 4096


class LostError(errors.HostError):
    """Output that could not be printed."""


class _Checked(io.FileIO):
    """A descriptor whose refusals name it."""

    def write(self, data: Any) -> int:
        """Write, and report a failure as ``LostError``."""
        try:
            return super().write(data)
        except (BrokenPipeError, BlockingIOError):
            raise
        except OSError as error:
            raise LostError(
                f"cannot be written: {error.strerror}",
                culprit="standard output",
                fix="the output is not complete",
                errno=error.errno,
            ) from error


class _Forgiving(io.FileIO):
    """A descriptor that takes everything."""

    def write(self, data: Any) -> int:
        """Write, and ignore a failure."""
        try:
            return super().write(data)
        except OSError:
            return memoryview(data).nbytes


class _Unwaiting(_Forgiving):
    """A descriptor that forgets what its reader does not take soon."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        from koordlet import log  # noqa: PLC0415 -- a service logs, a command seldom

        self._room = log.WriteRoom(number)

    def write(self, data: Any) -> int:
        """Write as much as fits where anything does."""
        whole = memoryview(data)
        return super().write(whole[:_PAGE]) if self._room.is_there() else whole.nbytes


def restores_after(words: Sequence[str]) -> bool:
    """Whether a command is the ``restore`` after a service."""
    return words[:1] == ["restore"] and any(word.startswith(_AFTER) for word in words)


def prepare(words: Sequence[str] = ()) -> None:
    """Make the process's streams so for a command; once, at its start."""
    after = restores_after(words)
    serves = after or bool(set(words[:1]).intersection(SERVICES))
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # A stream is None where its descriptor was closed.
    out = cast("io.TextIOWrapper | None", sys.stdout)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Unwaiting(1) if after else _Checked(1, "w", closefd=False)),
        encoding="utf-8" if out is None else out.encoding,
        errors="replace",
        line_buffering=out is not None and (out.line_buffering or out.write_through),
    )
    err = cast("io.TextIOWrapper | None", sys.stderr)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Unwaiting(2) if serves else _Forgiving(2, "w", closefd=False)),
        encoding="utf-8" if err is None else err.encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
    if sys.stdin is None:
        raw = io.FileIO(0, closefd=False)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8")


def drop() -> None:
    """Discard what is still to be written, as the reader has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
