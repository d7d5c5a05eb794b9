r"""Regular expressions: whether a text has a part that fits, and which. RE2 looks for it.

Covers: what is refused, in Go's words; what a pattern and a text take at most. Does not cover:
groups of a pattern.

All ways through a pattern are followed at once, so the time is bounded by text times pattern:
Python's ``re`` may take exponential time, and takes back-references that RE2 refuses. Here it
reads escapes alone.

RE2 differs from Go, kube-scheduler's own, in one thing that is left: it works on bytes, so ``\B``
fits inside of a letter outside of ASCII.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from koordlet.scheduler.claims.cel_values import EvaluationError

#: A longer pattern is refused; what a refused one of many repetitions took.
MOST_CHARACTERS = 10_000
#: Of one pattern, in bytes: 16,000 instructions, and the memory of a search.
_MOST_MEMORY = 1 << 20
_TOO_LARGE = "expression too large"
_ESCAPE = "invalid escape sequence"
#: What RE2 says, and Go.
_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": _TOO_LARGE,
}
#: Quoted parts, and what is escaped: RE2 has single bytes (``\C``), Go has not.
_ESCAPES = re.compile(r"\\Q.*?(?:\\E|\Z)|\\(.)", re.DOTALL)


class Outcome(NamedTuple):
    """What became of a pattern."""

    #: What making it ready took; a refused pattern takes as much.
    work: int
    #: What RE2 made of it, which has no annotations; ``None``: it is no pattern.
    program: Any
    why_not: str = ""

    def steps(self, text: str) -> int:
        """The most that making it ready and following a text take."""
        return self.work + len(text) * (self.program.programsize if self.program else 0)

    def matches(self, text: str) -> bool:
        """Whether a part of a text fits; ``EvaluationError`` where the pattern is none."""
        if self.program is None:
            raise EvaluationError(self.why_not)
        try:
            return self.program.search(text) is not None
        except UnicodeEncodeError as error:
            raise EvaluationError("invalid UTF-8 in text") from error

    def parts(self, text: str) -> Iterator[str]:
        """What fits, from left to right; as in Go no empty part follows another one at once."""
        if self.program is None:
            raise EvaluationError(f"Illegal regex: {self.why_not}")
        before = -1
        try:
            for match in self.program.finditer(text):
                if match.end() > match.start() or match.start() != before:
                    yield match.group()
                before = match.end()
        except UnicodeEncodeError as error:
            raise EvaluationError("invalid UTF-8 in text") from error


@functools.lru_cache(maxsize=100)
def outcome(pattern: str) -> Outcome:
    """A pattern made ready, or why it is none, in Go's words."""
    import re2  # noqa: PLC0415 -- 4 MB that most schedulers do without

    if len(pattern) > MOST_CHARACTERS:
        return _refused(MOST_CHARACTERS, _TOO_LARGE, pattern)
    if any(escaped == "C" for escaped in _ESCAPES.findall(pattern)):
        return _refused(len(pattern), _ESCAPE, r"\C")
    options = re2.Options()
    options.log_errors, options.max_mem = False, _MOST_MEMORY
    try:
        program = re2.compile(pattern, options)
    except UnicodeEncodeError:
        return _refused(len(pattern), "invalid UTF-8", ascii(pattern))
    except re2.error as error:
        cause, _, where = error.args[0].decode(errors="replace").partition(": ")
        words = _WORDS.get(cause, cause)
        if words == _TOO_LARGE:
            return _refused(MOST_CHARACTERS, words, pattern)
        return _refused(len(pattern), words, where)
    return Outcome(len(pattern) + program.programsize, program)


def _refused(work: int, words: str, where: str) -> Outcome:
    return Outcome(work, None, f"error parsing regexp: {words}: `{where}`")
