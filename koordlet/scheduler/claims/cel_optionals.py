"""Functions of CEL over values that may be absent.

Covers: making them, what they hold, what stands for an absent one. Does not cover: the macros over
them (``cel_macros``), fields and places that may be absent (``cel_evaluator``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from koordlet.scheduler.claims import cel_values
from koordlet.scheduler.claims.cel_values import EvaluationError, Optional

KIND = "optional_type"


def of(value: Any) -> Optional:
    """A value that is there."""
    return Optional(present=True, value=value)


def of_non_zero(value: Any) -> Optional:
    """A value that is there, unless it is what its type begins with: zero, empty, false, null."""
    begins = value is None or type(value) in {bool, float, str, bytes, list, dict}
    begins = begins or type(value) in cel_values.NUMBERS
    return cel_values.NONE if begins and not value else of(value)


def content(optional: Optional) -> Any:
    """What is there."""
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def content_or(optional: Optional, other: Any) -> Any:
    """What is there, or another value."""
    return optional.value if optional.present else other


def _unwrapped(several: list[Any]) -> list[Any]:
    if any(type(each) is not Optional for each in several):
        raise EvaluationError("no such overload")
    return [each.value for each in several if each.present]


def _wrapped_kind(kinds: Sequence[str]) -> str:
    return cel_values.optional_of(kinds[0])


def _list_kind(kinds: Sequence[str]) -> str:
    return f"list:{cel_values.element(cel_values.element(kinds[0]))}"


FUNCTIONS: tuple[cel_values.FunctionRow, ...] = (
    ("optional.of", ("dyn",), _wrapped_kind, of),
    ("optional.ofNonZeroValue", ("dyn",), _wrapped_kind, of_non_zero),
    ("optional.none", (), KIND, lambda: cel_values.NONE),
    ("optional.unwrap", ("list",), _list_kind, _unwrapped),
)
METHODS: tuple[cel_values.FunctionRow, ...] = (
    ("hasValue", (KIND,), "bool", lambda optional: optional.present),
    ("value", (KIND,), cel_values.element_of_first, content),
    ("orValue", (KIND, "dyn"), cel_values.element_of_first, content_or),
    ("or", (KIND, KIND), cel_values.first_of, lambda left, right: left if left.present else right),
    ("unwrapOpt", ("list",), _list_kind, _unwrapped),
)
