"""Readers of foreign JSON: what does not fit is reported and left out.

Covers: bytes and texts as values, lists cut into their items; single values, lists, tables, and
records of a dataclass from a table of fields. Does not cover: what the values mean.

Rules:
1. One wrong field costs that field. Its problem names the path: ``ioCfg.readBPS: expected …``.
2. Keys of annotations, ConfigMaps and checkpoints match without regard to case, and the last one
   that says something counts, as in Go's decoder; unknown keys are reported. Keys of a map (names
   of resources, labels) are exact, and so are those of whole API objects: API machinery decodes
   these with regard to case.
3. ``null`` is "not said".
4. A reader raises ``ValueError`` for a value that it cannot take; nothing else.

msgspec is imported late: an agent without API objects reads no JSON of others.
"""

from __future__ import annotations

import datetime as dt
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from koordlet.model import cpuset, moment, quantity, surrogates

if typing.TYPE_CHECKING:
    import msgspec

_T = TypeVar("_T")


class Problems(list[str]):
    """Problems, and the key paths of unreadable values."""

    def __init__(self) -> None:
        super().__init__()
        self.unread: list[tuple[str, ...]] = []


class RawListing(Protocol):
    """A list whose items are left as they came."""

    items: list[msgspec.Raw] | None


RawListingT = TypeVar("RawListingT", bound=RawListing)

#: Reads one value; problems of parts of it are appended.
Reader = Callable[[object, list[str]], Any]
#: Key in JSON, and the reader of what stands there.
Field = tuple[str, Reader]

#: What a text from outside may be at most: larger is no annotation (the API server takes 256 KiB).
MAX_TEXT = 256 << 10
_SHOWN = 40
_INT64 = 2**63


def parse(text: str) -> object:
    """Text as JSON; ``ValueError`` for what is none, or not finite, or nested beyond reason."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"longer than {MAX_TEXT >> 10} KiB")
    return parse_bytes(text.encode(errors="surrogatepass"))


def parse_bytes(data: bytes, problems: list[str] | None = None) -> object:
    """A whole answer as JSON, however long; ``ValueError`` for what is none."""
    import msgspec  # noqa: PLC0415 -- see above

    value, mended = decode(msgspec.json.Decoder(), data)
    if mended and problems is not None:
        problems.append(surrogates.SAID)
    return value


def decode(decoder: msgspec.json.Decoder[_T], raw: bytes | msgspec.Raw) -> tuple[_T, bool]:
    """A value, and whether a text in it was mended; ``ValueError`` for what is no JSON.

    JSON that does not fit the decoder's type is a ``msgspec.ValidationError``.
    """
    import msgspec  # noqa: PLC0415 -- see above

    try:
        return decoder.decode(raw), False
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        mended = surrogates.mended(bytes(raw))
        if mended == bytes(raw):
            raise ValueError(f"not JSON: {error}") from error
    return decode(decoder, mended)[0], True


def split(
    decoder: msgspec.json.Decoder[RawListingT], data: bytes
) -> tuple[RawListingT, Sequence[bytes | msgspec.Raw]]:
    """A list and its items, each as it came, to be mended and reported by itself.

    ``ValueError`` for what is no list.
    """
    import msgspec  # noqa: PLC0415 -- see above

    try:
        try:
            spelled = data
            listing = decoder.decode(data)
        except msgspec.DecodeError:
            spelled = surrogates.spelled(data)
            listing = decoder.decode(spelled)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    items = listing.items or ()
    if spelled is data:
        return listing, items
    return listing, list(surrogates.parts(map(bytes, items), spelled, data))


def shown(value: object) -> str:
    """A value in a problem: short and printable."""
    text = value if isinstance(value, str) else repr(value)
    short = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return repr(short) if isinstance(value, str) else short


def plain(name: object) -> str:
    """A name in a problem, without quotes: short, and nothing that moves a terminal's cursor."""
    return "".join(char if char.isprintable() else "?" for char in str(name)[:_SHOWN])


def mapping(value: object) -> Mapping[str, object]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {shown(value)}")
    return cast("Mapping[str, object]", value)


def find(body: Mapping[str, object], key: str) -> object:
    """Value of a key by rule 2; ``None`` if absent."""
    folded = key.casefold()
    values = (value for name, value in body.items() if str(name).casefold() == folded)
    return next((value for value in reversed(list(values)) if value is not None), None)


def canonical(value: Any, structure: Any) -> Any:
    """A value whose keys are spelled as a structure spells them (rule 2).

    The structure maps each known name to what is below it; a list has the structure of its items.
    """
    if isinstance(structure, list) and isinstance(value, list):
        return [canonical(item, structure[0]) for item in value]
    if not isinstance(structure, dict) or not isinstance(value, dict):
        return value
    names = {name.casefold(): name for name in structure}
    body: dict[str, Any] = {}
    for key, item in value.items():
        name = names.get(str(key).casefold())
        if name is None:
            body[key] = item
        elif item is not None:
            body[name] = canonical(item, structure[name])
    return body


