"""The clock of an API server, by the ``Date`` of its answers.

Covers: how far our clock may be from it. Does not cover: who goes by it (``kubeapi.objects.now``).

The server dates objects, and we compare: a clock of ours that is seconds ahead, or is set by hours,
would take new pods for old ones and end what has just begun.

Rules:
1. An answer bounds the server's time against our monotonic clock: its second lay somewhere between
   the question and the answer. Each answer narrows the bounds.
2. Our wall clock is believed within the bounds, and before the first answer.
3. An answer outside of the bounds says that the server's clock was set, or ours stood still: what
   was known before is the past.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from koordlet.http import message


class ServerClock:
    """The clock of one server."""

    def __init__(
        self, steady: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self.steady, self._wall = steady, wall
        #: The least and the most that the server's time is ahead of the monotonic clock.
        self._least, self._most = float("-inf"), float("inf")
        #: The date that was read last: a thousand answers a second have the same.
        self._read: tuple[str, float | None] = "", None

    def heard(self, asked: float, date: str) -> None:
        """Take in the date of an answer; ``asked``: monotonic, before the question was sent."""
        if date != self._read[0]:
            self._read = date, message.read_date(date)
        second = self._read[1]
        if second is None:
            return
        least, most = second - self.steady(), second + 1 - asked
        narrow = max(least, self._least), min(most, self._most)
        self._least, self._most = narrow if narrow[0] <= narrow[1] else (least, most)

    def now(self) -> float:
        """The server's time, in seconds since 1970."""
        steady = self.steady()
        return steady + min(max(self._wall() - steady, self._least), self._most)
