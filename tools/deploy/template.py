"""A manifest with conditions and values in it, written as a template of Helm.

Covers: the nodes that a manifest may have beside data, JSON patches under a condition, the text.
Does not cover: which manifests, conditions and values there are (``chart``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class If:
    """A value that is there while a condition holds."""

    condition: str
    value: Any


@dataclass(frozen=True, slots=True)
class Choice:
    """One of two values."""

    condition: str
    yes: Any
    no: Any


@dataclass(frozen=True, slots=True)
class Text:
    """A scalar that an expression gives."""

    expression: str


@dataclass(frozen=True, slots=True)
class Block:
    """A map or list that an expression gives.

    ``optional``: without its key where it is empty; ``text``: a string, which is YAML.
    """

    expression: str
    optional: bool = False
    text: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a template, as they are, in place of a value."""

    lines: tuple[str, ...]


def lines(node: Any, indent: int = 0) -> Iterator[str]:
    """The text of a map or a list, line by line."""
    pad = " " * indent
    match node:
        case dict():
            for key, value in node.items():
                yield from _entry(f"{pad}{json.dumps(key) if ' ' in key else key}:", value, indent)
        case list():
            for value in node:
                yield from _item(value, indent)
        case Lines():
            yield from (pad + line for line in node.lines)
        case _:
            yield pad + scalar(node)


def _entry(key: str, value: Any, indent: int) -> Iterator[str]:
    match value:
        case If():
            yield f"{' ' * indent}{{{{- if {value.condition} }}}}"
            yield from _entry(key, value.value, indent)
            yield f"{' ' * indent}{{{{- end }}}}"
        case Choice():
            yield f"{' ' * indent}{{{{- if {value.condition} }}}}"
            yield from _entry(key, value.yes, indent)
            yield f"{' ' * indent}{{{{- else }}}}"
            yield from _entry(key, value.no, indent)
            yield f"{' ' * indent}{{{{- end }}}}"
        case Block(optional=True):
            yield f"{' ' * indent}{{{{- with {value.expression} }}}}"
            yield f"{key} {{{{- toYaml . | nindent {indent + 2} }}}}"
            yield f"{' ' * indent}{{{{- end }}}}"
        case Block(text=True):
            yield f"{key} | {{{{- {value.expression} | nindent {indent + 2} }}}}"
        case Block():
            yield f"{key} {{{{- toYaml {value.expression} | nindent {indent + 2} }}}}"
        case str() if "\n" in value:
            yield f"{key} |"
            yield from (f"{' ' * (indent + 2)}{line}" for line in value.splitlines())
        case dict() | list() if value and _is_plain(value) and len(_flow(value)) < 76 - indent:
            yield f"{key} {_flow(value)}"
        case dict() | list() | Lines() if value:
            yield key
            yield from lines(value, indent + 2)
        case _:
            yield f"{key} {scalar(value)}"


def _item(value: Any, indent: int) -> Iterator[str]:
    pad = " " * indent
    if isinstance(value, If):
        yield f"{pad}{{{{- if {value.condition} }}}}"
        yield from _item(value.value, indent)
        yield f"{pad}{{{{- end }}}}"
    elif isinstance(value, dict | list) and not _is_plain(value):
        first, *rest = lines(value, indent + 2)
        if first.lstrip().startswith("{{"):
            raise ValueError(f"a condition cannot stand behind a dash: {first}")
        yield f"{pad}- {first.lstrip()}"
        yield from rest
    else:
        yield f"{pad}- {_flow(value)}"


def _is_plain(value: Any) -> bool:
    """Whether it is data that is short enough to stand in one line."""
    match value:
        case dict():
            return len(_flow_or_long(value)) < 100 and all(map(_is_plain, value.values()))
        case list():
            return len(_flow_or_long(value)) < 100 and all(map(_is_plain, value))
        case If() | Choice() | Block() | Lines():
            return False
        case str():
            return "\n" not in value
        case _:
            return True


def _flow_or_long(value: Any) -> str:
    try:
        return _flow(value)
    except TypeError:
        return " " * 100


def _flow(value: Any) -> str:
    """JSON, which is YAML too, with the expressions in it."""
    match value:
        case dict():
            return "{" + ", ".join(f"{k}: {_flow(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_flow, value)) + "]"
        case If() | Choice() | Block() | Lines():
            raise TypeError(value)
        case _:
            return scalar(value)


def scalar(value: Any) -> str:
    """One value; an expression quotes what it gives by itself."""
    if isinstance(value, Text):
        return f"{{{{ {value.expression} }}}}"
    if isinstance(value, str) and value and value.replace("-", "").replace(".", "").isalpha():
        return json.dumps(value) if value.lower() in _WORDS else value
    return json.dumps(value)


#: What YAML takes for something else than text.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def joined(written: Sequence[str]) -> list[str]:
    """Lines in which conditions that follow upon the same condition are one."""
    kept: list[str] = []
    opened: list[str] = []
    closed = ""
    for line in written:
        action = line.strip()
        if action.startswith(("{{- if ", "{{- with ", "{{- range ")) and "{{ end }}" not in action:
            opened.append(line)
            if line == closed:
                kept.pop()
                closed = ""
                continue
        closed = ""
        if action == "{{- else }}":
            opened[-1] = ""
        elif action == "{{- end }}":
            closed = opened.pop()
        kept.append(line)
    return kept


def patch(document: dict[str, Any], operations: Sequence[dict[str, Any]], condition: str) -> None:
    """Put a JSON patch into a document, in force while the condition holds."""
    for operation in operations:
        *way, last = operation["path"].strip("/").split("/")
        place: Any = document
        for name in way:
            place = place[int(name)] if isinstance(place, list) else place[name]
        value = operation["value"]
        if isinstance(place, list) and last == "-":
            place.append(If(condition, value))
        elif operation["op"] == "add" and last not in place:
            place[last] = If(condition, value)
        elif operation["op"] == "replace" and last in place:
            place[last] = Choice(condition, value, place[last])
        else:
            raise ValueError(f"{operation['op']} {operation['path']}: no condition can say this")
