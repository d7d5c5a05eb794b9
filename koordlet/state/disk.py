"""Disk access in a thread of its own, with bounded waits in the loop.

Covers: one errand of each kind at a time, how long somebody waits for it, what does not come back.
Does not cover: what is written (``state.journal`` and others), the thread (``host.fs.worker``).

An ``fsync`` waits until the file system has committed, and a commit may have to write first what
everybody else has in memory: on a disk that a writer floods that takes minutes, in which the kernel
lets nobody go.

Rules:
1. A wait is bounded from the start of the errand: the loop does not wait again for a late one.
2. A running errand owns its files: their owner starts no other errand and buffers its writes.
3. The loop gets the result of an errand when it waits for it or collects it.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from koordlet.host.fs import worker
from koordlet.model import absence, errors

#: Seconds after the start of an errand that a pass waits for it at the most.
PATIENCE = 0.25
#: … and the first pass, one that puts back, and an end.
LONG = 2.0
#: … and a start, which can do nothing without knowing what was there before.
OPENING = 30.0
#: Seconds from which on an errand is worth a word.
LATE = 1.0

_STEPS = (1.0, 10.0, 60.0, 300.0, 1800.0)
FIX = (
    "put the state directory (--state-dir) on a disk of its own or on tmpfs, or limit who writes to"
    " this one"
)

#: Hears how an errand ended: nothing, or what the disk refused.
Then = Callable[[OSError | None], None]


class Disk:
    """What is asked of one place, in the order in which it was asked."""

    def __init__(
        self,
        place: Path,
        *,
        inline: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.place = place
        self._clock = clock
        self._worker: worker.Worker[bool] = worker.Worker(inline=inline, clock=clock)
        #: Errand to when it began, and who hears of its end.
        self._out: dict[str, tuple[float, Then]] = {}

    def ask(self, what: str, work: Callable[[], object], then: Then = lambda _: None) -> bool:
        """Begin an errand; ``False`` while one of that name is out, or the disk does not answer."""

        def call() -> bool:
            work()
            return True

        if what in self._out or not self._worker.submit(what, call):
            return False
        self._out[what] = (self._clock(), then)
        return True

    def wait(self, what: str, patience: float = OPENING) -> bool:
        """Whether it is over; waits no longer than so many seconds after it began."""
        if what not in self._out:
            return True
        began, _ = self._out[what]
        answer = self._worker.wait(what, began + patience - self._clock())
        if answer is None:
            return False
        self._over(what, answer)
        return True

    def does(self, what: str, work: Callable[[], object], patience: float) -> bool:
        """Whether it is done within so many seconds; ``OSError`` where the disk refuses."""
        refused: list[OSError | None] = []
        if not (self.wait(what, patience) and self.ask(what, work, refused.append)):
            return False
        done = self.wait(what, patience)
        for error in refused:
            if error is not None:
                raise error
        return done

    def do(self, what: str, work: Callable[[], object]) -> None:
        """What a start needs, in a time that ends; errors are raised here."""
        if not self.does(what, work, OPENING):
            raise errors.HostError(
                unanswered(self.place, what, OPENING),
                culprit=str(self.place),
                fix=FIX,
                errno=errno.ETIMEDOUT,
            )

    def out(self, what: str) -> bool:
        """Whether an errand of that name is on its way."""
        return what in self._out

    def collect(self) -> None:
        """Collect finished errands."""
        if self._out:
            for what, answer in self._worker.collect().items():
                self._over(what, answer)

    def late(self) -> absence.Stale | None:
        """The errand that is out for longest, where that is long."""
        if not self._out:
            return None
        what, (began, _) = next(iter(self._out.items()))
        seconds = self._clock() - began
        if seconds < LATE:
            return None
        return absence.Stale(item=what, seconds=seconds, waiting=len(self._out) - 1)

    def close(self, patience: float = LONG) -> bool:
        """Wait a little for what is out, and let the thread go; ``False`` where it does not come.

        It is left to the kernel then, with the files that it holds.
        """
        self.settle(patience)
        self._worker.close()
        return not self._out

    def settle(self, seconds: float) -> None:
        """Wait so long for everything that is out."""
        until = self._clock() + seconds
        for what in tuple(self._out):
            answer = self._worker.wait(what, until - self._clock())
            if answer is not None:
                self._over(what, answer)

    def _over(self, what: str, answer: worker.Answer[bool]) -> None:
        _, then = self._out.pop(what)
        if answer.error is not None and not isinstance(answer.error, OSError):
            raise answer.error
        then(answer.error)


def hanging(disks: Iterable[Disk]) -> str:
    """Describe a hanging disk and the remedy; empty where all disks answer."""
    late = [(stale, disk) for disk in disks if (stale := disk.late()) is not None]
    if not late:
        return ""
    stale, where = max(late, key=lambda each: each[0].seconds)
    # In steps, so that it is one message and not one for each tick.
    seconds = max((step for step in _STEPS if step <= stale.seconds), default=LATE)
    return f"{unanswered(where.place, stale.item, seconds)}; {FIX}"


def unanswered(place: Path, item: str, seconds: float) -> str:
    """The one sentence about it."""
    return f"the disk of {place} does not answer: more than {seconds:.0f} s for {item}"
