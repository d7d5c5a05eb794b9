"""Macros of CEL: what looks like a call and is syntax.

Covers: ``has``, ``cel.bind``, ``all exists exists_one map filter`` over lists and keys of maps,
those with two variables, ``optMap optFlatMap`` over a value that may be absent.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from koordlet.scheduler.claims import cel_values
from koordlet.scheduler.claims.cel_syntax import CompileError, Node
from koordlet.scheduler.claims.cel_values import EvaluationError, Frame, Run


class MacroCompiler(Protocol):
    """What a macro needs to compile its parts."""

    def compile(self, node: Node) -> cel_values.CompiledNode: ...

    def inside(
        self, variables: Sequence[Node], kinds: Sequence[str], bodies: tuple[Node, ...]
    ) -> tuple[list[int], list[cel_values.CompiledNode]]: ...


Macro = Callable[[MacroCompiler, Node], tuple[Run, str]]
_MAPPINGS = ("optMap", "optFlatMap")
#: Numbers of children: what they are over, variables, one expression or two.
_LOOPS = {"all": (3,), "exists": (3,), "exists_one": (3,), "map": (3, 4), "filter": (3,)}
_LOOPS_OF_TWO = {
    "all": (4,),
    "exists": (4,),
    "existsOne": (4,),
    "transformList": (4, 5),
    "transformMap": (4, 5),
    "transformMapEntry": (4, 5),
}


def find(node: Node) -> Macro | None:
    """The macro that a call is, if it is one."""
    if node.kind == "call":
        return _has if node.value == "has" and len(node.children) == 1 else None
    if node.value == "bind" and node.children[0].value == "cel" and len(node.children) == 4:
        return _bind
    if node.value in _MAPPINGS and len(node.children) == 3:
        return _mapped
    if len(node.children) in _LOOPS_OF_TWO.get(str(node.value), ()):
        return functools.partial(_loop, variables=2)
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
    (place,), (body,) = compiler.inside(node.children[1:2], [bound.type], node.children[3:])

    def run(frame: Frame) -> Any:
        try:
            frame[place] = bound.run(frame)
        except EvaluationError as error:
            frame[place] = error
        return body.run(frame)

    return run, body.type


def _mapped(compiler: MacroCompiler, node: Node) -> tuple[Run, str]:
    """What is there handed to an expression; ``optFlatMap``: that may give nothing, too."""
    optional = compiler.compile(node.children[0])
    held = cel_values.element(optional.type)
    (place,), (body,) = compiler.inside(node.children[1:2], [held], node.children[2:])
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


class _Rounds:
    """What a macro goes through, with its variables set: one of an element, or of place and value.

    The second is of each round what the macro may give: the element, or the place.
    """

    def __init__(self, compiler: MacroCompiler, node: Node, variables: int) -> None:
        self._over = compiler.compile(node.children[0])
        self.type = self._over.type
        kind = cel_values.base(self.type)
        if kind not in ("list", "map", "dyn"):
            raise CompileError(f"expression of type '{self.type}' cannot be range", node.at)
        several, bodies = node.children[1 : 1 + variables], node.children[1 + variables :]
        held = cel_values.element(self.type)
        kinds = [held] if kind == "list" else ["dyn"]
        if variables == 2:
            kinds = ["int" if kind == "list" else "dyn", held]
        self._places, self.bodies = compiler.inside(several, kinds, bodies)
        self._cost = 1 + sum(body.nodes for body in bodies)

    def __call__(self, frame: Frame) -> Iterator[Any]:
        values = self._over.run(frame)
        if len(self._places) == 1:
            (place,) = self._places
            for value in _elements(values):
                cel_values.charge(frame, self._cost)
                frame[place] = value
                yield value
            return
        first, second = self._places
        keys = range(len(values)) if type(values) is list else _elements(values)
        held = values if type(values) is list else values.values()
        for key, value in zip(keys, held, strict=True):
            cel_values.charge(frame, self._cost)
            frame[first], frame[second] = key, value
            yield key

    def held(self, frame: Frame, test: Run) -> Iterator[Any]:
        """Those of which an expression is true."""
        for value in self(frame):
            outcome = test(frame)
            if type(outcome) is not bool:
                raise EvaluationError("no such overload")
            if outcome:
                yield value


def _loop(compiler: MacroCompiler, node: Node, variables: int = 1) -> tuple[Run, str]:
    """With a variable for the element; of two one for the place or key and one for the value."""
    macro = str(node.value)
    rounds = _Rounds(compiler, node, variables)
    test, last = rounds.bodies[0].run, rounds.bodies[-1]
    if macro in ("all", "exists"):
        return _deciding(rounds, test, ends=macro == "exists"), "bool"
    if macro in ("exists_one", "existsOne"):
        return (lambda frame: sum(1 for _ in rounds.held(frame, test)) == 1), "bool"
    if macro == "filter":
        chosen = rounds.type if cel_values.base(rounds.type) == "list" else "list:dyn"
        return (lambda frame: list(rounds.held(frame, test))), chosen
    if macro in ("map", "transformList"):
        return _transforming(rounds), f"list:{last.type}"
    return _mapping(rounds, entries=macro == "transformMapEntry"), "map:dyn"


def _chosen(rounds: _Rounds) -> Callable[[Frame], Iterator[Any]]:
    """The rounds that count: all, or those of which the first of two expressions is true."""
    if len(rounds.bodies) == 1:
        return rounds
    test = rounds.bodies[0].run
    return lambda frame: rounds.held(frame, test)


def _transforming(rounds: _Rounds) -> Run:
    chosen, last = _chosen(rounds), rounds.bodies[-1].run
    return lambda frame: [last(frame) for _ in chosen(frame)]


def _mapping(rounds: _Rounds, *, entries: bool) -> Run:
    """A map by the same keys; ``entries``: of maps that an expression gives, no key twice."""
    chosen, last = _chosen(rounds), rounds.bodies[-1].run

    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key in chosen(frame):
            outcome = last(frame)
            if not entries:
                made[cel_values.key(key)] = outcome
                continue
            if not isinstance(outcome, dict):
                raise EvaluationError("no such overload")
            if repeated := made.keys() & outcome.keys():
                raise EvaluationError(f"insert failed: key {repeated.pop()} already exists")
            made |= outcome
        return made

    return run


def _deciding(rounds: _Rounds, test: Run, *, ends: bool) -> Run:
    """``all`` or ``exists``: up to the first that decides."""
    return lambda frame: cel_values.decided(frame, (test for _ in rounds(frame)), ends=ends)


def _elements(values: Any) -> Iterable[Any]:
    """What a macro goes through: elements of a list, keys of a map."""
    if isinstance(values, dict):
        return cel_values.keys(values)
    if type(values) is not list:
        name = cel_values.type_name(values)
        own = name.removeprefix("kubernetes.")
        shown = f"types.{name.title()}" if own == name else f"cel.{own}"
        raise EvaluationError(f"got '{shown}', expected iterable type")
    return values
