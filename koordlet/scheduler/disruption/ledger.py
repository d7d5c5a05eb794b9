"""The disruptions of one budget: a sliding log.

Covers: what counts in a window, once for each UID; what is kept. Does not cover: which pods a
budget covers (``rate_book``), writing it down (``loop.disruption_rate_controller``).

Rules:
1. One that is exactly as old as the window counts no more.
2. A UID is in it once. One that lapsed, or was decided in shadow, gives way to what really happens.
3. What a mover in shadow decided counts for movers in shadow, and for nobody else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

from koordlet.kubeapi.disruption_rates import MOST_KEPT, Disruption


class DisruptionLedger:
    """Disruptions, the newest first."""

    def __init__(self) -> None:
        self._entries: list[Disruption] = []

    def __iter__(self) -> Iterator[Disruption]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, entry: Disruption) -> bool:
        """Debit a disruption; whether it is new (rule 2)."""
        known = self.get(entry.uid)
        if known is not None:
            if known.asked and not entry.asked:
                self.accept(entry.uid)  # it knows more of the cause
            if not (known.shadow or known.lapsed) or (entry.shadow and known.shadow):
                return False
            self._entries.remove(known)
        place = next(
            (place for place, other in enumerate(self._entries) if other.at <= entry.at),
            len(self._entries),
        )
        self._entries.insert(place, entry)
        return True

    def get(self, uid: str) -> Disruption | None:
        """The disruption of a pod; ``None`` where there is none."""
        return next((entry for entry in self._entries if entry.uid == uid), None)

    def merge(self, stored: Iterable[Disruption]) -> None:
        """Take in what a status has; it may have been written by another replica."""
        for entry in stored:
            known = self.get(entry.uid)
            if known is None:
                self.add(entry)
            elif entry.lapsed and not known.lapsed and entry.at == known.at:
                self.lapse(entry.uid)

    def accept(self, uid: str) -> bool:
        """The server has accepted an eviction that was asked for; whether it was in here."""
        return self._put(uid, lambda entry: dataclasses.replace(entry, asked=False))

    def lapse(self, uid: str) -> bool:
        """Credit a disruption that did not come about, and mark it."""
        return self._put(uid, lambda entry: dataclasses.replace(entry, lapsed=True))

    def _put(self, uid: str, change: Callable[[Disruption], Disruption]) -> bool:
        for place, entry in enumerate(self._entries):
            if entry.uid == uid:
                self._entries[place] = change(entry)
                return True
        return False

    def withdraw(self, uid: str) -> bool:
        """Remove an eviction that was asked for and refused; whether it was in here."""
        known = self.get(uid)
        if known is None or not known.asked:
            return False
        self._entries.remove(known)
        return True

    def counted(self, since: float, *, shadow: bool) -> list[Disruption]:
        """Those that count, later than a moment, the newest first (rules 1 and 3)."""
        return [
            entry
            for entry in self._entries
            if entry.at > since
            and entry.accepted
            and not entry.lapsed
            and (shadow or not entry.shadow)
        ]

    def prune(self, before: float) -> None:
        """Forget what limits nothing any more, and beyond ``MOST_KEPT`` what never counted."""
        self._entries = [entry for entry in self._entries if entry.at > before]
        for entry in reversed(self._entries.copy()):
            if len(self._entries) <= MOST_KEPT:
                return
            if not entry.accepted or entry.lapsed or entry.shadow:
                self._entries.remove(entry)
        del self._entries[MOST_KEPT:]
