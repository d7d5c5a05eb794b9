"""Functions of CEL that make one scalar of another: numbers, texts, bytes, truth.

Covers: bounds of the types, what a text has to look like, Go's spelling of numbers and errors.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from koordlet.scheduler.claims import cel_values
from koordlet.scheduler.claims.cel_values import EvaluationError, Uint

_MOST_DIGITS = 64
_FLOAT = re.compile(
    r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE
)
#: What doubles that are whole numbers of 64 bits do not reach.
_INT_END, _UINT_END = 2.0**63, 2.0**64
#: Powers of ten between which Go writes no exponent.
_LEAST_POWER, _FIRST_POWER = -4, 6
_TRUTHS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def whole(text: str) -> int:
    """An ``int`` of a text."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    _check_digits(text, digits, "ParseInt")
    return int(cel_values.bounded(int, int(text)))


def unsigned(text: str) -> Uint:
    """A ``uint`` of a text, which has no sign."""
    _check_digits(text, text, "ParseUint")
    return Uint(cel_values.bounded(Uint, int(text)))


def _check_digits(text: str, digits: str, function: str) -> None:
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
        shown = text[:_MOST_DIGITS]
        raise EvaluationError(f'strconv.{function}: parsing "{shown}": invalid syntax')


def floating(text: str) -> float:
    """A ``double`` of a text."""
    if not _FLOAT.fullmatch(text[: 4 * _MOST_DIGITS + 1]) or len(text) > 4 * _MOST_DIGITS:
        shown = text[:_MOST_DIGITS]
        raise EvaluationError(f'strconv.ParseFloat: parsing "{shown}": invalid syntax')
    number = float(text)
    if math.isinf(number) and "inf" not in text.lower():
        raise EvaluationError(f'strconv.ParseFloat: parsing "{text}": value out of range')
    return number


def truncated(kind: type, number: float) -> Any:
    """An ``int`` or ``uint`` of a ``double``: what is behind the point goes.

    The double itself is in the bounds: none below zero is a ``uint``, and the least ``int`` is out.
    """
    if kind is int and not -_INT_END < number < _INT_END:
        raise EvaluationError("integer overflow")
    if kind is Uint and not 0 <= number < _UINT_END:
        raise EvaluationError("unsigned integer overflow")
    return kind(number)


def spelled(number: float) -> str:
    """A ``double`` as Go writes it: as few digits as tell it from others."""
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else f"{'+' if number > 0 else '-'}Inf"
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    digits = decimal.Decimal(repr(number)).normalize()
    power = digits.adjusted()
    if _LEAST_POWER <= power < _FIRST_POWER:
        return f"{digits:f}"
    return f"{digits.scaleb(-power):f}e{power:+03d}"


def decoded(octets: bytes) -> str:
    """A text of bytes."""
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from error


def encoded(text: str) -> bytes:
    """Bytes of a text."""
    return text.encode(errors="surrogatepass")


def truth(text: str) -> bool:
    """A ``bool`` of a text."""
    if text not in _TRUTHS:
        raise EvaluationError(f"type conversion error from '{text[:64]}' to 'bool'")
    return _TRUTHS[text]


def same(value: Any) -> Any:
    """What is of the type already."""
    return value


#: By the type that a function of its name gives: how, by the type that it takes.
BY_RESULT: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "int": {
        "int": same,
        "uint": lambda number: cel_values.bounded(int, int(number)),
        "double": lambda number: truncated(int, number),
        "string": whole,
    },
    "uint": {
        "uint": same,
        "int": lambda number: cel_values.bounded(Uint, number),
        "double": lambda number: truncated(Uint, number),
        "string": unsigned,
    },
    "double": {"double": same, "int": float, "uint": float, "string": floating},
    "string": {
        "string": same,
        "int": str,
        "uint": str,
        "double": spelled,
        "bytes": decoded,
        "bool": lambda value: str(value).lower(),
    },
    "bytes": {"bytes": same, "string": encoded},
    "bool": {"bool": same, "string": truth},
}
