"""Errors that name whose fault it is, the culprit, and the fix.

Covers: the exceptions that cross a station. Does not cover: absence (``model.absence``): a vanished
group or a missing kernel feature is a value, not an exception.

Rules:
1. The class says whose fault it is: the operator (``ConfigError``), the kernel or the machine
   (``HostError``), us (``BugError``).
2. ``culprit`` is the thing to look at (a path, a field, a pod), ``fix`` what to do about it.
"""

from __future__ import annotations

import errno as errno_names
from collections.abc import Callable, Iterable

from koordlet.model import printable


class KoordletError(Exception):
    """The base: what happened, to what, and what to do about it."""

    #: Stable machine-readable name, printed as ``error.code`` with ``-o json``.
    code = "failed"
    #: Exit status of the command that dies of it.
    status = 1

    def __init__(self, message: str, *, culprit: str = "", fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.culprit = culprit
        self.fix = fix

    def __str__(self) -> str:
        return self._spelled(str)

    def printable(self) -> str:
        """The same for a terminal, which no name in it steers; a message keeps its lines."""
        return self._spelled(printable.escaped)

    def _spelled(self, spell: Callable[[str], str]) -> str:
        where = f"{spell(self.culprit)}: " if self.culprit else ""
        message = "\n".join(map(spell, self.message.split("\n")))
        what_now = f" ({spell(self.fix)})" if self.fix else ""
        return f"{where}{message}{what_now}"


class UsageError(KoordletError):
    """An invalid command line."""

    code = "usage"
    status = 2


class ConfigError(KoordletError):
    """Invalid input of the operator: a file, a field, a flag."""

    code = "config"
    status = 2


class HostError(KoordletError):
    """An error of the machine: a missing mount, a refused permission, a second agent."""

    code = "host"

    def __init__(
        self, message: str, *, culprit: str = "", fix: str = "", errno: int | None = None
    ) -> None:
        super().__init__(message, culprit=culprit, fix=fix)
        self.errno = errno

    @classmethod
    def of(cls, error: OSError, what: str, *, culprit: str, fix: str) -> HostError:
        """An error from an ``OSError``, such as ``cannot be read: Permission denied``."""
        message = f"{what}: {error.strerror or error}"
        return cls(message, culprit=culprit, fix=fix, errno=error.errno)


class TakenError(HostError):
    """Another koordlet holds what this one needs: it must end first."""


class BugError(KoordletError):
    """A bug in koordlet: a broken invariant."""

    code = "bug"


def errno_name(number: int | None) -> str:
    """``EINVAL`` for 22, the number itself where the platform has no name for it."""
    if number is None:
        return "?"
    return errno_names.errorcode.get(number, str(number))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    import difflib  # noqa: PLC0415 -- an agent that starts has nothing misspelled

    lowered = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(word.lower()[:200], lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else None


def suggest(word: str, known: Iterable[str], what: str) -> str:
    """``did you mean "X"?``, or the list where nothing is near."""
    choices = list(known)
    close = nearest(word, choices)
    if close is not None:
        return f'did you mean "{close}"?'
    return f"{what}: {', '.join(choices)}" if choices else ""
