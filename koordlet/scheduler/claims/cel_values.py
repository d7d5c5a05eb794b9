"""Values of CEL and what every operator does to them: names of types, equality, order, arithmetic.

Covers: 64-bit bounds, mixed numbers, amounts, versions and optional values, what an evaluation may
cost. Does not cover: functions by name (``cel_functions``), trees (``cel_evaluator``).

Python's own types stand for CEL's, and ``Uint`` for the one that Python lacks. A ``bool`` key of a
map is wrapped, because to Python ``True`` and ``1`` are one key and to CEL they are two.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import cel_syntax

#: What an evaluation may cost: an element visited is 1, ten bytes copied are 1.
COST_LIMIT = 1_000_000
Frame = list[Any]
Run = Callable[[Frame], Any]
#: What a function gives: a type, or what makes one of those of its arguments.
Gives = str | Callable[[Sequence[str]], str]
#: A function by name: what it takes, what it gives, how.
FunctionRow = tuple[str, tuple[str, ...], Gives, Callable[..., Any]]
Uint = cel_syntax.Uint


class EvaluationError(ValueError):
    """An evaluation that has no value; ``&&`` and ``||`` may absorb it."""


class CostError(ValueError):
    """An evaluation that went on for too long; nothing absorbs it."""


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: what ``type(x)`` gives."""

    name: str


@dataclass(frozen=True, slots=True)
class BoolKey:
    """A ``bool`` as a key of a map."""

    value: bool


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount, equal to every amount of the same worth."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be absent."""

    present: bool
    value: Any = None


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class SemanticVersion:
    """A semantic version; what was built from it does not count."""

    numbers: tuple[int, int, int]
    #: Identifiers of a release that is not out yet: numbers before words, fewer before more.
    pre: tuple[tuple[int, int, str], ...] = ()

    def __lt__(self, other: SemanticVersion) -> bool:
        return (self.numbers, not self.pre, self.pre) < (other.numbers, not other.pre, other.pre)


class Domains(dict[str, Any]):
    """Attributes by domain: an unknown domain has none, and is no error."""

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}


class CompiledNode(NamedTuple):
    """A compiled node: how it is evaluated, and of which type the result is."""

    run: Run
    type: str


