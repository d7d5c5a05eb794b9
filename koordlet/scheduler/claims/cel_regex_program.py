"""What a regular expression becomes: steps that a text is led through, all ways at once.

Covers: characters, assertions, forks, loops; the bound of their number. Does not cover: how a
pattern is written (``cel_regex``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from koordlet.scheduler.claims.cel_values import EvaluationError

#: Instructions of one pattern.
MOST_INSTRUCTIONS = 10_000
Ranges = tuple[tuple[int, int], ...]


def pairs(text: str) -> Ranges:
    """``azAZ``: a to z and A to Z."""
    return tuple((ord(low), ord(high)) for low, high in zip(text[::2], text[1::2], strict=True))


WORD = pairs("09AZ__az")


class Instruction(NamedTuple):
    """A step of a pattern: a character of some ranges, an assertion, or a fork."""

    ranges: Ranges = ()
    #: ``^``, ``$`` (of a line), ``A``, ``z``, ``b``, ``B``; empty: no assertion.
    assertion: str = ""
    #: Where it goes on; several: all of them.
    then: tuple[int, ...] = ()


#: Builds a part in front of the instruction that follows; gives where it begins.
Part = Callable[["Program", int], int]


class Program:
    """A compiled pattern. Instruction 0 is the end."""

    def __init__(self, part: Part, pattern: str) -> None:
        self._steps: list[Instruction] = [Instruction()]
        self._pattern = pattern
        self._begin = part(self, 0)

    @property
    def size(self) -> int:
        """How many instructions it has."""
        return len(self._steps)

    def add(self, instruction: Instruction) -> int:
        """Its number."""
        if len(self._steps) >= MOST_INSTRUCTIONS:
            raise error("expression too large", self._pattern)
        self._steps.append(instruction)
        return len(self._steps) - 1

    def fork(self, place: int, *then: int) -> None:
        """Name the ways of an instruction that was added as a fork, for a loop."""
        self._steps[place] = Instruction(then=then)

    def matches(self, text: str) -> bool:
        """Whether a part of the text fits."""
        here: set[int] = set()
        for place in range(len(text) + 1):
            here.add(self._begin)
            here = self._reached(here, text, place)
            if 0 in here:
                return True
            if place < len(text):
                code = ord(text[place])
                here = {
                    self._steps[each].then[0]
                    for each in here
                    if any(low <= code <= high for low, high in self._steps[each].ranges)
                }
        return False

    def _reached(self, begins: Iterable[int], text: str, place: int) -> set[int]:
        """Where one comes to without a character more."""
        reached, waiting = set(), list(begins)
        while waiting:
            number = waiting.pop()
            if number in reached:
                continue
            reached.add(number)
            step = self._steps[number]
            if not step.ranges and (not step.assertion or _holds(step.assertion, text, place)):
                waiting += step.then
        return reached


def _holds(assertion: str, text: str, place: int) -> bool:
    if assertion in "A^":
        return place == 0 or (assertion == "^" and text[place - 1] == "\n")
    if assertion in "z$":
        return place == len(text) or (assertion == "$" and text[place] == "\n")
    before = place > 0 and _in(WORD, ord(text[place - 1]))
    after = place < len(text) and _in(WORD, ord(text[place]))
    return (before != after) is (assertion == "b")


def _in(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


def error(why: str, part: str) -> EvaluationError:
    """An error in Go's words."""
    return EvaluationError(f"error parsing regexp: {why}: `{part}`")


def sequence(parts: list[Part]) -> Part:
    """One after the other."""

    def build(program: Program, after: int) -> int:
        for part in reversed(parts):
            after = part(program, after)
        return after

    return build


def any_of(parts: list[Part]) -> Part:
    """Alternatives."""

    def build(program: Program, after: int) -> int:
        return program.add(Instruction(then=tuple(part(program, after) for part in parts)))

    return parts[0] if len(parts) == 1 else build


def repeated(part: Part, least: int, most: int | None) -> Part:
    """So many times; ``None``: without bound."""

    def build(program: Program, after: int) -> int:
        begin = after
        if most is None:
            begin = program.add(Instruction())
            program.fork(begin, part(program, begin), after)
        for _ in range((most or least) - least):
            begin = program.add(Instruction(then=(part(program, begin), after)))
        for _ in range(least):
            begin = part(program, begin)
        return begin

    return build


def character(ranges: Ranges) -> Part:
    """One character of some ranges."""
    return lambda program, after: program.add(Instruction(ranges=ranges, then=(after,)))


def assertion(kind: str) -> Part:
    """No character, but a place."""
    return lambda program, after: program.add(Instruction(assertion=kind, then=(after,)))
