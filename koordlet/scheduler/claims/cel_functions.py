"""Functions of CEL by name: sizes, texts, amounts and versions.

Covers: choosing an overload by types. Does not cover: what is done to texts (``cel_texts``), time,
addresses, sums of lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from koordlet.model import quantity
from koordlet.scheduler.claims import cel_texts, cel_values
from koordlet.scheduler.claims.cel_values import EvaluationError, Frame, Run

_QUANTITY, _SEMVER = "kubernetes.Quantity", "kubernetes.Semver"


class Overload(NamedTuple):
    """One meaning of a name, for arguments of these types."""

    method: bool
    takes: tuple[str, ...]
    gives: str
    run: Callable[..., Any]
    #: What it costs beside reading texts.
    cost: Callable[..., int] = lambda *_: 0

    def accepts(self, kinds: Sequence[str]) -> bool:
        return len(kinds) == len(self.takes) and all(
            "dyn" in pair or pair[0] == pair[1] for pair in zip(kinds, self.takes, strict=True)
        )


def _method(takes: tuple[str, ...], gives: str, run: Callable[..., Any]) -> Overload:
    return Overload(method=True, takes=takes, gives=gives, run=run)


def _function(takes: tuple[str, ...], gives: str, run: Callable[..., Any]) -> Overload:
    return Overload(method=False, takes=takes, gives=gives, run=run)


def call(fitting: Sequence[Overload], runs: Sequence[Run]) -> Run:
    """A call of the overload that fits what the arguments turn out to be."""

    def run(frame: Frame) -> Any:
        values = [argument(frame) for argument in runs]
        kinds = [cel_values.type_name(value) for value in values]
        for overload in fitting:
            if overload.accepts(kinds):
                cel_values.charge(frame, sum(len(v) // 10 for v in values if type(v) is str))
                cel_values.charge(frame, overload.cost(*values))
                outcome = overload.run(*values)
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


def _whole(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 64:
        raise EvaluationError(f'strconv.ParseInt: parsing "{text[:64]}": invalid syntax')
    return int(cel_values.bounded(int, int(text)))


def _truncated(number: float) -> int:
    if not math.isfinite(number):
        raise EvaluationError("integer overflow")
    return int(cel_values.bounded(int, int(number)))


def _as_integer(amount: cel_values.Amount) -> int:
    if amount.value.denominator != 1:
        raise EvaluationError("cannot convert value to integer")
    return int(cel_values.bounded(int, int(amount.value)))


def _compared(kind: str, worth: Callable[[Any], Any]) -> dict[str, Overload]:
    takes = (kind, kind)
    return {
        "compareTo": _method(
            takes, "int", lambda a, b: (worth(a) > worth(b)) - (worth(a) < worth(b))
        ),
        "isGreaterThan": _method(takes, "bool", lambda a, b: worth(a) > worth(b)),
        "isLessThan": _method(takes, "bool", lambda a, b: worth(a) < worth(b)),
    }


def _sum(left: cel_values.Amount, right: cel_values.Amount, sign: int) -> cel_values.Amount:
    return cel_values.Amount(left.value + sign * right.value)


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
    "add": (_method((_QUANTITY, _QUANTITY), _QUANTITY, lambda a, b: _sum(a, b, 1)),),
    "sub": (_method((_QUANTITY, _QUANTITY), _QUANTITY, lambda a, b: _sum(a, b, -1)),),
    "int": (
        _function(("int",), "int", lambda number: number),
        _function(("uint",), "int", lambda number: cel_values.bounded(int, int(number))),
        _function(("double",), "int", _truncated),
        _function(("string",), "int", _whole),
    ),
    "string": (
        *(_function((kind,), "string", str) for kind in ("string", "int", "uint")),
        _function(("bool",), "string", lambda value: str(value).lower()),
    ),
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
for _name, _takes, _gives, _run in cel_texts.METHODS:
    FUNCTIONS[_name] = (*FUNCTIONS.get(_name, ()), _method(_takes, _gives, _run))
