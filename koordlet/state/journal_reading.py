"""Reading of a journal: its header, its entries and its damage. Pure.

Covers: headers, folding, entries that cannot be ours. Does not cover: one record
(``state.records``), what follows for the file (``state.journal``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from koordlet.model import cgroup
from koordlet.model.record import dataclass
from koordlet.state import records

#: Copies of the header.
HEADERS = 2

#: Why an entry cannot be ours, whatever it says; empty where it may be.
Refusal = Callable[[records.Entry], str]


def never(_entry: records.Entry) -> str:
    """Every entry may be ours."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A parsed journal."""

    #: ``None`` where there is none that is whole: then it is no journal.
    header: Mapping[str, object] | None = None
    entries: dict[str, records.Entry] = field(default_factory=dict)
    #: What was skipped, and why.
    damage: tuple[str, ...] = ()
    #: Records, damaged ones with them.
    count: int = 0

    @property
    def format(self) -> int:
        """The version of the format; 0 without a header."""
        found = None if self.header is None else self.header["format"]
        return found if isinstance(found, int) else 0

    def is_of(self, stamp: Mapping[str, str]) -> bool:
        """Whether this boot of this machine wrote it."""
        header = self.header or {}
        return all(header.get(key) == value for key, value in stamp.items())


def read(raw: bytes, refusal: Refusal = never) -> Reading:
    """Read it; what is damaged or cannot be ours costs itself."""
    lines = [(n, line) for n, line in enumerate(raw.split(b"\n"), 1) if line]
    facts = [(number, records.parse(line)) for number, line in lines]
    # One more: a damaged byte may have become a newline.
    first = [record for _, record in facts[: HEADERS + 1] if record is not None]
    header = next((record for record in first if _is_header(record)), None)
    if header is None:
        return Reading(count=len(facts))
    entries: dict[str, records.Entry] = {}
    damage = [
        f"line {number}: damaged record skipped"
        for number, record in facts
        if record is None or not ("format" in record or records.fold(entries, record))
    ]
    for entry in tuple(entries.values()):
        if why := refusal(entry):
            del entries[entry.target]
            damage.append(f"entry skipped: {why}")
    return Reading(header=header, entries=entries, damage=tuple(damage), count=len(facts))


def _is_header(record: Mapping[str, object]) -> bool:
    """What is below no cgroup root that there can be is none of ours."""
    root = record.get("root", "")
    below = isinstance(root, str) and (not root or cgroup.is_plain(root))
    return type(record.get("format")) is int and below
