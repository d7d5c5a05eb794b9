"""Named series and the windows that policies and reports ask for.

Covers: counters turned into rates, averages over a window. Does not cover: quantiles, which come
with the first policy that reads them.

Rules:
1. A counter that goes backwards (a group was made anew) starts over: no rate is ever negative.
2. A window is reported only when at least half of it is covered by samples.
"""

from __future__ import annotations

from koordlet.history import ring

#: Ten minutes of one sample a second.
_CAPACITY = 600


class History:
    """All series of this process."""

    def __init__(self) -> None:
        self._rates: dict[str, ring.Ring] = {}
        self._counters: dict[str, tuple[float, float]] = {}

    def count(self, name: str, at: float, total: float) -> None:
        """Take a reading of a growing counter; the series holds its rate per second."""
        before = self._counters.get(name)
        self._counters[name] = (at, total)
        if before is None or at <= before[0] or total < before[1]:
            return
        series = self._rates.setdefault(name, ring.Ring(_CAPACITY))
        series.append(at, (total - before[1]) / (at - before[0]))

    def rate(self, name: str, now: float, window: float) -> float | None:
        """The average rate over the window; ``None`` while less than half of it is covered."""
        series = self._rates.get(name)
        if series is None:
            return None
        samples = list(series.since(now - window))
        if not samples or now - samples[-1][0] < window / 2 - 1e-9:
            return None
        return sum(value for _, value in samples) / len(samples)

    def last_rate(self, name: str) -> float | None:
        """The rate between the two newest readings."""
        series = self._rates.get(name)
        newest = series.last() if series is not None else None
        return newest[1] if newest is not None else None

    def forget(self, keep: set[str]) -> None:
        """Drop every series that is not in ``keep``: memory stays bounded by what exists."""
        for name in [name for name in self._counters if name not in keep]:
            del self._counters[name]
            self._rates.pop(name, None)
