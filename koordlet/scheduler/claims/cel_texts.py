"""Functions of CEL over texts: places, parts, case, replacing, joining, patterns.

Covers: bounds and errors of each, and that no result is larger than an evaluation may pay for.
Places count characters, as in Python.
"""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.claims import cel_regex, cel_values
from koordlet.scheduler.claims.cel_values import CostError, EvaluationError

_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
#: What Go's ``unicode.IsSpace`` says is space.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
#: A copied character costs a tenth.
_MOST_CHARACTERS = cel_values.COST_LIMIT * 10


def lower(text: str) -> str:
    """ASCII letters alone."""
    return text.translate(_LOWER)


def upper(text: str) -> str:
    """ASCII letters alone."""
    return text.translate(_UPPER)


def trim(text: str) -> str:
    """Without space around it."""
    return text.strip(_SPACE)


def char_at(text: str, place: int) -> str:
    """One character; none behind the last."""
    _check(place, len(text))
    return text[place : place + 1]


def index_of(text: str, part: str, begin: int = 0) -> int:
    """Where a part is first, from a place on; -1: nowhere, also behind the end."""
    if not part:
        return begin
    _check(begin, max(begin, 0))
    return text.find(part, begin)


def last_index_of(text: str, part: str, begin: int | None = None) -> int:
    """Where a part is last, no later than a place."""
    if begin is None:
        return _last(text, part)
    if not part:
        return begin
    _check(begin, max(begin, 0))
    return _last(text[: begin + len(part)], part) if begin < len(text) else -1


def _last(text: str, part: str) -> int:
    # From the front of both reversed: what Python does from the end may take text times part.
    place = text[::-1].find(part[::-1])
    return -1 if place < 0 else len(text) - len(part) - place


def substring(text: str, begin: int, end: int | None = None) -> str:
    """From a place to before another."""
    _check(begin, len(text))
    if end is None:
        return text[begin:]
    _check(end, len(text))
    if begin > end:
        raise EvaluationError(f"invalid substring range. start: {begin}, end: {end}")
    return text[begin:end]


def replace(text: str, old: str, new: str, most: int = -1) -> str:
    """A part by another one, so many times; fewer than none: everywhere."""
    times = text.count(old) if most < 0 else min(most, text.count(old))
    _pay(len(text) + times * len(new))
    return text.replace(old, new, times)


def split(text: str, separator: str, most: int = -1) -> list[str]:
    """Parts, so many at most; an empty separator gives characters."""
    if most == 0:
        return []
    if separator:
        return text.split(separator, -1 if most < 0 else most - 1)
    if most < 0 or most >= len(text):
        return list(text)
    return [*text[: most - 1], text[most - 1 :]]


def join(parts: list[Any], separator: str = "") -> str:
    """Texts one after the other."""
    if any(type(part) is not str for part in parts):
        raise EvaluationError("no such overload")
    _pay(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def matches(text: str, pattern: str) -> bool:
    """Whether a part of the text fits a regular expression."""
    return cel_regex.outcome(pattern).matches(text)


def steps(text: str, pattern: str, *_: int) -> int:
    """The most that :func:`matches` takes, or one part of the others; also of no pattern."""
    return cel_regex.outcome(pattern).steps(text)


def find(text: str, pattern: str) -> str:
    """The first part that fits a regular expression; empty where none does."""
    return next(cel_regex.outcome(pattern).parts(text), "")


def find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    """The parts that fit a regular expression, so many; fewer than none: all."""
    outcome, parts = cel_regex.outcome(pattern), list[str]()
    for part in outcome.parts(text):
        if len(parts) == most:
            break
        parts.append(part)
        # Each part may have led through the whole text.
        if len(parts) * outcome.steps(text) > cel_values.COST_LIMIT:
            raise CostError("actual cost limit exceeded")
    return parts


def _check(place: int, last: int) -> None:
    if not 0 <= place <= last:
        raise EvaluationError(f"index out of range: {place}")


def _pay(characters: int) -> None:
    if characters > _MOST_CHARACTERS:
        raise CostError("actual cost limit exceeded")


#: Beside the text (or the list) itself.
METHODS: tuple[cel_values.FunctionRow, ...] = (
    ("lowerAscii", ("string",), "string", lower),
    ("upperAscii", ("string",), "string", upper),
    ("trim", ("string",), "string", trim),
    ("charAt", ("string", "int"), "string", char_at),
    ("indexOf", ("string", "string"), "int", index_of),
    ("indexOf", ("string", "string", "int"), "int", index_of),
    ("lastIndexOf", ("string", "string"), "int", last_index_of),
    ("lastIndexOf", ("string", "string", "int"), "int", last_index_of),
    ("substring", ("string", "int"), "string", substring),
    ("substring", ("string", "int", "int"), "string", substring),
    ("replace", ("string", "string", "string"), "string", replace),
    ("replace", ("string", "string", "string", "int"), "string", replace),
    ("split", ("string", "string"), "list:string", split),
    ("split", ("string", "string", "int"), "list:string", split),
    ("join", ("list",), "string", join),
    ("join", ("list", "string"), "string", join),
)
