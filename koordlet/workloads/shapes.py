"""Readers of foreign JSON: invalid parts are reported and ignored.

Covers: single values, lists, tables, and records of a dataclass from a table of fields.
Does not cover: parsing text as JSON beyond ``parse``, what the values mean.

Rules:
1. One wrong field costs that field. Its problem names the path: ``ioCfg.readBPS: expected …``.
2. Keys match exactly first, then case-insensitively, as Go's decoder does; unknown keys are said.
3. ``null`` is "not said".
4. A reader raises ``ValueError`` for a value that it cannot take; nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from koordlet.model import cpuset, moment, quantity, surrogates

_T = TypeVar("_T")


class Problems(list[str]):
    """Problems, and the key paths of unreadable values."""

    def __init__(self) -> None:
        super().__init__()
        self.unread: list[tuple[str, ...]] = []


#: Reads one value; problems of parts of it are appended.
Reader = Callable[[object, list[str]], Any]
#: Field of the dataclass to (key in JSON, reader).
Fields = Mapping[str, tuple[str, Reader]]

#: What a text from outside may be at most: larger is no annotation (the API server takes 256 KiB).
MAX_TEXT = 256 << 10
_SHOWN = 40
_INT64 = 2**63


def parse(text: str) -> object:
    """Text as JSON; ``ValueError`` for what is none, or not finite, or nested beyond reason."""
    if len(text) > MAX_TEXT:
        msg = f"longer than {MAX_TEXT >> 10} KiB"
        raise ValueError(msg)
    return parse_bytes(text.encode(errors="surrogatepass"))


def parse_bytes(data: bytes, problems: list[str] | None = None) -> object:
    """A whole answer as JSON, however long; ``ValueError`` for what is none."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        mended = surrogates.mended(data)
        if mended == data:
            msg = f"not JSON: {error}"
            raise ValueError(msg) from error
    if problems is not None:
        problems.append(surrogates.SAID)
    return parse_bytes(mended)


def shown(value: object) -> str:
    """A value in a problem: short and printable."""
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return repr(short) if isinstance(value, str) else short


def plain(name: object) -> str:
    """A name in a problem, without quotes: short, and nothing that moves a terminal's cursor."""
    return "".join(one if one.isprintable() else "?" for one in str(name)[:_SHOWN])


def mapping(value: object) -> Mapping[str, object]:
    """A JSON object."""
    if not isinstance(value, dict):
        msg = f"expected an object, found {shown(value)}"
        raise ValueError(msg)
    return cast("Mapping[str, object]", value)


def find(body: Mapping[str, object], key: str) -> object:
    """Value of a key by rule 2; ``None`` if absent."""
    if key in body:
        return body[key]
    folded = key.casefold()
    return next((v for k, v in body.items() if str(k).casefold() == folded), None)


def integer(low: int = -_INT64, high: int = _INT64 - 1) -> Reader:
    """A whole number within bounds; ``1e3`` is one, too."""

    def read(value: object, problems: list[str]) -> int:
        del problems
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            msg = f"expected a whole number, found {shown(value)}"
            raise ValueError(msg)
        if not low <= value <= high:
            msg = f"expected {low} to {high}, found {shown(value)}"
            raise ValueError(msg)
        return int(value)

    return read


def number(low: float, high: float) -> Reader:
    """A number within bounds."""

    def read(value: object, problems: list[str]) -> float:
        del problems
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
        ):
            msg = f"expected a number from {low} to {high}, found {shown(value)}"
            raise ValueError(msg)
        return float(value)

    return read


def boolean(value: object, problems: list[str]) -> bool:
    """``true`` or ``false``."""
    del problems
    if not isinstance(value, bool):
        msg = f"expected true or false, found {shown(value)}"
        raise ValueError(msg)
    return value


def text(value: object, problems: list[str]) -> str:
    """Any text."""
    del problems
    if not isinstance(value, str):
        msg = f"expected a text, found {shown(value)}"
        raise ValueError(msg)
    return value


