"""Who is tried next: active, backing off, unschedulable, gated.

Covers: order, backoff, moving back. Does not cover: which event helps which pod (the caller's),
time (given with each call).

Order of the active ones: higher priority, then earlier creation, then earlier in the input.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from koordlet.scheduler.pods import Pod

#: Seconds: the first backoff, the longest, and how long a pod stays unschedulable at most.
FIRST, LONGEST, FORGOTTEN = 1.0, 10.0, 300.0

_Order = tuple[int, str, int]


class Queue:
    """Pods that wait for a node."""

    def __init__(self) -> None:
        self._active: list[tuple[_Order, int, Pod]] = []
        self._backoff: list[tuple[float, _Order, Pod]] = []
        self._waiting: dict[str, tuple[Pod, float]] = {}
        self.gated: dict[str, tuple[Pod, str]] = {}
        self._attempts: dict[str, int] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._active)

    def add(self, pod: Pod) -> None:
        """To be tried as soon as its turn comes."""
        self._serial += 1
        heapq.heappush(self._active, (_order(pod), self._serial, pod))

    def gate(self, pod: Pod, why: str) -> None:
        """Not to be tried until somebody adds it again."""
        self.gated[pod.key] = pod, why

    def pop(self, now: float = 0.0) -> Pod | None:
        """The next one; one that backs off only where nobody else is there."""
        self.flush(now)
        if self._active:
            return heapq.heappop(self._active)[2]
        return heapq.heappop(self._backoff)[2] if self._backoff else None

    def failed(self, pod: Pod, now: float) -> None:
        """No node was found: it waits for an event."""
        self._attempts[pod.key] = self._attempts.get(pod.key, 0) + 1
        self._waiting[pod.key] = pod, now

    def forget(self, pod: Pod) -> None:
        """It has a node, or is gone."""
        self._attempts.pop(pod.key, None)
        self._waiting.pop(pod.key, None)
        self.gated.pop(pod.key, None)

    def wake(self, helps: Callable[[Pod], bool], now: float) -> int:
        """Something happened: those that it may help are tried again, after their backoff."""
        woken = [pod for pod, _ in self._waiting.values() if helps(pod)]
        for pod in woken:
            _, since = self._waiting.pop(pod.key)
            until = expiry(since, self._attempts.get(pod.key, 0))
            if until >= math.floor(now):
                heapq.heappush(self._backoff, (until, _order(pod), pod))
            else:
                self.add(pod)
        return len(woken)

    def flush(self, now: float) -> None:
        """Whose backoff is over becomes active; who waited too long is tried again."""
        while self._backoff and self._backoff[0][0] < math.floor(now):
            self.add(heapq.heappop(self._backoff)[2])
        old = [key for key, (_, since) in self._waiting.items() if now - since > FORGOTTEN]
        for key in old:
            self.add(self._waiting.pop(key)[0])


def expiry(since: float, attempts: int) -> float:
    """When a pod's backoff ends, cut to whole seconds: 1, 2, 4, 8, 10, 10 … seconds later."""
    wait = min(FIRST * 2 ** min(attempts - 1, 10), LONGEST) if attempts else 0.0
    return float(math.floor(since + wait))


def _order(pod: Pod) -> _Order:
    return -pod.priority, pod.created or "~", pod.position
