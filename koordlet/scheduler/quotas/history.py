"""What happened to quotas of late: when each was over its runtime, whom it refused or called back.

Covers: the newest periods and marks of each quota, for people. Does not cover: showing them
(``process.quota_json``); nothing decides by them.

Times are those of the loop's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from dataclasses import field
from enum import Enum

from koordlet.model.record import dataclass

#: Periods and marks that are kept of each quota.
KEPT = 20


class QuotaAct(Enum):
    """What a quota did to a pod."""

    REFUSED = "refused"
    CALLED_BACK = "called back"


@dataclass(frozen=True, slots=True)
class QuotaMark:
    """One pod that felt a quota."""

    at: float
    act: QuotaAct
    pod: str


@dataclass(slots=True)
class QuotaPast:
    """The past of one quota, the oldest first."""

    #: When it came to be over its runtime, and when it was within again; ``None``: it is over.
    over: deque[tuple[float, float | None]] = field(default_factory=lambda: deque(maxlen=KEPT))
    marks: deque[QuotaMark] = field(default_factory=lambda: deque(maxlen=KEPT))


class QuotaHistory:
    """The past of all quotas to which anything has happened."""

    def __init__(self) -> None:
        self._pasts: dict[str, QuotaPast] = {}

    def get(self, name: str) -> QuotaPast | None:
        """The past of a quota; ``None``: nothing has happened to it."""
        return self._pasts.get(name)

    def note_use(self, name: str, *, over: bool, now: float) -> None:
        """Record whether a quota uses more than it may."""
        past = self._pasts.get(name)
        began, ended = past.over[-1] if past is not None and past.over else (now, now)
        if over and ended is not None:
            self._past(name).over.append((now, None))
        elif past is not None and not over and ended is None:
            past.over[-1] = began, now

    def note_pod(self, name: str, pod: str, act: QuotaAct, now: float) -> None:
        """Record what a quota did to a pod; of equal marks the first stays."""
        marks = self._past(name).marks
        if not any(mark.pod == pod and mark.act is act for mark in marks):
            marks.append(QuotaMark(now, act, pod))

    def keep(self, names: Container[str]) -> None:
        """Forget quotas that are no more."""
        self._pasts = {name: past for name, past in self._pasts.items() if name in names}

    def _past(self, name: str) -> QuotaPast:
        return self._pasts.setdefault(name, QuotaPast())
