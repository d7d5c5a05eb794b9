"""Regular expressions as RE2 has them, for ``matches``: whether a text has a part that fits.

Covers: literals, classes (Perl's and POSIX's), groups, alternatives, repetition, anchors, word
bounds, flags. Does not cover: where a part fits; classes of Unicode and quoted parts (refused).

All ways through a pattern are followed at once, so the time is bounded by text times pattern:
Python's ``re`` may take exponential time, and takes back-references that RE2 refuses.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable

from koordlet.scheduler.claims import cel_regex_program as program

#: The most of one repetition, as in RE2.
MOST_REPEATS = 1000
_LAST = 0x10FFFF


_PERL = {"d": program.pairs("09"), "w": program.WORD, "s": program.pairs("\t\n\f\r  ")}
_POSIX = {
    "alnum": program.pairs("09AZaz"),
    "alpha": program.pairs("AZaz"),
    "ascii": program.pairs("\0\x7f"),
    "blank": program.pairs("\t\t  "),
    "cntrl": program.pairs("\0\x1f\x7f\x7f"),
    "digit": program.pairs("09"),
    "graph": program.pairs("!~"),
    "lower": program.pairs("az"),
    "print": program.pairs(" ~"),
    "punct": program.pairs("!/:@[`{~"),
    "space": program.pairs("\t\r  "),
    "upper": program.pairs("AZ"),
    "word": program.WORD,
    "xdigit": program.pairs("09AFaf"),
}
_ESCAPES = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_REPEATS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@functools.lru_cache(maxsize=1000)
def compile(pattern: str) -> program.Program:  # noqa: A001 -- re.compile's name, for the same deed
    """A pattern made ready; ``EvaluationError`` in Go's words where it is none."""
    return program.Program(_Parser(pattern).whole(), pattern)


def _others(ranges: Iterable[tuple[int, int]]) -> program.Ranges:
    """All characters that are in none of them; never empty, so that it stays a character."""
    others, begin = [], 0
    for low, high in sorted(ranges):
        if low > begin:
            others.append((begin, low - 1))
        begin = max(begin, high + 1)
    return (*others, (begin, _LAST)) if begin <= _LAST else (*others, (_LAST + 1, _LAST + 1))


def _folded(ranges: Iterable[tuple[int, int]]) -> program.Ranges:
    """With the other case of each; wide ranges have the ASCII letters alone."""
    folded = list(ranges)
    for low, high in tuple(folded):
        for code in range(low, min(high, low + 512) + 1):
            cases = (chr(code).lower(), chr(code).upper())
            folded += [(ord(other), ord(other)) for other in cases if len(other) == 1]
    return tuple(folded)


