"""Tokens that bring the replacement of an evicted pod to the front of the queue.

Covers: one for each eviction that asks for it, taken once. Does not cover: the order of the queue
(``framework.queue``).

Rules:
1. A token is the workload's: the replacement is a new pod, and bears no mark of the one before it.
2. The first pod of the workload that is created within ``SECONDS`` takes it.
3. Tokens are kept in memory, ``MOST`` at a time, the newest ones: a restart forgets them.
"""

from __future__ import annotations

from collections import deque

from koordlet.model import moment
from koordlet.scheduler.disruption.workloads import Signature

SECONDS, MOST = 900.0, 1024


class FrontTokens:
    """The tokens that nobody has taken yet, the oldest first."""

    def __init__(self) -> None:
        self._tokens: deque[tuple[Signature, float]] = deque(maxlen=MOST)

    def __len__(self) -> int:
        return len(self._tokens)

    def give(self, signature: Signature, at: float) -> None:
        """Leave a token for a workload, a pod of which began to end at a moment."""
        self._tokens.append((signature, at))

    def take(self, signature: Signature | None, created: str) -> bool:
        """Whether a pod that was created then has a token, which is its own from now on."""
        if signature is None or not self._tokens:
            return False
        try:
            born = moment.parse(created)
        except ValueError:
            return False
        for token in self._tokens:
            # Objects have whole seconds.
            if token[0] == signature and int(token[1]) <= born <= token[1] + SECONDS:
                self._tokens.remove(token)
                return True
        return False
