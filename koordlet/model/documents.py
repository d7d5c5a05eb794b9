"""JSON and YAML documents from untrusted text.

Covers: both forms, several documents, bounds on size, on nesting and on what aliases expand to.
Does not cover: reading a file, what a document means.

Facts: PyYAML builds what is nested by recursion in C, and a document that is nested deeply enough
ends the process (no exception comes). An alias costs a few bytes and stands for as much as one
likes, so nine lines can be a thousand million nodes. Its event parser does neither, so the events
are counted first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from koordlet.model import errors, surrogates

#: What to do about a file that holds something else.
FIX = "give kubectl's JSON or YAML"
#: Kubernetes objects nest fifteen deep; more than this is damage or an attack.
MAX_DEPTH = 100
#: Aliases may make a text so many times larger, and so much larger.
_FACTOR, _MORE = 10, 10_000


def of_file(raw: bytes, path: str, most: int, *, unique: bool = False) -> list[object]:
    """The documents of a file; ``ConfigError`` naming it where it holds none.

    The file was read up to one byte more than ``most``: a pipe or a device does not tell its size,
    and one byte is enough to know. ``unique``: YAML in which an object has a key twice is none.
    """
    if len(raw) > most:
        why = f"larger than {most >> 20} MiB"
        raise errors.ConfigError(why, culprit=path, fix="split the file")
    try:
        return load(raw.decode("utf-8-sig"), unique=unique)
    except ValueError as error:
        why = f"cannot be read: {error}" if isinstance(error, UnicodeDecodeError) else str(error)
        raise errors.ConfigError(why, culprit=path, fix=FIX) from error


def load(text: str, *, unique: bool = False) -> list[object]:
    """The documents; ``ValueError`` says in one line why there are none."""
    loaded = _load(text, unique=unique)
    return surrogates.whole(loaded) if surrogates.suspect(text) else loaded


def _load(text: str, *, unique: bool) -> list[object]:
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        pass
    # JSON, the usual case, does not pay for it.
    import yaml  # noqa: PLC0415

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _Bounds(unique=unique).walk(yaml.parse(text, Loader=loader))
        return list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}: " if mark is not None else ""
        raise ValueError(f"neither JSON nor YAML: {place}{first[:200]}") from error
    except (LookupError, AttributeError, TypeError, OverflowError) as error:
        # PyYAML lets out whatever a conversion stumbles over: ``!!int ""``, ``!!bool perhaps``.
        msg = "neither JSON nor YAML: a value is not what its tag (such as !!int) says"
        raise ValueError(msg) from error


class _Bounds:
    """Counts what the events of a text would become."""

    def __init__(self, *, unique: bool) -> None:
        self._unique = unique
        #: Of each open collection the keys so far, and whether a key comes next; no keys: a list.
        self._keys: list[tuple[set[str] | None, bool]] = []
        #: The anchor and the number of nodes of each collection that is open.
        self._open: list[tuple[str | None, int]] = []
        self._sizes: dict[str, int] = {}
        self._plain = self._whole = 0

    def walk(self, events: Iterable[Any]) -> None:
        """``ValueError`` where it would be too much."""
        for event in events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                self._sizes.clear()
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                self._open.append((event.anchor, 1))
                self._keys.append((set() if kind == "MappingStartEvent" else None, True))
                if len(self._open) > MAX_DEPTH:
                    raise ValueError(f"nested more than {MAX_DEPTH} deep")
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self._keys.pop()
                self._count(None, event)
                self._add(*self._open.pop())
            elif kind == "ScalarEvent":
                self._plain += 1
                self._count(event.value, event)
                self._add(event.anchor, 1)
            elif kind == "AliasEvent":
                if any(event.anchor == anchor for anchor, _ in self._open):
                    raise ValueError(f"{event.anchor} contains itself")
                self._count(None, event)
                self._add(None, self._sizes.get(event.anchor, 1))

    def _count(self, scalar: str | None, event: Any) -> None:
        """Note a node of the innermost mapping: its keys and values take turns."""
        keys, is_key = self._keys[-1] if self._keys else (None, False)
        if keys is None:
            return
        if is_key and scalar is not None:
            if self._unique and scalar in keys:
                raise ValueError(f"line {event.start_mark.line + 1}: the key {scalar!r} is twice")
            keys.add(scalar)
        self._keys[-1] = keys, not is_key

    def _add(self, anchor: str | None, size: int) -> None:
        if anchor is not None:
            self._sizes[anchor] = size
        if self._open:
            outer, so_far = self._open[-1]
            self._open[-1] = outer, so_far + size
        self._whole = max(self._whole, size)
        if self._whole > self._plain * _FACTOR + _MORE:
            raise ValueError("its aliases stand for far more than is written")
