"""Functions of CEL by name: sizes, texts, amounts and versions.

Covers: choosing an overload by types. Does not cover: what is done to texts (``cel_texts``), lists
(``cel_lists``), addresses (``cel_addresses``), values that may be absent (``cel_optionals``); time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from koordlet.model import quantity
from koordlet.scheduler.claims import (
    cel_addresses,
    cel_conversions,
    cel_lists,
    cel_optionals,
    cel_texts,
    cel_values,
)
from koordlet.scheduler.claims.cel_values import EvaluationError, Frame, Run

_QUANTITY, _SEMVER = "kubernetes.Quantity", "kubernetes.Semver"


class Overload(NamedTuple):
    """One meaning of a name, for arguments of these types."""

    method: bool
    takes: tuple[str, ...]
    #: A type, or what makes one of those of the arguments.
    gives: cel_values.Gives
    run: Callable[..., Any]
    #: What it costs beside reading texts and, unless it pays by itself, lists.
    cost: Callable[..., int] = lambda *_: 0
    #: It is handed the frame, to pay by itself.
    pays: bool = False

    def accepts(self, kinds: Sequence[str]) -> bool:
        return len(kinds) == len(self.takes) and all(map(cel_values.may_be, kinds, self.takes))

    def result(self, kinds: Sequence[str]) -> str:
        """The type of what it gives."""
        return self.gives if isinstance(self.gives, str) else self.gives(kinds)


def _method(takes: tuple[str, ...], gives: cel_values.Gives, run: Callable[..., Any]) -> Overload:
    return Overload(method=True, takes=takes, gives=gives, run=run)


def _function(takes: tuple[str, ...], gives: cel_values.Gives, run: Callable[..., Any]) -> Overload:
    return Overload(method=False, takes=takes, gives=gives, run=run)


def call(fitting: Sequence[Overload], runs: Sequence[Run]) -> Run:
    """A call of the overload that fits what the arguments turn out to be."""

    def run(frame: Frame) -> Any:
        values = [argument(frame) for argument in runs]
        kinds = [cel_values.type_name(value) for value in values]
        for overload in fitting:
            if overload.accepts(kinds):
                read = (str,) if overload.pays else (str, list)
                cel_values.charge(frame, sum(len(v) // 10 for v in values if type(v) in read))
                cel_values.charge(frame, overload.cost(*values))
                paying = (frame, *values) if overload.pays else values
                outcome = overload.run(*paying)
                if type(outcome) is str or type(outcome) is list:
                    cel_values.charge(frame, len(outcome) // 10)
                return outcome
        raise EvaluationError("no such overload")

    return run


def _quantity(text: str) -> cel_values.Amount:
    try:
        return cel_values.Amount(quantity.exact(text[:64]))
    except ValueError as error:
        raise EvaluationError(f"quantities must match the regular expression: {error}") from error


def _is_version(text: str, *, normalise: bool = False) -> bool:
    try:
        cel_values.version(text, normalise=normalise)
    except EvaluationError:
        return False
    return True


def _is_quantity(text: str) -> bool:
    try:
        _quantity(text)
    except EvaluationError:
        return False
    return True


def _as_integer(amount: cel_values.Amount) -> int:
    if amount.value.denominator != 1:
        raise EvaluationError("cannot convert value to integer")
    return int(cel_values.bounded(int, int(amount.value)))


def _as_float(amount: cel_values.Amount) -> float:
    """The nearest ``double``; of what is beyond them, infinity."""
    try:
        return float(amount.value)
    except OverflowError:
        return math.inf if amount.value > 0 else -math.inf


def _compared(kind: str, worth: Callable[[Any], Any]) -> dict[str, Overload]:
    takes = (kind, kind)
    return {
        "compareTo": _method(
            takes, "int", lambda a, b: (worth(a) > worth(b)) - (worth(a) < worth(b))
        ),
        "isGreaterThan": _method(takes, "bool", lambda a, b: worth(a) > worth(b)),
        "isLessThan": _method(takes, "bool", lambda a, b: worth(a) < worth(b)),
    }


def _sum(left: cel_values.Amount, right: cel_values.Amount | int, sign: int) -> cel_values.Amount:
    more = right.value if isinstance(right, cel_values.Amount) else right
    return cel_values.Amount(left.value + sign * more)


_OF_QUANTITY = _compared(_QUANTITY, lambda amount: amount.value)
_OF_SEMVER = _compared(_SEMVER, lambda version: version)
_TEXTS = ("string", "string")

FUNCTIONS: dict[str, tuple[Overload, ...]] = {
    "size": tuple(
        declare((kind,), "int", len)
        for declare in (_function, _method)
        for kind in ("string", "bytes", "list", "map")
    ),
    "type": (_function(("dyn",), "type", lambda v: cel_values.TypeValue(cel_values.type_name(v))),),
    "dyn": (_function(("dyn",), "dyn", lambda value: value),),
    "startsWith": (_method(_TEXTS, "bool", str.startswith),),
    "endsWith": (_method(_TEXTS, "bool", str.endswith),),
    "contains": (_method(_TEXTS, "bool", str.__contains__),),
    "quantity": (_function(("string",), _QUANTITY, _quantity),),
    "isQuantity": (_function(("string",), "bool", _is_quantity),),
    "isInteger": (_method((_QUANTITY,), "bool", lambda amount: amount.value.denominator == 1),),
    "asInteger": (_method((_QUANTITY,), "int", _as_integer),),
    "sign": (_method((_QUANTITY,), "int", lambda amount: (amount.value > 0) - (amount.value < 0)),),
    "asApproximateFloat": (_method((_QUANTITY,), "double", _as_float),),
    **{
        name: tuple(
            _method((_QUANTITY, kind), _QUANTITY, lambda a, b, sign=sign: _sum(a, b, sign))
            for kind in (_QUANTITY, "int")
        )
        for name, sign in (("add", 1), ("sub", -1))
    },
    **{
        gives: tuple(_function((takes,), gives, run) for takes, run in conversions.items())
        for gives, conversions in cel_conversions.BY_RESULT.items()
    },
    "semver": (
        _function(("string",), _SEMVER, cel_values.version),
        _function(
            ("string", "bool"),
            _SEMVER,
            lambda text, normalise: cel_values.version(text, normalise=normalise),
        ),
    ),
    "isSemver": (
        _function(("string",), "bool", _is_version),
        _function(
            ("string", "bool"),
            "bool",
            lambda text, normalise: _is_version(text, normalise=normalise),
        ),
    ),
    "matches": tuple(
        Overload(method, _TEXTS, "bool", cel_texts.matches, cel_texts.steps)
        for method in (False, True)
    ),
    "find": (_method(_TEXTS, "string", cel_texts.find)._replace(cost=cel_texts.steps),),
    "findAll": tuple(
        _method(takes, "list:string", cel_texts.find_all)._replace(cost=cel_texts.steps)
        for takes in (_TEXTS, (*_TEXTS, "int"))
    ),
    **{name: (overload, _OF_SEMVER[name]) for name, overload in _OF_QUANTITY.items()},
    **{
        name: (_method((_SEMVER,), "int", lambda version, place=place: version.numbers[place]),)
        for place, name in enumerate(("major", "minor", "patch"))
    },
}
for _rows, _declare, _pays in (
    (cel_texts.METHODS, _method, False),
    (cel_lists.METHODS, _method, True),
    (cel_lists.FUNCTIONS, _function, True),
    (cel_addresses.METHODS, _method, False),
    (cel_addresses.FUNCTIONS, _function, False),
    (cel_optionals.METHODS, _method, False),
    (cel_optionals.FUNCTIONS, _function, False),
):
    for _name, _takes, _gives, _run in _rows:
        _overload = _declare(_takes, _gives, _run)._replace(pays=_pays)
        FUNCTIONS[_name] = (*FUNCTIONS.get(_name, ()), _overload)
