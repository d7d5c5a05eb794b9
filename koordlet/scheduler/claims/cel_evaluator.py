"""Trees of CEL as closures: one for each node, made once, called for each device.

Covers: names, fields and indices, operators with absorbed errors, macros, optional syntax; types
that are known without a device. Does not cover: the variables (``selector``), functions by
name (``cel_functions``).

A closure takes the frame: what the evaluation may still cost, then one place for each variable.
Types are spelled as CEL spells them; ``dyn`` is one that only an evaluation shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from koordlet.scheduler.claims import cel_functions, cel_macros, cel_values
from koordlet.scheduler.claims.cel_syntax import CompileError, Node
from koordlet.scheduler.claims.cel_values import EvaluationError, Frame, Run

_TYPES = frozenset(
    ("bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint")
)
_NUMBERS = frozenset(("int", "uint", "double"))
_SUMS = frozenset(("int", "uint", "double", "string", "bytes", "list"))
_ORDERED = frozenset(("bool", "int", "uint", "double", "string", "bytes"))
#: What is never null.
_SCALARS = frozenset(("bool", "bytes", "double", "int", "string", "type", "uint"))
_ORDERS: dict[str, frozenset[int]] = {
    "<": frozenset((-1,)),
    "<=": frozenset((-1, 0)),
    ">": frozenset((1,)),
    ">=": frozenset((0, 1)),
}
_TWO_OPERANDS: dict[str, Callable[[Frame, Any, Any], Any]] = {
    "+": cel_values.add,
    **{sign: cel_values.arithmetic(sign) for sign in "-*/%"},
}


def literal(value: Any) -> cel_values.CompiledNode:
    """A node whose value is known."""
    return cel_values.CompiledNode(lambda _: value, cel_values.type_name(value))


class Compiler:
    """Compiles one expression; each variable of a macro gets a place in the frame of its own."""

    def __init__(
        self, variables: Mapping[str, str], objects: Mapping[str, Mapping[str, str]]
    ) -> None:
        self._objects = objects
        self.scope = {
            name: (place, kind) for place, (name, kind) in enumerate(variables.items(), 1)
        }
        self.places = 1 + len(variables)

    def compile(self, node: Node) -> cel_values.CompiledNode:
        if node.kind == "literal":
            return literal(node.value)
        return _KINDS[node.kind](self, node)

    def inside(
        self, variables: Sequence[Node], kinds: Sequence[str], bodies: tuple[Node, ...]
    ) -> tuple[list[int], list[cel_values.CompiledNode]]:
        """Bodies compiled where some variables more are known, and the variables' places."""
        outer, places = self.scope, []
        for variable, kind in zip(variables, kinds, strict=True):
            if variable.kind != "name":
                raise CompileError("argument must be a simple name", variable.at)
            self.scope = {**self.scope, str(variable.value): (self.places, kind)}
            places.append(self.places)
            self.places += 1
        parts = [self.compile(body) for body in bodies]
        self.scope = outer
        return places, parts

    def name(self, node: Node) -> cel_values.CompiledNode:
        known = self.scope.get(str(node.value))
        if known is None:
            if node.value in _TYPES:
                return literal(cel_values.TypeValue(str(node.value)))
            raise undeclared(node)
        place, kind = known
        if kind in self._objects:
            return cel_values.CompiledNode(lambda frame: frame[place], kind)

        def run(frame: Frame) -> Any:
            value = frame[place]
            if type(value) is EvaluationError:
                # Of ``cel.bind``: it counts only where it is needed. A new one each time, because
                # an error remembers every place where it was raised.
                raise EvaluationError(*value.args)
            return value

        return cel_values.CompiledNode(run, kind)

    def select(self, node: Node) -> cel_values.CompiledNode:
        field = str(node.value)
        operand, kind = self.compile(node.children[0])
        fields = self._objects.get(kind)
        if fields is not None:
            if field not in fields:
                raise CompileError(f"undefined field '{field}'", node.at)
            return cel_values.CompiledNode(lambda frame: operand(frame)[field], fields[field])
        if cel_values.base(kind) not in ("map", "dyn", "optional_type"):
            raise CompileError(f"type '{kind}' does not support field selection", node.at)
        if node.kind == "select?":
            return cel_values.CompiledNode(
                lambda frame: _optional_index(operand(frame), field), _optional_kind(kind)
            )
        return cel_values.CompiledNode(
            lambda frame: index(operand(frame), field), _index_kind(kind)
        )

    def operator(self, node: Node) -> cel_values.CompiledNode:
        operator = str(node.value)
        parts = [self.compile(child) for child in node.children]
        gives = _result(operator, [part.type for part in parts])
        if gives is None:
            kinds = ", ".join(part.type for part in parts)
            spelled = operator if "_" in operator else f"_{operator}_"
            raise CompileError(
                f"found no matching overload for '{spelled}' applied to '({kinds})'", node.at
            )
        return cel_values.CompiledNode(_operator(operator, [part.run for part in parts]), gives)

    def listed(self, node: Node) -> cel_values.CompiledNode:
        parts = [(child.kind == "optional", self._element(child)) for child in node.children]
        kinds = {"dyn" if optional else part.type for optional, part in parts}
        gives = f"list:{kinds.pop()}" if len(kinds) == 1 else "list:dyn"
        if not any(optional for optional, _ in parts):
            runs = [part.run for _, part in parts]
            return cel_values.CompiledNode(lambda frame: [run(frame) for run in runs], gives)

        def run(frame: Frame) -> list[Any]:
            values = []
            for optional, part in parts:
                value = part.run(frame)
                if not optional:
                    values.append(value)
                elif _held(value).present:
                    values.append(value.value)
            return values

        return cel_values.CompiledNode(run, gives)

    def _element(self, node: Node) -> cel_values.CompiledNode:
        return self.compile(node.children[0] if node.kind == "optional" else node)

    def mapped(self, node: Node) -> cel_values.CompiledNode:
        entries = [
            (
                entry.kind == "optional",
                self.compile(entry.children[0]).run,
                self.compile(entry.children[1]).run,
            )
            for entry in node.children
        ]

        def run(frame: Frame) -> dict[Any, Any]:
            values: dict[Any, Any] = {}
            for optional, name, value in entries:
                known, held = cel_values.key(name(frame)), value(frame)
                if known in values:
                    raise EvaluationError(f"Failed with repeated key: {known}")
                if not optional:
                    values[known] = held
                elif _held(held).present:
                    values[known] = held.value
            return values

        return cel_values.CompiledNode(run, "map:dyn")

    def call(self, node: Node) -> cel_values.CompiledNode:
        """A macro, or a function with or without a target."""
        macro = cel_macros.find(node)
        if macro is not None:
            return cel_values.CompiledNode(*macro(self, node))
        name, arguments = str(node.value), node.children
        if node.kind == "method" and arguments[0].kind == "name":
            qualified = f"{arguments[0].value}.{name}"
            if qualified in cel_functions.FUNCTIONS and arguments[0].value not in self.scope:
                name, arguments = qualified, arguments[1:]
                return self._function(node, name, arguments, method=False)
        return self._function(node, name, arguments, method=node.kind == "method")

    def _function(
        self, node: Node, name: str, arguments: tuple[Node, ...], *, method: bool
    ) -> cel_values.CompiledNode:
        known = cel_functions.FUNCTIONS.get(name)
        if known is None:
            raise undeclared(node)
        parts = [self.compile(argument) for argument in arguments]
        kinds = [part.type for part in parts]
        fitting = [
            overload for overload in known if overload.method == method and overload.accepts(kinds)
        ]
        if not fitting:
            shown = f"{kinds[0]}.({', '.join(kinds[1:])})" if method else f"({', '.join(kinds)})"
            raise CompileError(
                f"found no matching overload for '{name}' applied to '{shown}'", node.at
            )
        results = {overload.result(kinds) for overload in fitting}
        gives = results.pop() if len(results) == 1 else "dyn"
        return cel_values.CompiledNode(
            cel_functions.call(fitting, [part.run for part in parts]), gives
        )