def integer(low: int = -_INT64, high: int = _INT64 - 1) -> Reader:
    """A whole number within bounds; ``1e3`` is one, too."""

    def read(value: object, problems: list[str]) -> int:
        del problems
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            raise ValueError(f"expected a whole number, found {shown(value)}")
        if not low <= value <= high:
            raise ValueError(f"expected {low} to {high}, found {shown(value)}")
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
            raise ValueError(f"expected a number from {low} to {high}, found {shown(value)}")
        return float(value)

    return read


def boolean(value: object, problems: list[str]) -> bool:
    """``true`` or ``false``."""
    del problems
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {shown(value)}")
    return value


def text(value: object, problems: list[str]) -> str:
    """Any text."""
    del problems
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {shown(value)}")
    return value


def choice(*words: str) -> Reader:
    """One of these words."""

    def read(value: object, problems: list[str]) -> str:
        word = text(value, problems)
        if word not in words:
            raise ValueError(f"expected one of {', '.join(map(repr, words))}, found {shown(word)}")
        return word

    return read


def units(value: object, problems: list[str]) -> int:
    """A quantity that is not negative, in whole units: ``"10M"``, ``"1Gi"`` or a number."""
    del problems
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected a quantity, found {shown(value)}")
    amount = quantity.units(value)
    if amount < 0:
        raise ValueError(f"a quantity must not be negative, found {shown(value)}")
    return amount


def cpus(value: object, problems: list[str]) -> cpuset.CPUSet | None:
    """A CPU list; a text without any CPU, such as a blank, is as if it were missing."""
    return cpuset.CPUSet.parse(text(value, problems)) or None


def listing(of: Reader) -> Reader:
    """A list as a tuple; an item that does not fit is left out."""

    def read(value: object, problems: list[str]) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"expected a list, found {shown(value)}")
        items = (guarded(of, item, f"[{at}]", problems) for at, item in enumerate(value))
        return tuple(item for item in items if item is not None)

    return read


def table(of: Reader) -> Reader:
    """A JSON object of values of one kind; a value that does not fit is left out."""

    def read(value: object, problems: list[str]) -> dict[str, Any]:
        read_all = {
            str(key): guarded(of, item, str(key), problems) for key, item in mapping(value).items()
        }
        return {key: item for key, item in read_all.items() if item is not None}

    return read


def record(
    record_class: Callable[..., _T], /, **fields: Field
) -> Callable[[object, list[str]], _T]:
    """A dataclass; fields that do not fit keep their defaults. Missing required ones refuse it."""
    known = {key.casefold(): (name, key, reader) for name, (key, reader) in fields.items()}

    def read(value: object, problems: list[str]) -> _T:
        arguments: dict[str, Any] = {}
        for spelled, item in mapping(value).items():
            if (row := known.get(str(spelled).casefold())) is None:
                problems.append(f"{shown(spelled)} is not known")
                continue
            name, key, reader = row
            if (argument := guarded(reader, item, key, problems)) is not None:
                arguments[name] = argument
        try:
            return record_class(**arguments)
        except TypeError as error:
            missing = [key for name, key, _ in known.values() if name not in arguments]
            raise ValueError(f"incomplete: {', '.join(missing)} missing") from error

    return read


def instant(value: object, problems: list[str]) -> float:
    """A time of RFC 3339 as Unix time; without a zone it is UTC. YAML may have read it."""
    spelled = value if isinstance(value, dt.datetime) else text(value, problems)
    try:
        return moment.parse(spelled)
    except ValueError as error:
        raise ValueError(f"{shown(spelled)} is not a time") from error


def section(body: Mapping[str, object], key: str, problems: list[str]) -> Mapping[str, Any]:
    """The object below a key of an API object, empty where it is missing or none."""
    value = body.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    problems.append(f"{key}: expected an object, found {shown(value)}")
    return {}


def sections(
    body: Mapping[str, object], key: str, problems: list[str]
) -> Iterator[Mapping[str, Any]]:
    """The objects of a list below a key of an API object."""
    items = body.get(key)
    if items is not None and not isinstance(items, list):
        problems.append(f"{key}: expected a list, found {shown(items)}")
        return
    for item in items or ():
        if isinstance(item, dict):
            yield item
        else:
            problems.append(f"{key}: expected an object, found {shown(item)}")


def texts(body: Mapping[str, object] | None, problems: list[str], what: str) -> dict[str, str]:
    """Labels or annotations; a number or a switch of a YAML file is read as JSON spells it."""
    result: dict[str, str] = {}
    for key, value in (body or {}).items():
        if isinstance(value, str):
            result[str(key)] = value
            continue
        problem = f"{what} {str(key)[:80]}: expected a text, found {shown(value)}"
        if value is None or isinstance(value, bool | int | float):
            spelled = "" if value is None else str(value)
            result[str(key)] = spelled.lower() if isinstance(value, bool) else spelled
            problem += f", read as {shown(result[str(key)])}"
        problems.append(problem)
    return result


def guarded(reader: Reader, value: object, where: str, problems: list[str]) -> Any:
    """Result of a reader; ``None`` for null and invalid values."""
    if value is None:
        return None
    inner = Problems()
    try:
        result = reader(value, inner)
    except ValueError as error:
        result = None
        inner.append(str(error))
        inner.unread.append(())
    problems.extend(f"{where[:_SHOWN]}: {problem}" for problem in inner)
    if isinstance(problems, Problems):
        problems.unread.extend((where, *path) for path in inner.unread)
    return result
