"""A field of a strategy: its form, bounds, default, meaning, and where it can be said.

Covers: declaring a field, the fields of a strategy, the peer's key, defaults, values of a section
of the configuration file, overlaying.
Does not cover: which fields there are (``strategies``), decoding (``workloads.strategy_reader``),
the sections (``config.sections``), the custom resource (``report.crds.nodeslo``).

``None`` is always "not said": what lies below shows through.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar, cast

from koordlet.model import quantity

_T = TypeVar("_T")

INT32, INT64 = 2**31, 2**63
_ROW = "strategy"
#: Words that the peer writes in capitals where they do not begin a key.
_CAPITALS = frozenset({"be", "bps", "cpu", "iops", "qos"})

Form = Literal[
    "whole",
    "number",
    "switch",
    "word",
    "text",
    "amount",
    "share",
    "switches",
    "part",
    "parts",
    "keys",
]


class StrategyField(NamedTuple):
    """One row of the table: everything about a field but its name."""

    form: Form
    #: Bounds, both included, of a number.
    low: float = -INT64
    high: float = INT64 - 1
    #: The choice of a word.
    words: tuple[str, ...] = ()
    #: The strategy that a part is, or a list has.
    of: Any = None
    #: What counts where nobody says anything; ``None``: it stays unsaid.
    default: object = None
    #: Policies whose section of the configuration file has the field as a key.
    file: tuple[str, ...] = ()
    #: Default of that key, where another one counts.
    file_default: object = None
    doc: str = ""
    #: The one that says it: an object about nodes, or the annotation of a pod; else both do.
    only: Literal["", "node", "pod"] = ""
    #: The peer's key, where it is not the name in its spelling.
    key: str = ""
    #: The key stands below ``limits``: an upper bound that no source can exceed.
    bound: bool = False


def field(
    form: Form,
    doc: str = "",
    *,
    file: str | tuple[str, ...] = (),
    unsaid: object = None,
    **more: Any,
) -> Any:
    """Declare a field of a strategy, which is ``unsaid``, or an empty part, until it is said."""
    named = (file,) if isinstance(file, str) else file
    row = StrategyField(form, doc=doc, file=named, **more)
    value = row.of() if form == "part" else unsaid
    return dataclasses.field(default=value, metadata={_ROW: row})


def whole(low: int, high: int = INT64 - 1, default: int | None = None, **more: Any) -> Any:
    """Declare a whole number."""
    return field("whole", low=low, high=high, default=default, **more)


def percent(default: int | None = None, **more: Any) -> Any:
    """Declare a percentage of something."""
    return whole(0, 100, default, **more)


def switch(default: bool | None = None, **more: Any) -> Any:  # noqa: FBT001 -- as its siblings
    """Declare something that is on or off."""
    return field("switch", default=default, **more)


def word(*words: str, default: str | None = None, **more: Any) -> Any:
    """Declare a choice of words."""
    return field("word", words=words, default=default, **more)


def setting(*, default: object, form: Form = "switch", **more: Any) -> Any:
    """Declare a setting of a policy that is a key of its section and of nothing else.

    The comment above it is its description.
    """
    return field(form, default=default, unsaid=default, **more)


def bound(low: int, high: int = INT64 - 1, *, default: object = None, **more: Any) -> Any:
    """Declare an upper bound that no source can exceed: a setting below ``limits``."""
    row: dict[str, Any] = {"form": "whole", **more, "low": low, "high": high, "bound": True}
    return setting(default=default, **row)


def keys(strategy: type[_T], default: _T | None = None) -> Any:
    """Declare that all keys of a strategy stand in the section of a policy."""
    unsaid = strategy() if default is None else default
    return field("keys", of=strategy, unsaid=unsaid)


def rows(strategy: type) -> Mapping[str, StrategyField]:
    """The fields of a strategy, or of the settings of a policy, by name, in order."""
    known = dataclasses.fields(strategy)
    return {each.name: each.metadata[_ROW] for each in known if _ROW in each.metadata}


def key(strategy: type, name: str) -> str:
    """The peer's key of a field: ``cpuEvictBESatisfactionUpperPercent``."""
    return rows(strategy)[name].key or spelled(name)


def spelled(name: str) -> str:
    """A name in the spelling of the peer's keys."""
    first, *rest = name.split("_")
    return first + "".join(part.upper() if part in _CAPITALS else part.title() for part in rest)


def defaults(strategy: type[_T]) -> _T:
    """The strategy that counts where nobody says anything."""
    known = rows(strategy).items()
    parts = {name: defaults(row.of) for name, row in known if row.form == "part"}
    return strategy(**{name: row.default for name, row in known if row.form != "part"}, **parts)


def configured(strategy: type[_T], section: Any) -> _T:
    """The strategy that a section of the configuration says; its other keys are left out."""
    values: dict[str, object] = {}
    for name, row in rows(strategy).items():
        if row.form == "keys":
            values[name] = configured(row.of, section)
        elif name in (written := (section.limits if row.bound else section).values()):
            values[name] = _value(row, written[name])
    return strategy(**values)


def _value(row: StrategyField, value: Any) -> object:
    if value is None:
        return None
    if row.form == "amount":
        return quantity.units(value)
    if row.form == "share":
        part = {"percent": value} if isinstance(value, int) else {"bits": quantity.units(value)}
        return row.of(**part)
    if row.form == "part":
        return configured(row.of, value)
    return tuple(configured(row.of, item) for item in value) if row.form == "parts" else value


def overlay(below: _T, above: _T | None) -> _T:
    """Field by field what is said above, else what is said below; nested values likewise."""
    if above is None:
        return below
    # The type checker does not know that both are dataclasses of one type.
    low, high = cast("Any", below), cast("Any", above)
    changes: dict[str, object] = {}
    for each in dataclasses.fields(high):
        old, new = getattr(low, each.name), getattr(high, each.name)
        if new is None:
            continue
        both = dataclasses.is_dataclass(new) and type(old) is type(new)
        changes[each.name] = overlay(old, new) if both else new
    return cast("_T", dataclasses.replace(low, **changes))
