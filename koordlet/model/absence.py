"""Absence as a value: vanished, unsupported or unanswered."""

from __future__ import annotations

import errno

from koordlet.model import errors
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Gone:
    """A file or group that vanished between listing and reading: normal, not an error."""

    path: str


@dataclass(frozen=True, slots=True, order=True)
class Unsupported:
    """A feature that this machine does not offer, found once at start and shown to the operator."""

    feature: str
    why: str

    def __str__(self) -> str:
        """The text for conditions."""
        return f"{self.feature}: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A call that has not returned: its newest result is old."""

    item: str
    #: How long it has not come back.
    seconds: float
    #: How much waits behind it.
    waiting: int = 0


_FIXES = {
    errno.EMFILE: "raise the limit of open files (LimitNOFILE=) of the agent",
    errno.ENFILE: "raise fs.file-max, or find the program that keeps so many files open",
    errno.ENOMEM: "the agent or the machine is out of memory: raise the agent's limit",
}


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A read that the kernel has not answered: the current value is unknown."""

    path: str
    errno: int
    #: What it said last holds, or nothing is decided by it alone; else it is unknown.
    held: bool

    @property
    def fix(self) -> str:
        """The remedy."""
        return _FIXES.get(self.errno, "dmesg may say what is wrong with it")

    def __str__(self) -> str:
        """The text for conditions."""
        return f"{self.path or 'a file'} ({errors.errno_name(self.errno)})"