def undeclared(node: Node) -> CompileError:
    """What a name means nothing is answered with."""
    return CompileError(f"undeclared reference to '{node.value}' (in container '')", node.at)


def index(operand: Any, place: Any) -> Any:
    """``operand[place]``; an absent key and a place outside of a list are errors."""
    kind = type(operand)
    if kind is dict or kind is cel_values.Domains:
        try:
            return operand[place if type(place) is str else cel_values.key(place)]
        except KeyError:
            raise EvaluationError(f"no such key: {place}") from None
    if kind is list:
        number = place if type(place) in cel_values.NUMBERS else None
        if number is None:
            raise EvaluationError(f"unsupported index type '{cel_values.type_name(place)}' in list")
        if not math.isfinite(number) or number != int(number):
            raise EvaluationError(f"unsupported index value {number} in list")
        if not 0 <= number < len(operand):
            raise EvaluationError(f"index out of bounds: {place}")
        return operand[int(number)]
    if kind is cel_values.Optional:
        return _optional_index(operand, place)
    raise EvaluationError(f"no such key: {place}")


def _index_kind(kind: str) -> str:
    """The type of an element; of what may be absent the element may be absent, too."""
    return _optional_kind(kind) if kind.startswith("optional_type") else cel_values.element(kind)


def _optional_kind(kind: str) -> str:
    held = cel_values.element(kind) if kind.startswith("optional_type") else kind
    return cel_values.optional_of(cel_values.element(held))


