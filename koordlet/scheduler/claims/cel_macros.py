"""Macros of CEL: what looks like a call and is syntax.

Covers: ``has``, ``cel.bind``, ``all exists exists_one map filter`` over lists and keys of maps,
``optMap optFlatMap`` over a value that may be absent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from koordlet.scheduler.claims import cel_values
from koordlet.scheduler.claims.cel_syntax import CompileError, Node
from koordlet.scheduler.claims.cel_values import EvaluationError, Frame, Run


class MacroCompiler(Protocol):
    """What a macro needs to compile its parts."""

    def compile(self, node: Node) -> cel_values.CompiledNode: ...

    def inside(
        self, variable: Node, kind: str, bodies: tuple[Node, ...]
    ) -> tuple[int, list[cel_values.CompiledNode]]: ...


Macro = Callable[[MacroCompiler, Node], tuple[Run, str]]
_MAPPINGS = ("optMap", "optFlatMap")
_LOOPS = {"all": (3,), "exists": (3,), "exists_one": (3,), "map": (3, 4), "filter": (3,)}


def find(node: Node) -> Macro | None:
    """The macro that a call is, if it is one."""
    if node.kind == "call":
        return _has if node.value == "has" and len(node.children) == 1 else None
    if node.value == "bind" and node.children[0].value == "cel" and len(node.children) == 4:
        return _bind
    if node.value in _MAPPINGS and len(node.children) == 3:
        return _mapped
    return _loop if len(node.children) in _LOOPS.get(str(node.value), ()) else None


def _has(compiler: MacroCompiler, node: Node) -> tuple[Run, str]:
    field = node.children[0]
    if field.kind != "select":
        raise CompileError("invalid argument to has() macro", node.at)
    operand, name = compiler.compile(field.children[0]).run, field.value
    compiler.compile(field)
    return (lambda frame: cel_values.contains_place(operand(frame), name)), "bool"


def _bind(compiler: MacroCompiler, node: Node) -> tuple[Run, str]:
    bound = compiler.compile(node.children[2])
    place, (body,) = compiler.inside(node.children[1], bound.type, node.children[3:])

    def run(frame: Frame) -> Any:
        frame[place] = bound.run(frame)
        return body.run(frame)

    return run, body.type


def _mapped(compiler: MacroCompiler, node: Node) -> tuple[Run, str]:
    """What is there handed to an expression; ``optFlatMap``: that may give nothing, too."""
    optional = compiler.compile(node.children[0])
    held = cel_values.element(optional.type)
    place, (body,) = compiler.inside(node.children[1], held, node.children[2:])
    wraps = node.value == "optMap"

    def run(frame: Frame) -> cel_values.Optional:
        known = optional.run(frame)
        if type(known) is not cel_values.Optional:
            raise EvaluationError("no such overload")
        if not known.present:
            return known
        frame[place] = known.value
        outcome = body.run(frame)
        if wraps:
            return cel_values.Optional(present=True, value=outcome)
        if type(outcome) is not cel_values.Optional:
            raise EvaluationError("no such overload")
        return outcome

    return run, cel_values.optional_of(body.type) if wraps else body.type


def _loop(compiler: MacroCompiler, node: Node) -> tuple[Run, str]:  # noqa: C901 -- five macros, one walk
    macro = str(node.value)
    over = compiler.compile(node.children[0])
    kind = cel_values.base(over.type)
    if kind not in ("list", "map", "dyn"):
        raise CompileError(f"expression of type '{over.type}' cannot be range", node.at)
    each = cel_values.element(over.type) if kind == "list" else "dyn"
    place, bodies = compiler.inside(node.children[1], each, node.children[2:])
    test, last = bodies[0].run, bodies[-1].run
    cost = 1 + sum(body.levels for body in node.children[2:])

    def outcomes(frame: Frame, run: Run) -> Any:
        for value in _elements(over.run(frame)):
            cel_values.charge(frame, cost)
            frame[place] = value
            yield value, run(frame)

    def truths(frame: Frame) -> Any:
        for value, outcome in outcomes(frame, test):
            if type(outcome) is not bool:
                raise EvaluationError("no such overload")
            yield value, outcome

    def decided(frame: Frame) -> bool:
        return _decided(frame, over.run, test, place, cost, ends=macro == "exists")

    if macro in ("all", "exists"):
        return decided, "bool"
    if macro == "exists_one":
        return (lambda frame: sum(held for _, held in truths(frame)) == 1), "bool"
    if macro == "filter":
        return (lambda frame: [value for value, held in truths(frame) if held]), over.type
    if len(bodies) == 2:
        return (lambda frame: [last(frame) for _, held in truths(frame) if held]), "list:dyn"
    return (lambda frame: [made for _, made in outcomes(frame, last)]), f"list:{bodies[0].type}"


def _decided(frame: Frame, over: Run, test: Run, place: int, cost: int, *, ends: bool) -> bool:
    """``all`` or ``exists``: the first that decides; an error counts only if none does."""
    error: EvaluationError | None = None
    for value in _elements(over(frame)):
        cel_values.charge(frame, cost)
        frame[place] = value
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


def _elements(values: Any) -> list[Any]:
    """What a macro goes through: elements of a list, keys of a map."""
    if isinstance(values, dict):
        return cel_values.keys(values)
    if type(values) is not list:
        name = cel_values.type_name(values)
        own = name.removeprefix("kubernetes.")
        shown = f"types.{name.title()}" if own == name else f"cel.{own}"
        raise EvaluationError(f"got '{shown}', expected iterable type")
    return values