class _Parser:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at, self._flags, self._depth = pattern, 0, frozenset[str](), 0

    def whole(self) -> program.Part:
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

    def _alternatives(self) -> program.Part:
        parts = [self._concatenation()]
        while self._taken("|"):
            parts.append(self._concatenation())
        return program.any_of(parts)

    def _concatenation(self) -> program.Part:
        parts: list[program.Part] = []
        while self._at < len(self._pattern) and not self._ahead("|") and not self._ahead(")"):
            begin = self._at
            parts.append(self._repetition(self._atom(), begin))
        return program.sequence(parts)

    def _repetition(self, part: program.Part, begin: int) -> program.Part:
        again = False
        while (bounds := self._bounds()) is not None:
            if again:
                raise program.error(
                    "invalid nested repetition operator", self._pattern[begin : self._at]
                )
            part, begin, again = program.repeated(part, *bounds), self._at - 1, True
            self._taken("?")
        return part

    def _bounds(self) -> tuple[int, int | None] | None:
        sign = self._pattern[self._at : self._at + 1]
        if sign in _REPEATS:
            self._at += 1
            return _REPEATS[sign]
        return self._counted()

    def _counted(self) -> tuple[int, int | None] | None:
        """``{2}``, ``{2,}`` or ``{2,3}``; other braces are characters."""
        inside, closed, _ = self._pattern[self._at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        numbers = [each for each in (low, high) if each]
        if not (self._ahead("{") and closed and low) or not all(
            each.isascii() and each.isdigit() for each in numbers
        ):
            return None
        least = int(low[:6])
        most = int(high[:6]) if high else None if comma else least
        self._at += len(inside) + 2
        if least > MOST_REPEATS or (most is not None and not least <= most <= MOST_REPEATS):
            raise program.error("invalid repeat count", f"{{{inside}}}")
        return least, most

    def _atom(self) -> program.Part:
        sign = self._next()
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._class()
        if sign in "^$":
            line = sign if "m" in self._flags else "A" if sign == "^" else "z"
            return program.assertion(line)
        if sign == ".":
            return program.character(((0, _LAST),) if "s" in self._flags else _others([(10, 10)]))
        if sign in "*+?":
            raise program.error("missing argument to repetition operator", sign)
        if sign == "\\":
            return self._escape()
        return self._literal(ord(sign))

    def _literal(self, code: int) -> program.Part:
        ranges = ((code, code),)
        return program.character(_folded(ranges) if "i" in self._flags else ranges)

    def _group(self) -> program.Part:
        self._depth += 1
        if self._depth > 200:
            raise program.error("expression nests too deeply", self._pattern)
        outer = self._flags
        if self._taken("?") and not self._name() and not self._flags_end():
            self._depth -= 1
            return program.sequence([])
        part = self._alternatives()
        if not self._taken(")"):
            raise program.error("missing closing )", self._pattern)
        self._flags = outer
        self._depth -= 1
        return part

    def _name(self) -> bool:
        if not (
            self._ahead("P<")
            or (self._ahead("<") and self._pattern[self._at + 1 :][:1] not in "=!")
        ):
            return False
        begin = self._at - 2
        name, closed, _ = self._pattern[self._pattern.index("<", self._at) + 1 :].partition(">")
        if (
            not closed
            or not name
            or not set(name) <= set(string.ascii_letters + string.digits + "_")
        ):
            raise program.error("invalid named capture", self._pattern[begin:])
        self._at = self._pattern.index(">", self._at) + 1
        return True

    def _flags_end(self) -> bool:
        """Flags of a group, or of what follows in the group around; whether it is a group."""
        begin, sign, flags = self._at - 2, True, set(self._flags)
        while self._at < len(self._pattern):
            letter = self._next()
            if letter in ":)":
                self._flags = frozenset(flags)
                return letter == ":"
            if letter == "-" and sign:
                sign = False
            elif letter in "imsU":
                (flags.add if sign else flags.discard)(letter)
            else:
                break
        raise program.error("invalid or unsupported Perl syntax", self._pattern[begin : self._at])

    def _class(self) -> program.Part:
        begin, negated = self._at - 1, self._taken("^")
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self._ahead("]"):
            first = False
            if self._at >= len(self._pattern):
                raise program.error("missing closing ]", self._pattern[begin:])
            ranges += self._member(begin)
        self._at += 1
        if "i" in self._flags:
            ranges = list(_folded(ranges))
        return program.character(_others(ranges) if negated else tuple(ranges))

    def _member(self, begin: int) -> program.Ranges:
        if self._taken("[:"):
            name, closed, _ = self._pattern[self._at :].partition(":]")
            self._at += len(name) + 2
            known = _POSIX.get(name.removeprefix("^"))
            if not closed or known is None:
                raise program.error("invalid character class range", f"[:{name}:]")
            return _others(known) if name.startswith("^") else known
        at = self._at
        low = self._bound(begin)
        if not isinstance(low, int):
            return low
        if not self._ahead("-") or self._pattern[self._at + 1 : self._at + 2] in ("", "]"):
            return ((low, low),)
        self._at += 1
        high = self._bound(begin)
        if not isinstance(high, int) or high < low:
            raise program.error("invalid character class range", self._pattern[at : self._at])
        return ((low, high),)

    def _bound(self, begin: int) -> int | program.Ranges:
        if self._at >= len(self._pattern):
            raise program.error("missing closing ]", self._pattern[begin:])
        letter = self._next()
        return self._escaped() if letter == "\\" else ord(letter)

    def _escape(self) -> program.Part:
        letter = self._pattern[self._at : self._at + 1]
        if letter and letter in "AzbB":
            self._at += 1
            return program.assertion(letter)
        meaning = self._escaped()
        if isinstance(meaning, int):
            return self._literal(meaning)
        return program.character(meaning)

    def _escaped(self) -> int | program.Ranges:
        """What follows a backslash: a character, or a class of Perl's."""
        if self._at >= len(self._pattern):
            raise program.error("trailing backslash at end of expression", "")
        letter = self._next()
        if letter.lower() in _PERL:
            known = _PERL[letter.lower()]
            return known if letter.islower() else _others(known)
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if letter == "x":
            return self._hexadecimal()
        if letter.isalnum() or ord(letter) > 0x7F:
            raise program.error("invalid escape sequence", f"\\{letter}")
        return ord(letter)

    def _hexadecimal(self) -> int:
        rest = self._pattern[self._at :]
        braced = rest.startswith("{")
        digits = rest[1:].partition("}")[0] if braced else rest[:2]
        is_number = 0 < len(digits) <= 6 and set(digits) <= set(string.hexdigits)
        if not is_number or (not braced and len(digits) < 2) or int(digits, 16) > _LAST:
            raise program.error("invalid escape sequence", f"\\x{rest[:2]}")
        self._at += len(digits) + (2 if braced else 0)
        return int(digits, 16)
