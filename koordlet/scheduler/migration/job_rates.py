"""How often jobs of one workload, or of one namespace, may begin: the peer's token buckets.

Covers: what is left of a bucket after jobs that have begun, when the next may. Pure. Does not
cover: which jobs are counted (``arbitration``), the limiter of all evictions (``disruption``).

A bucket holds ``burst`` tokens, at first all of them; one comes back each ``period`` seconds.
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """One bucket, by the rate at which it fills."""

    #: Seconds until a token is there again.
    period: float
    burst: int = 1

    def wait(self, taken: Iterable[float], now: float) -> float:
        """Seconds until a token is there, after some were taken at these moments; 0: there is.

        A job that took none, because it passes, leaves an empty bucket as it is.
        """
        left, last = float(self.burst), now
        for moment in sorted(min(moment, now) for moment in taken):
            left = min(self.burst, left + max(0.0, moment - last) / self.period)
            last = moment
            if left >= 1:
                left -= 1
        left = min(self.burst, left + (now - last) / self.period)
        return 0.0 if left >= 1 else (1 - left) * self.period
