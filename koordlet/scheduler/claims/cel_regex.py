r"""Regular expressions as RE2 has them, for ``matches``: whether a text has a part that fits.

Covers: literals, quoted parts, classes (Perl's and POSIX's), groups, alternatives, repetition,
anchors, word bounds, flags. Does not cover: where a part fits. Refused, though RE2 has them:
classes of Unicode (``\p``), groups more than 100 deep, more than 10,000 instructions.

All ways through a pattern are followed at once, so the time is bounded by text times pattern:
Python's ``re`` may take exponential time, and takes back-references that RE2 refuses. Here it
reads signs of the pattern alone.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from koordlet.scheduler.claims import cel_regex_program as program
from koordlet.scheduler.claims import cel_regex_ranges as sets
from koordlet.scheduler.claims.cel_values import EvaluationError

#: The most of one repetition and of those inside it, multiplied, as in RE2.
MOST_REPEATS = 1000
#: Groups in one another: reading and building take up to four calls for each.
DEEPEST = 100
_ESCAPES = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_REPEATS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
#: Braces that have no such numbers are characters.
_REPEAT = re.compile(r"([*+?]|\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\})\??")
_NAME = re.compile(r"\?P?<[0-9A-Za-z_]+>")
_FLAGS = re.compile(r"\?([imsU]*)(?:-([imsU]*))?")
_OCTAL = re.compile(r"[1-7][0-7]{1,2}|0[0-7]{0,2}")
_HEXADECIMAL = re.compile(r"x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")


class Outcome(NamedTuple):
    """What became of a pattern."""

    #: What making it ready took; a refused pattern takes as much.
    work: int
    program: program.Program | None
    why_not: str = ""

    def steps(self, text: str) -> int:
        """The most that making it ready and following a text take."""
        return self.work + len(text) * (self.program.size if self.program else 0)


@functools.lru_cache(maxsize=100)
def outcome(pattern: str) -> Outcome:
    """A pattern made ready, or why it is none, in Go's words."""
    parser = _Parser(pattern)
    try:
        part = parser.whole()
    except EvaluationError as error:
        return Outcome(len(pattern) + parser.folded, None, str(error))
    try:
        ready = program.Program(part, pattern)
    except EvaluationError as error:
        return Outcome(len(pattern) + program.MOST_INSTRUCTIONS, None, str(error))
    return Outcome(len(pattern) + parser.folded + ready.size, ready)


