"""YAML text to plain values, each with its line and column.

Covers: the YAML that a configuration needs, and a refusal of everything else.
Does not cover: reading the file (``file_source``), what the keys mean (``schema``).

Rules:
1. Only events of the parser are used: no object is ever constructed from a tag, and nothing here
   recurses, so neither a tag nor the depth of a document can hurt.
2. Anchors, aliases, tags and several documents are refused: a configuration needs none, and an
   alias is how a small file becomes a large one.
3. Plain scalars follow YAML 1.2: ``off``, ``no`` and ``1:30`` are text, ``true`` is a boolean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any

import yaml

from koordlet.config import places
from koordlet.model import errors
from koordlet.model.record import dataclass

#: Sections nest four deep; more than this is damage or an attack.
MAX_DEPTH = 32
#: Far above any real file; bounds the memory that one file can cost.
MAX_VALUES = 50_000

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: What YAML does not let into a file, escapes aside.
_UNPRINTABLE = re.compile(
    "[^\\t\\n\\r\\x20-\\x7e\\x85\\xa0-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]"
)
_TEXT_FIX = "write plain UTF-8 text"

_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"[-+]?[0-9]{1,18}\Z")
_BASED = re.compile(r"0x[0-9a-fA-F]{1,15}\Z|0o[0-7]{1,20}\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?\Z")


@dataclass(slots=True)
class Document:
    """One parsed file: the values, where each is, and what was refused on the way."""

    #: ``None`` where the file holds nothing but comments.
    data: object = None
    values: dict[places.Loc, places.Mark] = field(default_factory=dict)
    keys: dict[places.Loc, places.Mark] = field(default_factory=dict)
    problems: list[errors.ConfigError] = field(default_factory=list)
    #: False where the rest could not be read: what is missing then may stand there.
    complete: bool = False


@dataclass(slots=True)
class _OpenMap:
    """A mapping that is being filled; ``key`` waits for its value."""

    loc: places.Loc
    into: dict[str, object]
    key: str | None = None

    def next_loc(self) -> places.Loc:
        return (*self.loc, self.key or "")

    def add(self, value: object) -> None:
        self.into[self.key or ""] = value
        self.key = None


@dataclass(slots=True)
class _OpenList:
    """A list that is being filled."""

    loc: places.Loc
    into: list[object]

    def next_loc(self) -> places.Loc:
        return (*self.loc, len(self.into))

    def add(self, value: object) -> None:
        self.into.append(value)


class _StopError(Exception):
    """The rest of the file cannot be judged any more."""


def parse(text: str, name: str, loader: Any = _LOADER) -> Document:
    """Read one document; problems are collected in it, never raised."""
    reader = _Reader(name)
    odd = _UNPRINTABLE.search(text)
    if odd is not None:
        line, column = text.count("\n", 0, odd.start()), text.rfind("\n", 0, odd.start()) + 1
        mark: Any = yaml.Mark(name, odd.start(), line, odd.start() - column, "", 0)
        message = f"character U+{ord(odd[0]):04X}: this is not a text file"
        reader.refuse(mark, message, _TEXT_FIX)
        return reader.document
    try:
        for event in _events(loader(text)):
            reader.take(event)
        reader.document.complete = True
    except _StopError:
        pass
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        what = " ".join(filter(None, (error.context, error.problem)))
        reader.refuse(at, _plain_words(what), _syntax_fix(text, at))
    except yaml.YAMLError as error:
        reader.refuse(None, _plain_words(str(error)), _TEXT_FIX)
    except (ValueError, OverflowError):
        # The pure-Python scanner meets an escape such as "\Uffffffff" this way.
        reader.refuse(None, "an escape sequence is not a character", _TEXT_FIX)
    return reader.document


def resolve(text: str) -> object:
    """The value of a plain scalar: null, a boolean, a number or the text itself."""
    value: object = text
    if _NULL.match(text):
        value = None
    elif _BOOL.match(text):
        value = text.lower() == "true"
    elif _INT.match(text):
        value = int(text)
    elif _BASED.match(text):
        value = int(text, 0)
    elif _FLOAT.match(text):
        value = float(text)
    return value


def _events(loader: Any) -> Iterator[Any]:
    try:
        while loader.check_event():
            yield loader.get_event()
    finally:
        loader.dispose()


class _Reader:
    """A stack of open collections, fed one event at a time."""

    def __init__(self, name: str) -> None:
        self.document = Document()
        self._name = name
        self._stack: list[_OpenMap | _OpenList] = []
        self._documents = 0
        self._count = 0

    def refuse(self, mark: Any, message: str, fix: str = "", loc: places.Loc = ()) -> None:
        """Note a problem at a mark of the parser."""
        where = f"{self._name}:{mark.line + 1}:{mark.column + 1}" if mark else self._name
        culprit = f"{where}: {places.dotted(loc)}" if loc else where
        self.document.problems.append(errors.ConfigError(message, culprit=culprit, fix=fix))

    def take(self, event: Any) -> None:
        """Handle one event."""
        mark = event.start_mark
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self.refuse(mark, "a second document starts here", "keep one document in the file")
                raise _StopError
        elif isinstance(event, yaml.CollectionEndEvent):
            self._stack.pop()
        elif isinstance(event, yaml.NodeEvent):
            self._node(event, mark)

    def _node(self, event: Any, mark: Any) -> None:
        self._count += 1
        if self._count > MAX_VALUES:
            self.refuse(mark, f"more than {MAX_VALUES} values", "this is not a configuration")
            raise _StopError
        if isinstance(event, yaml.AliasEvent):
            self.refuse(mark, f"aliases are not accepted: *{event.anchor}"[:80], "write it out")
            raise _StopError
        if event.anchor is not None:
            self.refuse(mark, f"anchors are not accepted: &{event.anchor}"[:80], "remove it")
        # "!" alone is the non-specific tag: it only says "not resolved".
        if event.tag not in (None, "!"):
            self.refuse(mark, f"tags are not accepted: {event.tag}"[:80], "remove it")
        top = self._stack[-1] if self._stack else None
        if isinstance(top, _OpenMap) and top.key is None:
            self._key(event, mark, top)
        else:
            self._value(event, mark)

    def _key(self, event: Any, mark: Any, top: _OpenMap) -> None:
        if not isinstance(event, yaml.ScalarEvent):
            self.refuse(mark, "a key must be a plain word, found a collection", "", top.loc)
            raise _StopError
        key = self._scalar(event)
        if not isinstance(key, str):
            # The text is kept as the key: the value below it is judged all the same.
            message = f"a key must be text, found {places.show(key)}"
            self.refuse(mark, message, f'quote it: "{event.value[:60]}"', top.loc)
            key = str(event.value)
        loc = (*top.loc, key)
        first = self.document.keys.get(loc)
        if first is not None:
            message = f"duplicate key, also on line {first.line}"
            self.refuse(mark, message, "remove one of the two", loc)
        top.key = key
        self.document.keys[loc] = places.Mark(mark.line + 1, mark.column + 1)

    def _value(self, event: Any, mark: Any) -> None:
        loc = self._stack[-1].next_loc() if self._stack else ()
        value: object
        opened: _OpenMap | _OpenList | None = None
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        elif len(self._stack) >= MAX_DEPTH:
            self.refuse(mark, f"nested more than {MAX_DEPTH} deep", "this is not a configuration")
            raise _StopError
        else:
            is_map = isinstance(event, yaml.MappingStartEvent)
            opened = _OpenMap(loc, {}) if is_map else _OpenList(loc, [])
            value = opened.into
        self.document.values[loc] = places.Mark(mark.line + 1, mark.column + 1)
        if self._stack:
            self._stack[-1].add(value)
        else:
            self.document.data = value
        if opened is not None:
            self._stack.append(opened)

    def _scalar(self, event: Any) -> object:
        if any("\ud800" <= c <= "\udfff" for c in event.value):
            self.refuse(event.start_mark, "an escape sequence is half a character")
            return ""
        return resolve(event.value) if event.implicit[0] else event.value


def _plain_words(text: str) -> str:
    words = " ".join(text.split())
    return f"not valid YAML: {words[:200]}"


def _syntax_fix(text: str, mark: Any) -> str:
    lines = text.split("\n")
    if mark is None or mark.line >= len(lines):
        return ""
    line = lines[mark.line]
    indent = line[: len(line) - len(line.lstrip())]
    return "indent with spaces, not with tabs" if "\t" in indent else ""
