"""Readers of strategies, made of their table of fields.

Covers: the reader of each form of a field, of a whole strategy as an object about nodes or the
annotation of a pod says it.
Does not cover: which fields there are (``model.strategies``), reading one value (``shapes``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from koordlet.kubeapi import shapes
from koordlet.model import strategy_field

_T = TypeVar("_T")
_PERCENT = shapes.integer(0, 100)


def of(strategy: type[_T], source: Literal["node", "pod"] = "node") -> shapes.Reader:
    """Reader of a strategy; what only the other source says is an unknown key."""
    known = strategy_field.rows(strategy).items()
    fields = {
        name: (strategy_field.key(strategy, name), _reader(row, source))
        for name, row in known
        if row.only in ("", source)
    }
    return shapes.record(strategy, **fields)


def annotation(strategy: type[_T]) -> Callable[[str, list[str]], _T]:
    """Decoder of the annotation with which a pod overlays fields of a strategy."""
    read = of(strategy, "pod")

    def decode(text: str, problems: list[str]) -> _T:
        settings: _T = read(shapes.parse(text), problems)
        return settings

    return decode


def _reader(row: strategy_field.StrategyField, source: Literal["node", "pod"]) -> shapes.Reader:
    make: dict[strategy_field.Form, Callable[[], shapes.Reader]] = {
        "whole": lambda: shapes.integer(int(row.low), int(row.high)),
        "number": lambda: shapes.number(row.low, row.high),
        "switch": lambda: shapes.boolean,
        "word": lambda: shapes.choice(*row.words),
        "text": lambda: shapes.text,
        "amount": lambda: shapes.units,
        "share": lambda: functools.partial(_share, row.of),
        "switches": lambda: shapes.table(shapes.boolean),
        "part": lambda: of(row.of, source),
        "parts": lambda: shapes.listing(of(row.of, source)),
    }
    return make[row.form]()


def _share(share: Any, value: object, problems: list[str]) -> object:
    """A number is percent of the node's bandwidth, a text is bits per second."""
    if isinstance(value, str):
        return share(bits=shapes.units(value, problems))
    return share(percent=_PERCENT(value, problems))