def compiled(pattern: str) -> program.Program:
    """A pattern made ready; ``EvaluationError`` where it is none."""
    ready = outcome(pattern)
    if ready.program is None:
        raise EvaluationError(ready.why_not)
    return ready.program


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at, self._flags, self._depth = pattern, 0, frozenset[str](), 0
        #: Letters whose other cases were looked up.
        self.folded = 0

    def whole(self) -> program.Fragment:
        if len(self._pattern) > program.MOST_INSTRUCTIONS:
            raise program.error("expression too large", self._pattern)
        part = self._alternatives()
        if self._at < len(self._pattern):
            raise program.error("unexpected )", self._pattern)
        return part

    def _ahead(self, text: str) -> bool:
        return self._pattern.startswith(text, self._at)

    def _taken(self, text: str) -> bool:
        if not self._ahead(text):
            return False
        self._at += len(text)
        return True

    def _next(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1]

    def _alternatives(self) -> program.Fragment:
        parts = [self._concatenation()]
        while self._taken("|"):
            parts.append(self._concatenation())
        return program.any_of(parts)

    def _concatenation(self) -> program.Fragment:
        parts: list[program.Fragment] = []
        last: re.Match[str] | None = None
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            sign = _REPEAT.match(self._pattern, self._at)
            if sign is None:
                parts += self._atom()
            else:
                self._at = sign.end()
                self._repeat(parts, sign, last)
            last = sign
        return program.sequence(parts)

    def _repeat(
        self, parts: list[program.Fragment], sign: re.Match[str], last: re.Match[str] | None
    ) -> None:
        """The last part, as often as the sign says."""
        least, most = _bounds(sign)
        if last is not None:
            raise program.error("invalid nested repetition operator", last[0] + sign[0])
        if not parts:
            raise program.error("missing argument to repetition operator", sign[0])
        parts[-1] = program.repeated(parts[-1], least, most)
        if parts[-1].repeats > MOST_REPEATS:
            raise program.error("invalid repeat count", sign[0])

    def _atom(self) -> list[program.Fragment]:
        """One part; none for flags."""
        sign = self._next()
        if sign == "(":
            return self._group()
        if sign == "[":
            return [self._class()]
        if sign in "^$":
            line = sign if "m" in self._flags else "A" if sign == "^" else "z"
            return [program.assertion(line)]
        if sign == ".":
            line_end = () if "s" in self._flags else ((10, 10),)
            return [program.character(sets.others(line_end))]
        if sign == "\\":
            return self._quoted() if self._taken("Q") else [self._escape()]
        return [self._literal(ord(sign))]

    def _quoted(self) -> list[program.Fragment]:
        r"""Characters as they are, up to ``\E``."""
        quoted, end, _ = self._pattern[self._at :].partition("\\E")
        self._at += len(quoted + end)
        return [self._literal(ord(letter)) for letter in quoted]

    def _literal(self, code: int) -> program.Fragment:
        return program.character(self._cased(((code, code),)))

    def _cased(self, ranges: sets.Ranges) -> sets.Ranges:
        """With other cases, where they are to fit."""
        if "i" not in self._flags:
            return ranges
        letters = sets.letters(ranges)
        self.folded += len(letters)
        if self.folded > program.MOST_INSTRUCTIONS:
            raise program.error("expression too large", self._pattern)
        return sets.with_cases(ranges, letters)

    def _group(self) -> list[program.Fragment]:
        outer = self._flags
        if self._ahead("?") and not self._name() and not self._flags_end():
            return []
        self._depth += 1
        if self._depth > DEEPEST:
            raise program.error("expression nests too deeply", self._pattern)
        part = self._alternatives()
        if not self._taken(")"):
            raise program.error("missing closing )", self._pattern)
        self._flags = outer
        self._depth -= 1
        return [part]

    def _name(self) -> bool:
        named = _NAME.match(self._pattern, self._at)
        if named:
            self._at = named.end()
        elif self._ahead("?<") or self._ahead("?P<"):
            end = self._pattern.find(">", self._at) + 1
            raise program.error("invalid named capture", self._pattern[self._at - 1 : end or None])
        return named is not None

    def _flags_end(self) -> bool:
        """Flags of a group, or of what follows in the group around; whether it is a group."""
        begin, flags = self._at - 1, _FLAGS.match(self._pattern, self._at)
        self._at = (flags.end() if flags else self._at) + 1
        end = self._pattern[self._at - 1 : self._at]
        if flags is None or flags[2] == "" or end not in (":", ")"):
            why = "invalid or unsupported Perl syntax"
            raise program.error(why, self._pattern[begin : self._at])
        self._flags = (self._flags | set(flags[1])) - set(flags[2] or "")
        return end == ":"

    def _class(self) -> program.Fragment:
        begin, negated = self._at - 1, self._taken("^")
        plain: list[tuple[int, int]] = []
        groups: list[tuple[int, int]] = []
        first = True
        while first or not self._ahead("]"):
            first = False
            group = self._posix() or self._perl()
            groups += group
            if not group:
                plain.append(self._range(begin))
        self._at += 1
        ranges = sets.merged([*self._cased(sets.merged(plain)), *groups])
        return program.character(sets.others(ranges) if negated else ranges)

    def _posix(self) -> sets.Ranges:
        """A class such as ``[:alpha:]``, if there is one."""
        end = self._pattern.find(":]", self._at + 2) if self._ahead("[:") else -1
        if end < 0:
            return ()
        begin, self._at = self._at, end + 2
        name = self._pattern[begin + 2 : end]
        known = sets.POSIX.get(name.removeprefix("^"))
        if known is None:
            raise program.error("invalid character class range", self._pattern[begin : self._at])
        ranges = self._cased(known)
        return sets.others(ranges) if name.startswith("^") else ranges

    def _perl(self) -> sets.Ranges:
        r"""A class such as ``\d``, if there is one."""
        letter = self._pattern[self._at + 1 : self._at + 2] if self._ahead("\\") else ""
        known = sets.PERL.get(letter.lower())
        if known is None:
            return ()
        self._at += 2
        ranges = self._cased(known)
        return sets.others(ranges) if letter.isupper() else ranges

    def _range(self, begin: int) -> tuple[int, int]:
        at, low = self._at, self._bound(begin)
        if not self._ahead("-") or self._pattern[self._at + 1 : self._at + 2] in ("", "]"):
            return low, low
        self._at += 1
        high = self._bound(begin)
        if high < low:
            raise program.error("invalid character class range", self._pattern[at : self._at])
        return low, high

    def _bound(self, begin: int) -> int:
        if self._at >= len(self._pattern):
            raise program.error("missing closing ]", self._pattern[begin:])
        letter = self._next()
        return self._escaped() if letter == "\\" else ord(letter)

    def _escape(self) -> program.Fragment:
        letter = self._pattern[self._at : self._at + 1]
        if letter and letter in "AzbB":
            self._at += 1
            return program.assertion(letter)
        self._at -= 1
        if ranges := self._perl():
            return program.character(ranges)
        self._at += 1
        return self._literal(self._escaped())

    def _escaped(self) -> int:
        """The character that is meant by what follows a backslash."""
        if self._at >= len(self._pattern):
            raise program.error("trailing backslash at end of expression", "")
        if octal := _OCTAL.match(self._pattern, self._at):
            self._at = octal.end()
            return int(octal[0], 8)
        letter = self._next()
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter == "x":
            return self._hexadecimal()
        if letter.isalnum() or ord(letter) > 0x7F:
            raise program.error("invalid escape sequence", f"\\{letter}")
        return ord(letter)

    def _hexadecimal(self) -> int:
        digits = _HEXADECIMAL.match(self._pattern, self._at - 1)
        code = int(digits[1] or digits[2], 16) if digits else sets.LAST + 1
        if digits is None or code > sets.LAST:
            after = self._pattern[self._at : self._at + 2]
            raise program.error("invalid escape sequence", f"\\x{after}")
        self._at = digits.end()
        return code


def _bounds(sign: re.Match[str]) -> tuple[int, int | None]:
    r"""How often at least and at most: ``*``, ``{2}``, ``{2,}``, ``{2,3}``."""
    if sign[1] in _REPEATS:
        return _REPEATS[sign[1]]
    least = int(sign[2][:6])
    most = int(sign[4][:6]) if sign[4] else None if sign[3] else least
    if least > MOST_REPEATS or (most is not None and not least <= most <= MOST_REPEATS):
        raise program.error("invalid repeat count", sign[1])
    return least, most
