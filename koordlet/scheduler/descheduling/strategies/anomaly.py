"""Whether a node is abnormal for good, or only at this moment: marks in a row.

Covers: one detector for each node. Does not cover: what is abnormal.

Rules:
1. ``abnormal`` marks in a row open a detector, ``normal`` ones in a row close it.
2. An open one that nobody marks for ``timeout`` seconds closes.
3. What nobody marked for ``memory`` seconds is forgotten.
"""

from __future__ import annotations

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalySettings:
    """How many marks in a row, and how long they hold; the peer means one more than it says."""

    abnormal: int = 5
    normal: int = 3
    timeout_seconds: float = 60.0


class _Marks:
    """The marks of one node."""

    def __init__(self, at: float) -> None:
        self.at, self.is_open = at, False
        self._abnormal = self._normal = 0

    def abnormal(self, now: float, most: int) -> bool:
        """Mark it as abnormal; whether it is for good."""
        self.at, self._normal = now, 0
        self._abnormal += 1
        self.is_open |= self._abnormal >= most
        return self.is_open

    def normal(self, now: float, most: int) -> bool:
        """Mark it as normal; whether that closes it."""
        self.at = now
        self._normal += 1
        if not self.is_open:
            self._abnormal = 0
        return self.is_open and self._normal >= most


class AnomalyDetectors:
    """The detectors of one pool of nodes, by name."""

    def __init__(self, settings: AnomalySettings, memory_seconds: float) -> None:
        self._settings, self._memory = settings, memory_seconds
        self._marks: dict[str, _Marks] = {}
        #: When old marks were last looked for: once a round, and not for each of its nodes.
        self._swept = float("-inf")

    def abnormal(self, name: str, now: float) -> bool:
        """Mark a node as abnormal; whether it is for good."""
        most = self._settings.abnormal
        return most <= 1 or self._current(name, now).abnormal(now, most)

    def normal(self, name: str, now: float) -> None:
        """Mark a node as normal."""
        if self._current(name, now).normal(now, self._settings.normal):
            self.reset(name)

    def reset(self, name: str) -> None:
        """A node is normal beyond doubt."""
        self._marks.pop(name, None)

    def _current(self, name: str, now: float) -> _Marks:
        """The marks of a node that still hold; what is old is forgotten for all."""
        if now != self._swept:
            self._swept = now
            old = [known for known, marks in self._marks.items() if now - marks.at > self._memory]
            for known in old:
                del self._marks[known]
        marks = self._marks.setdefault(name, _Marks(now))
        if marks.is_open and now - marks.at > self._settings.timeout_seconds:
            marks = self._marks[name] = _Marks(now)
        return marks
