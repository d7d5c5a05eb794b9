"""JSON of files of our own, which may be damaged or forged: numbers that fit, bounded nesting.

Covers: reading it. Does not cover: what a document means (each file's owner).

Python's decoder takes integers of thousands of digits, infinity and NaN; what computes with those
fails later, where nobody knows whose fault it is.
"""

from __future__ import annotations

import json
import math

#: Nothing that we write is nested half as deep; recursion over it must end well.
_DEPTH = 64
#: Inode numbers have 64 bits without a sign.
_LEAST, _MOST = -(1 << 63), 1 << 64


def load(data: bytes) -> object:
    """Load a document; ``ValueError`` where koordlet cannot have written it."""
    try:
        found: object = _DECODER.decode(data.decode())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    _check_depth(found)
    return found


def _whole(text: str) -> int:
    # As many characters as such a number may have: longer ones are not even converted.
    number = int(text) if len(text) <= 20 else _MOST
    if not _LEAST <= number < _MOST:
        raise ValueError(f"a number beyond 64 bits: {text[:20]}…")
    return number


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"a number beyond range: {text[:20]}")
    return number


def _refuse(text: str) -> object:
    raise ValueError(f"not a number: {text}")


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=_refuse)


def _check_depth(found: object) -> None:
    level = [found]
    for _ in range(_DEPTH):
        level = [
            inner for each in level if isinstance(each, dict | list) for inner in _inside(each)
        ]
        if not level:
            return
    raise ValueError(f"nested more than {_DEPTH} deep")


def _inside(value: dict[str, object] | list[object]) -> list[object]:
    every = value.values() if isinstance(value, dict) else value
    return [each for each in every if isinstance(each, dict | list)]
