"""What a regular expression becomes: steps that a text is led through, all ways at once.

Covers: characters, assertions, forks, loops; the bound of their number. Does not cover: how a
pattern is written (``cel_regex``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from koordlet.scheduler.claims.cel_regex_ranges import WORD, Ranges
from koordlet.scheduler.claims.cel_values import EvaluationError

#: The most work of one pattern for one character.
MOST_INSTRUCTIONS = 10_000


class Instruction(NamedTuple):
    """A step of a pattern: a character of some ranges, an assertion, or a fork."""

    ranges: Ranges = ()
    #: ``^``, ``$`` (of a line), ``A``, ``z``, ``b``, ``B``; empty: no assertion.
    assertion: str = ""
    #: Where it goes on; several: all of them.
    then: tuple[int, ...] = ()


class Fragment(NamedTuple):
    """A piece of a pattern."""

    #: Builds it in front of the instruction that follows; gives where it begins.
    build: Callable[[Program, int], int]
    #: How many times its innermost repetition is repeated, counts alone.
    repeats: int = 1


class Program:
    """A compiled pattern. Instruction 0 is the end."""

    def __init__(self, part: Fragment, pattern: str) -> None:
        self._steps: list[Instruction] = [Instruction()]
        self._pattern = pattern
        #: The most work for one character: instructions, their ranges and ways.
        self.size = 1
        self._begin = part.build(self, 0)

    def add(self, instruction: Instruction) -> int:
        """Its number."""
        self.size += max(1, len(instruction.ranges), len(instruction.then))
        if self.size > MOST_INSTRUCTIONS:
            raise error("expression too large", self._pattern)
        self._steps.append(instruction)
        return len(self._steps) - 1

    def loop(self, part: Fragment, after: int) -> tuple[int, int]:
        """A fork to a part that leads back to it, or on; where that part begins."""
        fork = self.add(Instruction(then=(after, after)))
        begin = part.build(self, fork)
        self._steps[fork] = Instruction(then=(begin, after))
        return fork, begin

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


def _nothing(_program: Program, after: int) -> int:
    return after


def _deepest(parts: list[Fragment]) -> int:
    return max((part.repeats for part in parts), default=1)


def sequence(parts: list[Fragment]) -> Fragment:
    """One after the other; what fits the empty text alone is left out, so that all builds add."""
    builds = [part.build for part in reversed(parts) if part.build is not _nothing]

    def build(program: Program, after: int) -> int:
        for each in builds:
            after = each(program, after)
        return after

    return Fragment(build if len(builds) > 1 else (*builds, _nothing)[0], _deepest(parts))


def any_of(parts: list[Fragment]) -> Fragment:
    """Alternatives."""

    def build(program: Program, after: int) -> int:
        return program.add(Instruction(then=tuple(part.build(program, after) for part in parts)))

    return parts[0] if len(parts) == 1 else Fragment(build, _deepest(parts))


def repeated(part: Fragment, least: int, most: int | None) -> Fragment:
    """So many times; ``None``: without bound."""

    def build(program: Program, after: int) -> int:
        begin, left = after, least
        if most is None:
            fork, inside = program.loop(part, after)
            begin, left = (inside, least - 1) if least else (fork, 0)
        for _ in range((most or least) - least):
            begin = program.add(Instruction(then=(part.build(program, begin), after)))
        for _ in range(left):
            begin = part.build(program, begin)
        return begin

    if most == 0:
        return Fragment(_nothing)
    times = max(1, least if most is None else most)
    return Fragment(_nothing if part.build is _nothing else build, part.repeats * times)


def character(ranges: Ranges) -> Fragment:
    """One character of some ranges."""
    return Fragment(lambda program, after: program.add(Instruction(ranges=ranges, then=(after,))))


def assertion(kind: str) -> Fragment:
    """No character, but a place."""
    return Fragment(lambda program, after: program.add(Instruction(assertion=kind, then=(after,))))
