"""DisruptionRates read a second time: one list of all that happened, counted for each question.

Covers: windows, percentages, ``minUp``, ``minGap``, ``reserve``, shares of components, groups.
Does not cover: the floor, defaults, every check that is no rate's.

It shares no code with the scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: ``(number, is a percentage)``.
Count = tuple[int, bool]


@dataclass
class Rate:
    """One object; ``app`` is empty where each controller has a ledger."""

    app: str
    limits: list[tuple[Count, int]]
    min_up: Count | None = None
    min_gap: int = 0
    reserve: int = 0


@dataclass
class Member:
    """A pod."""

    controller: str
    app: str
    up: bool = True
    ending: bool = False


@dataclass
class Naive:
    """Everything that ever happened."""

    replicas: dict[str, int]
    rates: list[Rate]
    shares: dict[str, int]
    background: set[str]
    background_share: int
    pods: dict[str, Member] = field(default_factory=dict)
    #: Time, pod as it was, component.
    history: list[tuple[int, Member, str]] = field(default_factory=list)

    def refusal(self, name: str, component: str, exempt: bool, now: int) -> str:
        """The reason; empty where it is allowed."""
        pod = self.pods[name]
        if pod.ending:
            return "Gone"
        covering = [rate for rate in self.rates if not rate.app or rate.app == pod.app]
        for rate in [] if exempt else covering:
            why = self._rate(rate, pod, component, now)
            if why:
                return why
        for rate in [] if exempt else covering:
            if self._over_share(rate, pod, component, now):
                return "Share"
        return ""

    def _expected(self, rate: Rate, pod: Member) -> int:
        if not rate.app:
            return self.replicas[pod.controller]
        controllers = {member.controller for member in self.pods.values() if member.app == rate.app}
        return sum(self.replicas[name] for name in controllers)

    def _same(self, rate: Rate, pod: Member, member: Member) -> bool:
        return member.app == rate.app if rate.app else member.controller == pod.controller

    def _used(self, rate: Rate, pod: Member, now: int, window: int) -> list[tuple[int, str]]:
        return [
            (at, component)
            for at, member, component in self.history
            if self._same(rate, pod, member) and now - at < window
        ]

    def _rate(self, rate: Rate, pod: Member, component: str, now: int) -> str:
        expected = self._expected(rate, pod)
        for count, window in rate.limits:
            allowed = _down(count, expected)
            if component in self.background:
                allowed -= rate.reserve
            if len(self._used(rate, pod, now, window)) >= max(0, allowed):
                return "RateSpent"
        if rate.min_up is not None and pod.up:
            number, percent = rate.min_up
            least = (number * expected + 99) // 100 if percent else number
            members = [member for member in self.pods.values() if self._same(rate, pod, member)]
            if sum(member.up and not member.ending for member in members) - 1 < least:
                return "BelowMinUp"
        if rate.min_gap and self._used(rate, pod, now, rate.min_gap):
            return "MinGap"
        return ""

    def _over_share(self, rate: Rate, pod: Member, component: str, now: int) -> bool:
        for count, window in rate.limits:
            whole = _down(count, self._expected(rate, pod))
            used = self._used(rate, pod, now, window)
            share = self.shares.get(component)
            if share is not None:
                part = max(1, whole * share // 100) if whole else 0
                if sum(by == component for _, by in used) >= part:
                    return True
            if component in self.background:
                part = max(1, whole * self.background_share // 100) if whole else 0
                if sum(by in self.background for _, by in used) >= part:
                    return True
        return False


def _down(count: Count, expected: int) -> int:
    number, percent = count
    return max(1, number * expected // 100) if percent else number
