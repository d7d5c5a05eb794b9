"""Records of the journal: an entry and the facts about it, as a line and back; all of them. Pure.

Covers: what a line looks like, damaged ones, headers, folding facts into entries, entries that
cannot be ours.
Does not cover: the file (``state.journal``, which has the format's rules).
"""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import field
from json.encoder import encode_basestring_ascii as _quote
from typing import NamedTuple

from koordlet.model import cgroup
from koordlet.model.record import dataclass
from koordlet.state import ownfiles

#: An entry from as many values as it has: ``_make`` counts them.
_made = tuple.__new__


class Entry(NamedTuple):
    """One target that we changed and have not put back. A tuple: plans make a thousand at once."""

    kind: str
    target: str
    policy: str
    #: The text found before our first write; ``None`` when nothing was there, or nobody could read
    #: it: then there is nothing to put back.
    original: str | None
    #: Texts that are ours: the last one that was read back, and any that may be on its way.
    values: tuple[str, ...]
    knob: str = ""
    group: str = ""
    #: The group's inode: another group under the same path is none of our business.
    inode: int = 0
    unix_time: float = 0.0
    #: True once a value of ours was read back: until then the original there is nobody's answer.
    sure: bool = False
    #: Where a unit's properties were set: the unit, and what systemd said of each before.
    unit: str = ""
    properties: tuple[tuple[str, str], ...] = ()

    def holding(self, values: tuple[str, ...]) -> Entry:
        """The entry with other values."""
        return _made(Entry, (*self[:4], values, *self[5:]))

    def landed(self, value: str, inode: int) -> Entry:
        """The entry once a value was read back, in the group as it is now."""
        # By place: ``_replace`` takes four times as long.
        return _made(Entry, (*self[:4], (value,), *self[5:7], inode, self[8], True, *self[10:]))


def fold(entries: dict[str, Entry], record: Mapping[str, object]) -> bool:
    """Fold one record in; ``False`` when it makes no sense."""
    kind, body = next(iter(record.items()), ("", None))
    if not isinstance(body, dict) or not _fits(body):
        return False
    try:
        if kind == "intent":
            listed = {key: tuple(body[key]) for key in ("values", "properties") if key in body}
            entry = Entry(**{**body, **listed})
            entry = entry._replace(properties=tuple((a, b) for a, b in entry.properties))
            entries[entry.target] = entry
        elif kind == "done":
            before = entries[body["target"]]
            entries[before.target] = before.landed(body["value"], body["inode"])
        elif kind == "forget":
            entries.pop(body["target"], None)
        else:
            return False
    except (KeyError, TypeError, ValueError):
        return False
    return True


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _are_pairs(value: object) -> bool:
    return isinstance(value, list) and all(_are_texts(text) and len(text) == 2 for text in value)


#: What each field of a record is; each may stay away that ``Entry`` has a default for.
_FORMS: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("kind", "target", "policy", "knob", "group", "unit", "value"), _is_text),
    "original": lambda value: value is None or isinstance(value, str),
    "values": _are_texts,
    "properties": _are_pairs,
    "inode": lambda value: type(value) is int and value >= 0,
    "unix_time": lambda value: type(value) in (int, float),
    "sure": lambda value: isinstance(value, bool),
}


def _fits(body: Mapping[str, object]) -> bool:
    """Whether every field is one of a record, and of its form."""
    return all(key in _FORMS and _FORMS[key](value) for key, value in body.items())


#: All of a plan have one time.
_repr = functools.lru_cache(maxsize=16)(repr)
_encode = json.JSONEncoder(separators=(",", ":")).encode


def intent(entry: Entry) -> bytes:
    """An entry as a record; what is as usual is left out.

    Written out by hand: it is the dearest part of a plan, and an encoder takes four times as long.
    """
    # All of them at once: by name each takes as long as its quotes.
    kind, target, policy, was, values, knob, group, inode, at, sure, unit, properties = entry
    original = "null" if was is None else _quote(was)
    more = ',"sure":true' if sure else ""
    if unit:
        more += f',"unit":{_quote(unit)},"properties":{_encode(properties)}'
    return framed(
        f'{{"intent":{{"kind":{_quote(kind)},"target":{_quote(target)},'
        f'"policy":{_quote(policy)},"original":{original},'
        f'"values":[{",".join(map(_quote, values))}],"knob":{_quote(knob)},'
        f'"group":{_quote(group)},"inode":{inode},"unix_time":{_repr(at)}{more}}}}}'.encode()
    )


def line(record: Mapping[str, object]) -> bytes:
    """Any record."""
    return framed(_encode(record).encode())


def framed(body: bytes) -> bytes:
    """Its JSON between newlines, and what proves it."""
    return b"\n%s\t%08x\n" % (body, zlib.crc32(body))


def parse(line: bytes) -> Mapping[str, object] | None:
    """What a line says; ``None`` where it is damaged."""
    body, _, checksum = line.rpartition(b"\t")
    try:
        if int(checksum, 16) != zlib.crc32(body):
            return None
        record = ownfiles.load_json(body)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def done(target: str, value: str, inode: int) -> bytes:
    """A value that was read back, as a record."""
    line = f'{{"done":{{"target":{_quote(target)},"value":{_quote(value)},"inode":{inode}}}}}'
    return framed(line.encode())


# A whole journal ----------------------------------------------------------------------------------


#: Copies of the header.
HEADERS = 2

#: Why an entry cannot be ours, whatever it says; empty where it may be.
Refusal = Callable[[Entry], str]


def never(_entry: Entry) -> str:
    """Every entry may be ours."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A parsed journal."""

    #: ``None`` where there is none that is whole: then it is no journal.
    header: Mapping[str, object] | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    #: What was skipped, and why.
    damage: tuple[str, ...] = ()
    #: Records, damaged ones with them.
    count: int = 0

    @property
    def format(self) -> int:
        """The version of the format; 0 without a header."""
        version = None if self.header is None else self.header["format"]
        return version if isinstance(version, int) else 0

    def is_of(self, stamp: Mapping[str, str]) -> bool:
        """Whether this boot of this machine wrote it."""
        header = self.header or {}
        return all(header.get(key) == value for key, value in stamp.items())


def read(raw: bytes, refusal: Refusal = never) -> Reading:
    """Read it; what is damaged or cannot be ours costs itself."""
    lines = [(n, line) for n, line in enumerate(raw.split(b"\n"), 1) if line]
    facts = [(number, parse(line)) for number, line in lines]
    # One more: a damaged byte may have become a newline.
    first = [record for _, record in facts[: HEADERS + 1] if record is not None]
    header = next((record for record in first if _is_header(record)), None)
    if header is None:
        return Reading(count=len(facts))
    entries: dict[str, Entry] = {}
    damage = [
        f"line {number}: damaged record skipped"
        for number, record in facts
        if record is None or not ("format" in record or fold(entries, record))
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