NONE = Optional(present=False)
NUMBERS = frozenset((int, Uint, float))
_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    Domains: "map",
    TypeValue: "type",
    Optional: "optional_type",
    Amount: "kubernetes.Quantity",
    SemanticVersion: "kubernetes.Semver",
}
#: Types of the language itself.
_OF_CEL = _NAMES.keys() - {Amount, SemanticVersion}
_VERSION = re.compile(
    r"(0|[1-9]\d*)(?:\.(0|[1-9]\d*))?(?:\.(0|[1-9]\d*))?"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def type_name(value: object) -> str:
    """The type as CEL writes it."""
    known = _NAMES.get(type(value))
    return known if known is not None else str(getattr(value, "TYPE", "unknown"))


def charge(frame: Frame, cost: int) -> None:
    """Take from what the evaluation may still cost."""
    frame[0] -= cost
    if frame[0] < 0:
        raise CostError("actual cost limit exceeded")


def decided(frame: Frame, tests: Iterable[Run], *, ends: bool) -> bool:
    """The outcome that ends the tests if any has it, else the other; errors count only then."""
    error: EvaluationError | None = None
    for test in tests:
        try:
            outcome = test(frame)
        except EvaluationError as raised:
            error = error or raised
            continue
        if outcome is ends:
            return bool(ends)
        if type(outcome) is not bool:
            error = error or EvaluationError("no such overload")
    if error is not None:
        raise error
    return not ends


def key(value: Any) -> Any:
    """A value as the key of a map; what can be none is no key."""
    kind = type(value)
    if kind is str or kind is int or kind is Uint:
        return value
    if kind is bool:
        return BoolKey(value)
    if kind is float and math.isfinite(value) and value == int(value):
        return int(value)
    raise EvaluationError(f"unsupported key type: {type_name(value)}")


def keys(mapping: dict[Any, Any]) -> Iterator[Any]:
    """The keys of a map as they were written, one by one: most macros need but the first few."""
    return (known.value if type(known) is BoolKey else known for known in mapping)


def base(kind: str) -> str:
    """``list`` of ``list:int``."""
    return kind.partition(":")[0]


def element(kind: str) -> str:
    """``int`` of ``list:int``."""
    return kind.partition(":")[2] or "dyn"


def first_of(kinds: Sequence[str]) -> str:
    """The type of the first argument."""
    return kinds[0]


def element_of_first(kinds: Sequence[str]) -> str:
    """The type of what the first argument holds."""
    return element(kinds[0])


def may_be(kind: str, wanted: str) -> bool:
    """Whether a value of a type may be of another one; what nothing is known of may be anything."""
    if "dyn" in (kind, wanted):
        return True
    return base(kind) == base(wanted) and (
        ":" not in kind or ":" not in wanted or may_be(element(kind), element(wanted))
    )


def optional_of(kind: str) -> str:
    """The type of a value of this type that may be absent."""
    return "optional_type" if kind == "dyn" else f"optional_type:{kind}"


def contains_place(operand: Any, place: Any) -> bool:
    """Whether an index would find something; what may be absent has no places in a scalar."""
    if type(operand) is Domains:
        # Every domain is there, most of them without attributes; ``in`` says otherwise.
        return type(place) is str
    if isinstance(operand, dict):
        return key(place) in operand
    if type(operand) is list:
        return type(place) in NUMBERS and 0 <= place < len(operand)
    if type(operand) is Optional:
        held = operand.value
        return isinstance(held, dict | list | Optional) and contains_place(held, place)
    raise EvaluationError("no such overload")


def equal(frame: Frame, left: Any, right: Any) -> bool:
    """Whether two values are equal; of different types they are not, but for numbers."""
    kind, other = type(left), type(right)
    if kind is other:
        if kind is list:
            charge(frame, 1 + len(left))
            return len(left) == len(right) and all(
                equal(frame, *pair) for pair in zip(left, right, strict=True)
            )
        if kind is dict:
            charge(frame, 1 + len(left))
            return left.keys() == right.keys() and all(
                equal(frame, value, right[name]) for name, value in left.items()
            )
        if kind is Optional:
            return left.present == right.present and equal(frame, left.value, right.value)
        if kind is str or kind is bytes:
            charge(frame, len(left) // 10)
        return bool(left == right)
    if kind in NUMBERS and other in NUMBERS:
        return bool(left == right)
    if right is not None and kind not in _OF_CEL:
        # Kubernetes' own types are compared with themselves alone; from the other side all differ.
        raise EvaluationError("no such overload")
    return isinstance(left, dict) and isinstance(right, dict) and left == right


def order(frame: Frame, left: Any, right: Any) -> int:
    """-1, 0 or 1; only values of one kind have an order. ``NaN`` has none: 2."""
    kind, other = type(left), type(right)
    if not ((kind is other and kind in ORDERED) or (kind in NUMBERS and other in NUMBERS)):
        raise EvaluationError("no such overload")
    if kind is str or kind is bytes:
        charge(frame, min(len(left), len(right)) // 10)
    return -1 if left < right else 1 if left > right else 0 if left == right else 2


ORDERED = frozenset((bool, str, bytes, int, Uint, float))


def add(frame: Frame, left: Any, right: Any) -> Any:
    """A sum, or one after the other."""
    kind = type(left)
    if kind is not type(right):
        raise EvaluationError("no such overload")
    if kind is str or kind is bytes:
        charge(frame, (len(left) + len(right)) // 10)
    elif kind is list:
        charge(frame, len(left) + len(right))
    elif kind not in NUMBERS:
        raise EvaluationError("no such overload")
    return bounded(kind, left + right) if kind in NUMBERS else left + right


def bounded(kind: type, result: Any) -> Any:
    """A whole number in the bounds of its type."""
    if kind is int:
        if not cel_syntax.INT_LEAST <= result <= cel_syntax.INT_MOST:
            raise EvaluationError("integer overflow")
    elif kind is Uint:
        if not 0 <= result <= cel_syntax.UINT_MOST:
            raise EvaluationError("unsigned integer overflow")
        return Uint(result)
    return result


def arithmetic(operator: str) -> Callable[[Frame, Any, Any], Any]:
    """What ``-``, ``*``, ``/`` or ``%`` does to two numbers of one type."""
    whole = _WHOLE[operator]

    def apply(_: Frame, left: Any, right: Any) -> Any:
        kind = type(left)
        if kind is not type(right) or kind not in NUMBERS:
            raise EvaluationError("no such overload")
        if kind is not float:
            return bounded(kind, whole(left, right))
        if operator == "%":
            raise EvaluationError("no such overload")
        if operator == "/" and right == 0:
            infinite = math.copysign(math.inf, left) * math.copysign(1, right)
            return math.nan if left == 0 or math.isnan(left) else infinite
        return (
            left - right if operator == "-" else left * right if operator == "*" else left / right
        )

    return apply


def _quotient(left: int, right: int) -> int:
    """Towards zero, as in CEL; Python rounds down."""
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    """Of the sign of what is divided."""
    if right == 0:
        raise EvaluationError("modulus by zero")
    if right == -1 and left == cel_syntax.INT_LEAST:
        raise EvaluationError("integer overflow")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


_WHOLE: dict[str, Callable[[int, int], int]] = {
    "-": lambda left, right: int(left) - int(right),
    "*": lambda left, right: int(left) * int(right),
    "/": _quotient,
    "%": _remainder,
}


def version(text: str, *, normalise: bool = False) -> SemanticVersion:
    """A semantic version; normalised, a leading ``v`` and absent parts are no fault."""
    if normalise:
        text = re.sub(r"(^|\.)0+(?=\d)", r"\1", text.strip().removeprefix("v"))
    match = _VERSION.fullmatch(text) if len(text) <= 256 else None
    if match is None or not (normalise or match.group(3)):
        if text.count(".") < 2 and not normalise:
            raise EvaluationError("No Major.Minor.Patch elements found")
        raise EvaluationError(f"Invalid semantic version '{text[:64]}'")
    numbers = (int(match.group(1)), int(match.group(2) or 0), int(match.group(3) or 0))
    pre = []
    for identifier in (match.group(4) or "").split("."):
        if identifier.isdigit():
            if identifier != "0" and identifier.startswith("0"):
                raise EvaluationError(
                    f'Numeric PreRelease version must not contain leading zeroes "{identifier}"'
                )
            pre.append((0, int(identifier), ""))
        elif identifier:
            pre.append((1, 0, identifier))
    if max(numbers) > cel_syntax.UINT_MOST:
        raise EvaluationError(f"value out of range '{text[:64]}'")
    return SemanticVersion(numbers, tuple(pre))