def choice(*words: str) -> Reader:
    """One of these words."""

    def read(value: object, problems: list[str]) -> str:
        found = text(value, problems)
        if found not in words:
            msg = f"expected one of {', '.join(map(repr, words))}, found {shown(found)}"
            raise ValueError(msg)
        return found

    return read


def units(value: object, problems: list[str]) -> int:
    """A quantity that is not negative, in whole units: ``"10M"``, ``"1Gi"`` or a number."""
    del problems
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        msg = f"expected a quantity, found {shown(value)}"
        raise ValueError(msg)
    found = quantity.units(value)
    if found < 0:
        msg = f"a quantity must not be negative, found {shown(value)}"
        raise ValueError(msg)
    return found


def cpus(value: object, problems: list[str]) -> cpuset.CPUSet | None:
    """A CPU list; a text without any CPU, such as a blank, is as if it were missing."""
    return cpuset.CPUSet.parse(text(value, problems)) or None


def listing(of: Reader) -> Reader:
    """A list as a tuple; an item that does not fit is left out."""

    def read(value: object, problems: list[str]) -> tuple[Any, ...]:
        if not isinstance(value, list):
            msg = f"expected a list, found {shown(value)}"
            raise ValueError(msg)
        found = (guarded(of, item, f"[{at}]", problems) for at, item in enumerate(value))
        return tuple(item for item in found if item is not None)

    return read


def table(of: Reader) -> Reader:
    """A JSON object of values of one kind; a value that does not fit is left out."""

    def read(value: object, problems: list[str]) -> dict[str, Any]:
        read_all = {
            str(key): guarded(of, item, str(key), problems) for key, item in mapping(value).items()
        }
        return {key: item for key, item in read_all.items() if item is not None}

    return read


def record(kind: Callable[..., _T], fields: Fields) -> Callable[[object, list[str]], _T]:
    """A dataclass; fields that do not fit keep their defaults. Missing required ones refuse it."""
    known = {key.casefold() for key, _ in fields.values()}

    def read(value: object, problems: list[str]) -> _T:
        body = mapping(value)
        problems.extend(
            f"{shown(key)} is not known" for key in body if str(key).casefold() not in known
        )
        found = {
            name: guarded(reader, find(body, key), key, problems)
            for name, (key, reader) in fields.items()
        }
        try:
            return kind(**{name: item for name, item in found.items() if item is not None})
        except TypeError as error:
            missing = [fields[name][0] for name, item in found.items() if item is None]
            msg = f"incomplete: {', '.join(missing)} missing"
            raise ValueError(msg) from error

    return read


def instant(value: object, problems: list[str]) -> float:
    """A time of RFC 3339 as Unix time; without a zone it is UTC."""
    found = text(value, problems)
    try:
        return moment.parse(found)
    except ValueError as error:
        msg = f"{shown(found)} is not a time"
        raise ValueError(msg) from error


def section(body: Mapping[str, object], key: str, problems: list[str]) -> Mapping[str, object]:
    """A JSON object below a key, empty where it is missing or none."""
    found: Mapping[str, object] | None = guarded(_mapping, find(body, key), key, problems)
    return found or {}


def _mapping(value: object, problems: list[str]) -> Mapping[str, object]:
    del problems
    return mapping(value)


def guarded(reader: Reader, value: object, where: str, problems: list[str]) -> Any:
    """Result of a reader; ``None`` for null and invalid values."""
    if value is None:
        return None
    inner = Problems()
    try:
        found = reader(value, inner)
    except ValueError as error:
        found = None
        inner.append(str(error))
        inner.unread.append(())
    problems.extend(f"{where[:_SHOWN]}: {problem}" for problem in inner)
    if isinstance(problems, Problems):
        problems.unread.extend((where, *path) for path in inner.unread)
    return found
