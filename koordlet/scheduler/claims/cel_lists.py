"""Functions of CEL over lists: sums, the least and the largest, places, order, parts; as sets.

Covers: which elements have a sum or an order, empty lists. Each gets the frame, as what it costs
depends on the elements.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from koordlet.scheduler.claims import cel_syntax, cel_values
from koordlet.scheduler.claims.cel_values import EvaluationError, Frame

#: What the sum of an empty list is, by the type that its elements would have.
_ZEROS = {"int": 0, "uint": cel_values.Uint(0), "double": 0.0}
#: Lists in lists are no deeper: an expression has so many levels.
_DEEPEST = cel_syntax.MOST_LEVELS
_ORDERED = ("int", "uint", "double", "bool", "string", "bytes")


def _sum_of(zero: Any) -> Callable[[Frame, list[Any]], Any]:
    def summed(frame: Frame, values: list[Any]) -> Any:
        cel_values.charge(frame, len(values))
        total = values[0] if values else zero
        if type(total) not in cel_values.NUMBERS:
            raise EvaluationError("no such overload")
        for value in values[1:]:
            total = cel_values.add(frame, total, value)
        return total

    return summed


def least(frame: Frame, values: list[Any]) -> Any:
    """The least element."""
    return _extreme(frame, values, "min", -1)


def largest(frame: Frame, values: list[Any]) -> Any:
    """The largest element."""
    return _extreme(frame, values, "max", 1)


def _extreme(frame: Frame, values: list[Any], name: str, wanted: int) -> Any:
    if not values:
        raise EvaluationError(f"{name} called on empty list")
    cel_values.charge(frame, len(values))
    extreme = values[0]
    # Also of a single one it is asked whether it has an order.
    for value in values:
        if _order(frame, value, extreme) == wanted:
            extreme = value
    return extreme


def _order(frame: Frame, left: Any, right: Any) -> int:
    """The order of two elements; of two types neither is before the other."""
    try:
        return cel_values.order(frame, left, right)
    except EvaluationError:
        if {type(left), type(right)} <= cel_values.ORDERED:
            return 0
        raise


def is_sorted(frame: Frame, values: list[Any]) -> bool:
    """Whether no element is larger than the next."""
    cel_values.charge(frame, len(values))
    return all(_order(frame, *pair) != 1 for pair in itertools.pairwise(values))


def index_of(frame: Frame, values: list[Any], wanted: Any) -> int:
    """Where an element is first; -1: nowhere."""
    return _place(frame, values, range(len(values)), wanted)


def last_index_of(frame: Frame, values: list[Any], wanted: Any) -> int:
    """Where an element is last; -1: nowhere."""
    return _place(frame, values, reversed(range(len(values))), wanted)


def _place(frame: Frame, values: list[Any], places: Iterable[int], wanted: Any) -> int:
    for place in places:
        cel_values.charge(frame, 1)
        if cel_values.equal(frame, values[place], wanted):
            return place
    return -1


def part(frame: Frame, values: list[Any], begin: int, end: int) -> list[Any]:
    """The elements from a place to before another."""
    words = f"cannot slice({begin}, {end})"
    if min(begin, end) < 0:
        raise EvaluationError(f"{words}, negative indexes not supported")
    if begin > end:
        raise EvaluationError(f"{words}, start index must be less than or equal to end index")
    if end > len(values):
        raise EvaluationError(f"{words}, list is length {len(values)}")
    return _copied(frame, values[begin:end])


def _copied(frame: Frame, values: list[Any]) -> list[Any]:
    cel_values.charge(frame, len(values))
    return values


def in_order(frame: Frame, values: list[Any]) -> list[Any]:
    """The elements from the least to the largest."""
    cel_values.charge(frame, len(values) * len(values).bit_length())
    order = functools.partial(cel_values.order, frame)
    return sorted(values, key=functools.cmp_to_key(order))


def distinct(frame: Frame, values: list[Any]) -> list[Any]:
    """Each element where it is first."""
    kept: list[Any] = []
    for value in values:
        if index_of(frame, kept, value) < 0:
            kept.append(value)
    return kept


def flattened(frame: Frame, values: list[Any], depth: int = 1) -> list[Any]:
    """The elements of lists in the place of the lists, so deep."""
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat = values
    for _ in range(min(depth, _DEEPEST)):
        # Paid for before it is there: a list of few lists may be one of many elements.
        cel_values.charge(frame, sum(len(v) if type(v) is list else 1 for v in flat))
        lists = (value if type(value) is list else [value] for value in flat)
        flat = [value for several in lists for value in several]
    return flat


def numbers(frame: Frame, end: int) -> list[int]:
    """As many numbers, from zero on."""
    cel_values.charge(frame, max(0, end))
    return list(range(end))


def contains(frame: Frame, values: list[Any], others: list[Any]) -> bool:
    """Whether each of the others is among the values."""
    return all(index_of(frame, values, other) >= 0 for other in others)


def _equivalent(frame: Frame, values: list[Any], others: list[Any]) -> bool:
    return contains(frame, values, others) and contains(frame, others, values)


def _intersects(frame: Frame, values: list[Any], others: list[Any]) -> bool:
    return any(index_of(frame, values, other) >= 0 for other in others)


def _optional_kind(kinds: Sequence[str]) -> str:
    return cel_values.optional_of(cel_values.element(kinds[0]))


def _end(place: int) -> Callable[[Frame, list[Any]], cel_values.Optional]:
    def element(_: Frame, values: list[Any]) -> cel_values.Optional:
        return cel_values.Optional(present=True, value=values[place]) if values else cel_values.NONE

    return element


METHODS: tuple[cel_values.FunctionRow, ...] = (
    *(("sum", (f"list:{kind}",), kind, _sum_of(zero)) for kind, zero in _ZEROS.items()),
    *(("min", (f"list:{kind}",), cel_values.element_of_first, least) for kind in _ORDERED),
    *(("max", (f"list:{kind}",), cel_values.element_of_first, largest) for kind in _ORDERED),
    *(("isSorted", (f"list:{kind}",), "bool", is_sorted) for kind in _ORDERED),
    ("indexOf", ("list", "dyn"), "int", index_of),
    ("lastIndexOf", ("list", "dyn"), "int", last_index_of),
    ("slice", ("list", "int", "int"), cel_values.first_of, part),
    *(("sort", (f"list:{kind}",), cel_values.first_of, in_order) for kind in _ORDERED),
    ("reverse", ("list",), cel_values.first_of, lambda frame, values: _copied(frame, values[::-1])),
    ("distinct", ("list",), cel_values.first_of, distinct),
    ("flatten", ("list",), "list:dyn", flattened),
    ("flatten", ("list", "int"), "list:dyn", flattened),
    ("first", ("list",), _optional_kind, _end(0)),
    ("last", ("list",), _optional_kind, _end(-1)),
)
FUNCTIONS: tuple[cel_values.FunctionRow, ...] = (
    ("lists.range", ("int",), "list:int", numbers),
    ("sets.contains", ("list", "list"), "bool", contains),
    ("sets.equivalent", ("list", "list"), "bool", _equivalent),
    ("sets.intersects", ("list", "list"), "bool", _intersects),
)
