"""Reads without an answer: the kernel returns neither content nor absence.

Covers: telling an answer from none, what was met since the last look began.
Does not cover: what holds meanwhile; that is for whoever read it before.

Rules:
1. Gone is what the kernel calls so: no such file, device or process. What a file never says
   (EINVAL, EOPNOTSUPP) is an answer, too, and so is that this process may not read it; but of a
   file that was read before, a right that was lost says nothing about what is there.
2. All else is silence: no descriptor (EMFILE, ENFILE) or memory (ENOMEM) was left for the question,
   or the file broke (EIO). What was read last holds then; what never was is unknown, and while
   anything is unknown nothing is put back.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeVar

from koordlet.model import absence, errors

T = TypeVar("T")

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.ESRCH})
_RIGHTS = frozenset({errno.EACCES, errno.EPERM})
#: Nothing is wrong with the file: the question itself found no room.
_SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
#: What a path is, or never says; EFBIG is our own refusal of a giant.
_NATURE = frozenset(
    {errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.EISDIR, errno.ELOOP}
    | {errno.ENAMETOOLONG, errno.EFBIG, errno.EROFS}
)


class Silence:
    """Unanswered reads of one machine since ``begin``."""

    def __init__(self) -> None:
        self._met: dict[str, absence.Unanswered] = {}
        #: Grows with each.
        self.count = 0

    def begin(self) -> None:
        """A new look begins."""
        if self._met:
            self._met = {}

    def met(self, error: OSError, *, known: bool = False, gap: bool = False) -> bool:
        """True if an error means no answer; it is remembered then.

        ``known``: it was read before, and that holds. ``gap``: nothing is decided by it alone.
        """
        number = error.errno or errno.EIO
        if number in _GONE or number in _NATURE or (number in _RIGHTS and not known):
            return False
        path = str(error.filename or "")
        self.count += 1
        self._met[path] = absence.Unanswered(path, number, held=known or gap)
        return True

    def pass_on(self, error: OSError, *, broken: bool = True) -> None:
        """Re-raise an error that means no answer: a caller holds the last answer.

        ``broken=False``: not where only this file is, and others tell as much.
        """
        if self.met(error, gap=True) and (broken or self.is_short(error.errno or 0)):
            raise error

    def answer(self, ask: Callable[[], T], otherwise: T, *, broken: bool = True) -> T:
        """What a read says, else ``otherwise``; no answer raises as ``pass_on`` does."""
        try:
            return ask()
        except OSError as error:
            self.pass_on(error, broken=broken)
            return otherwise

    def held(self, ask: Callable[[], T], last: T, otherwise: T) -> T:
        """What a read says; where it gets no answer, what it said ``last``."""
        try:
            return ask()
        except OSError as error:
            return last if self.met(error, known=bool(last)) else otherwise

    @staticmethod
    def is_short(number: int) -> bool:
        """True if the process or machine lacks resources for a read."""
        return number in _SHORT

    def problem(self) -> errors.HostError:
        """Error for a read that needs an answer and has never had one."""
        met = self.so_far()
        more = f" and {len(met) - 1} more reads" if len(met) > 1 else ""
        return errors.HostError(
            f"the kernel does not answer ({errors.errno_name(met[0].errno)}) to this{more}",
            culprit=met[0].path,
            fix=met[0].fix,
            errno=met[0].errno,
        )

    def so_far(self) -> tuple[absence.Unanswered, ...]:
        """All of this look, in the order in which it was met."""
        return tuple(self._met.values())