def _optional_index(operand: Any, place: Any) -> cel_values.Optional:
    if type(operand) is cel_values.Optional:
        if not cel_values.contains_place(operand, place):
            return cel_values.NONE
        operand = operand.value
    if not cel_values.contains_place(operand, place):
        return cel_values.NONE
    return cel_values.Optional(present=True, value=index(operand, place))


def _held(value: Any) -> cel_values.Optional:
    if type(value) is not cel_values.Optional:
        raise EvaluationError("cannot initialize an optional entry from a value that is none")
    return value


def _result(operator: str, kinds: list[str]) -> str | None:  # noqa: PLR0911 -- one answer an operator
    """The type that an operator gives; ``None``: it is not for these."""
    bases = [cel_values.base(kind) for kind in kinds]
    known = {kind for kind in bases if kind != "dyn"}
    alike = len(known) <= 1
    if operator in ("&&", "||", "!_"):
        return "bool" if known <= {"bool"} else None
    if operator == "-_":
        return kinds[0] if known <= {"int", "double"} else None
    if operator == "_?_:_":
        then, other = kinds[1:]
        if bases[0] not in ("bool", "dyn") or not cel_values.may_be(then, other):
            return None
        return then if then == other else bases[1] if bases[1] == bases[2] else "dyn"
    if operator in ("==", "!="):
        return "bool" if alike or ("null_type" in known and not known & _SCALARS) else None
    if operator in _ORDERS:
        fits = (known <= _ORDERED and alike) or known <= _NUMBERS
        return "bool" if fits else None
    if operator == "in":
        return "bool" if bases[1] in ("list", "map", "dyn") else None
    if operator in ("_[_]", "_[?_]"):
        fits = bases[0] in ("list", "map", "dyn", "optional_type")
        gives = _index_kind(kinds[0]) if operator == "_[_]" else _optional_kind(kinds[0])
        return gives if fits else None
    fits = alike and known <= (_SUMS if operator == "+" else _NUMBERS)
    if not fits or (operator == "%" and "double" in known):
        return None
    return kinds[0] if kinds[0] == kinds[1] else next(iter(known)) if len(known) == 1 else "dyn"


def _operator(operator: str, runs: list[Run]) -> Run:  # noqa: PLR0911 -- one closure an operator
    if operator in ("&&", "||"):
        return _logic(runs, ends=operator == "||")
    if operator == "_?_:_":
        return _choice(*runs)
    if operator in ("!_", "-_"):
        return _sign(operator, runs[0])
    left, right = runs
    if operator in ("==", "!="):
        return _equality(left, right, wanted=operator == "==")
    if operator in _ORDERS:
        wanted = _ORDERS[operator]
        return lambda frame: cel_values.order(frame, left(frame), right(frame)) in wanted
    if operator == "in":
        return lambda frame: _contains(frame, left(frame), right(frame))
    if operator == "_[_]":
        return lambda frame: index(left(frame), right(frame))
    if operator == "_[?_]":
        return lambda frame: _optional_index(left(frame), right(frame))
    apply = _TWO_OPERANDS[operator]
    return lambda frame: apply(frame, left(frame), right(frame))


def _logic(runs: list[Run], *, ends: bool) -> Run:
    """All operands in their order until one decides."""
    return lambda frame: cel_values.decided(frame, runs, ends=ends)


def _choice(condition: Run, then: Run, other: Run) -> Run:
    def run(frame: Frame) -> Any:
        chosen = condition(frame)
        if type(chosen) is not bool:
            raise EvaluationError("no such overload")
        return then(frame) if chosen else other(frame)

    return run


def _sign(operator: str, operand: Run) -> Run:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        if operator == "!_" and type(value) is bool:
            return not value
        if operator == "-_" and type(value) in (int, float):
            return cel_values.bounded(type(value), -value)
        raise EvaluationError("no such overload")

    return run


def _equality(left: Run, right: Run, *, wanted: bool) -> Run:
    def run(frame: Frame) -> bool:
        first, second = left(frame), right(frame)
        if type(first) is str and type(second) is str and len(first) < 100:
            return (first == second) is wanted
        return cel_values.equal(frame, first, second) is wanted

    return run


def _contains(frame: Frame, value: Any, inside: Any) -> bool:
    if isinstance(inside, dict):
        try:
            return cel_values.key(value) in inside
        except EvaluationError:
            return False
    if type(inside) is not list:
        raise EvaluationError("no such overload")
    cel_values.charge(frame, len(inside))
    return any(cel_values.equal(frame, value, element) for element in inside)


_KINDS: dict[str, Callable[[Compiler, Node], cel_values.CompiledNode]] = {
    "name": Compiler.name,
    "select": Compiler.select,
    "select?": Compiler.select,
    "call": Compiler.call,
    "method": Compiler.call,
    "operator": Compiler.operator,
    "list": Compiler.listed,
    "map": Compiler.mapped,
}
