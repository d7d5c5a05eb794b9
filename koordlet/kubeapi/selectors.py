"""Label and field selectors, as the API machinery spells and evaluates them.

Covers: both notations of label selectors (text, and ``matchLabels`` with ``matchExpressions``),
field selectors, whether an object matches. Does not cover: which fields a store selects by.

Rules of the API machinery (kubernetes.io, "Labels and Selectors"):
1. All requirements must hold. ``!=`` and ``notin`` hold for objects without the label, too.
2. A missing selector object matches nothing, an empty one everything.
3. Fields know ``=``, ``==`` and ``!=`` only; a missing field is the empty text.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.kubeapi import labels
from koordlet.model.record import dataclass


class Operator(enum.Enum):
    """How a label is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, Any]) -> bool:
        """Whether labels satisfy it."""
        match self.operator:
            case Operator.IN:
                return str(labels.get(self.key)) in self.values and self.key in labels
            case Operator.NOT_IN:
                return self.key not in labels or str(labels[self.key]) not in self.values
            case Operator.EXISTS:
                return self.key in labels
            case Operator.DOES_NOT_EXIST:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class Field:
    """One condition on one field, named by its path: ``spec.nodeName``."""

    path: str
    value: str
    equal: bool = True

    def matches(self, body: Mapping[str, Any]) -> bool:
        """Whether an object satisfies it."""
        return (_at(body, self.path) == self.value) is self.equal

    def __str__(self) -> str:
        escaped = re.sub(r"([\\,=])", r"\\\1", self.value)
        return f"{self.path}{'=' if self.equal else '!='}{escaped}"


@dataclass(frozen=True, slots=True)
class Selector:
    """Which objects: labels and fields in the notation of ``kubectl -l`` and ``--field-selector``.

    ``ValueError`` where either cannot be read.
    """

    labels: str = ""
    fields: str = ""

    def __post_init__(self) -> None:
        parse_labels(self.labels)
        parse_fields(self.fields)

    def compiled(self) -> Compiled:
        """The parsed selector, for many objects."""
        return Compiled(parse_labels(self.labels), parse_fields(self.fields))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A parsed selector."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Field, ...] = ()

    def matches(self, body: Mapping[str, Any]) -> bool:
        """Whether an object satisfies all of it."""
        if self.labels:
            value = _at_any(body, ("metadata", "labels"))
            labels = value if isinstance(value, Mapping) else {}
            if not all(requirement.matches(labels) for requirement in self.labels):
                return False
        return all(requirement.matches(body) for requirement in self.fields)


_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_SET = re.compile(rf"({_NAME})\s+(in|notin)\s*\(([^()]*)\)\Z")
_EQUAL = re.compile(rf"({_NAME})\s*(==|=|!=)\s*({_VALUE})\Z")
_EXISTS = re.compile(rf"(!?)\s*({_NAME})\Z")
#: A comma outside of parentheses.
_BETWEEN = re.compile(r",(?![^()]*\))")
_FIELD = re.compile(r"([^=!]+?)(==|!=|=)(.*)\Z", re.DOTALL)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """``app=web,tier in (a,b),!old``; empty: everything."""
    if not text.strip():
        return ()
    return tuple(_checked(_requirement(part.strip())) for part in _BETWEEN.split(text))


def _checked(requirement: Requirement) -> Requirement:
    """``ValueError`` where no object can have such a label."""
    if fault := labels.fault(requirement.key, sorted(requirement.values)):
        raise ValueError(f"not a requirement of a label selector: {fault}")
    return requirement


def _requirement(part: str) -> Requirement:
    if match := _SET.match(part):
        values = frozenset(value.strip() for value in match[3].split(","))
        operator = Operator.IN if match[2] == "in" else Operator.NOT_IN
        return Requirement(match[1], operator, values)
    if match := _EQUAL.match(part):
        operator = Operator.NOT_IN if match[2] == "!=" else Operator.IN
        return Requirement(match[1], operator, frozenset((match[3],)))
    if match := _EXISTS.match(part):
        return Requirement(match[2], Operator.DOES_NOT_EXIST if match[1] else Operator.EXISTS)
    raise ValueError(f"not a requirement of a label selector: {part[:100]!r}")


def parse_fields(text: str) -> tuple[Field, ...]:
    """``spec.nodeName=n1,status.phase!=Failed``; in values, a backslash before ``,``, ``=``."""
    requirements = []
    for part in re.findall(r"(?:\\.|[^,\\])+", text, re.DOTALL):
        match = _FIELD.match(part)
        if match is None:
            raise ValueError(f"not a requirement of a field selector: {part[:100]!r}")
        value = re.sub(r"\\([\\,=])", r"\1", match[3])
        requirements.append(Field(match[1].strip(), value, equal=match[2] != "!="))
    return tuple(requirements)


def from_object(selector: object) -> Compiled | None:
    """A ``LabelSelector`` as objects hold it; ``None`` (matches nothing) for a missing one.

    ``ValueError`` where it is malformed.
    """
    if selector is None:
        return None
    if not isinstance(selector, Mapping):
        raise ValueError("the selector is not an object")
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    if not isinstance(wanted, Mapping) or not isinstance(expressions, Sequence):
        raise ValueError("matchLabels is not an object, or matchExpressions is not a list")
    exact = [
        Requirement(str(key), Operator.IN, frozenset((str(value),)))
        for key, value in wanted.items()
    ]
    return Compiled(tuple(map(_checked, (*exact, *map(_expression, expressions)))))


def _expression(expression: object) -> Requirement:
    if not isinstance(expression, Mapping) or not isinstance(expression.get("key"), str):
        raise ValueError(f"not an expression with a key: {str(expression)[:100]}")
    operator = Operator(expression.get("operator"))
    values = expression.get("values") or ()
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise ValueError(f"values of {expression['key']!r} are no list")
    if bool(values) is not (operator in {Operator.IN, Operator.NOT_IN}):
        raise ValueError(f"{operator.value} of {expression['key']!r} with {len(values)} values")
    return Requirement(expression["key"], operator, frozenset(map(str, values)))


def _at(body: Mapping[str, Any], path: str) -> str:
    """A field as text; missing is empty, true and false as JSON writes them."""
    value = _at_any(body, tuple(path.lstrip(".").split(".")))
    if value is None or isinstance(value, Mapping | list):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _at_any(body: Mapping[str, Any], steps: tuple[str, ...]) -> Any:
    value: Any = body
    for step in steps:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


EVERYTHING = Selector()
