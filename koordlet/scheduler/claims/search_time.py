"""The seconds that the searches of one look at nodes share, and the rest after too long a one.

Covers: when a search is given up, and in which words. Does not cover: the search (``allocator``).

Selectors are anybody's, and one evaluation within its cost limit may take a second: the time is
asked before each, so that a look lasts no longer than its seconds and one evaluation. A decision
looks several times. For as long as a look may last nothing is searched for after one that was
given up: a demand that takes too long has the loop for half of the time at most.
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.scheduler.claims.demand import AllocationError

#: Seconds for the searches of one look; what was found by then is kept.
MOST_SECONDS = 3.0


class SearchTime:
    """The time for searches; ``AllocationError`` where there is none."""

    def __init__(self, spent: Callable[[], float], most_seconds: float = MOST_SECONDS) -> None:
        self._spent, self._most = spent, most_seconds
        self._rests_until = spent()
        self._until = self._rests_until + most_seconds
        self._why = (
            f"the search for devices was given up after {most_seconds:g} s:"
            " too many devices to try, or selectors that take too long"
        )

    def begin(self) -> None:
        """Another look begins."""
        now = self._spent()
        if now < self._rests_until:
            raise AllocationError(self._why)
        self._until = now + self._most

    def check(self) -> None:
        """End the look where its time is over."""
        now = self._spent()
        if now <= self._until:
            return
        if now >= self._rests_until:
            self._rests_until = now + self._most
        raise AllocationError(self._why)
