"""Token budget that bounds how long a container may exceed its CPU limit.

Covers: the tokens of one container. Does not cover: what they are good for (``cpu_burst``).

A token is one percent of the limit for one second. Above its limit a container spends them, below
60 % of it saves them; there are never more than one period's worth of them, nor less than minus
that.

Koordinator's agent starts each container with a random part of up to half of the tokens, so that
they do not all burst at once. Here that part follows from the container's name: the same input
gives the same decision.
"""

from __future__ import annotations

import hashlib

from koordlet.model.record import dataclass

#: Percent of the limit below which tokens are saved.
_FRUGAL = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Burst rule: seconds at the highest burst, and its height in percent of the limit."""

    period: int
    percent: int

    @property
    def capacity(self) -> float:
        """The most tokens; negative where no burst is allowed at all."""
        return float(self.period * (self.percent - 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Tokens of one container."""

    tokens: float
    at: float
    capacity: float


def spend(rule: Rule, kept: Budget | None, name: str, at: float, percent: float) -> Budget:
    """The budget after using ``percent`` of the limit since it was looked at last.

    A budget that nobody looked at for two periods, or of another rule, starts anew.
    """
    most = max(rule.capacity, 0.0)
    expired = kept is not None and at - kept.at > 2 * rule.period
    if kept is None or expired or kept.capacity != rule.capacity:
        return Budget(tokens=most * _part(name), at=at, capacity=rule.capacity)
    seconds = max(at - kept.at, 0.0)
    tokens = kept.tokens
    if percent >= 100:
        tokens -= (percent - 100) * seconds
    elif percent < _FRUGAL:
        tokens += (100 - percent) * seconds
    return Budget(tokens=min(max(tokens, -most), most), at=at, capacity=rule.capacity)


def _part(name: str) -> float:
    """A fraction from 0 to 0.5 that depends on the name alone."""
    digest = hashlib.blake2b(name.encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**33
