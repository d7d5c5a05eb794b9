"""Original cpusets that koordlet's sets go back to. Pure.

Covers: a value that policies may know, the same object while it says the same.
Does not cover: putting back (``apply.undoing``), which cuts them to what there is then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from koordlet.apply import undoing
from koordlet.model import cpuset, knob
from koordlet.state import journal


class Originals:
    """Original cpusets by cgroup; empty where there was none."""

    def __init__(self) -> None:
        self.sets: Mapping[str, cpuset.CPUSet] = {}
        self._groups: object = None

    def follow(
        self, entries: Mapping[str, journal.Entry], groups: Iterable[str] | None
    ) -> Mapping[str, cpuset.CPUSet]:
        """Update from the journal; ``groups`` is a new object whenever an entry came or went."""
        if groups is None or groups is not self._groups:
            self._groups = groups
            found = {
                entry.group: undoing.parsed(entry.original)
                for entry in entries.values()
                if entry.knob == knob.CPUSET_CPUS.name and entry.original is not None
            }
            self.sets = self.sets if found == self.sets else found
        return self.sets
