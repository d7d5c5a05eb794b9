"""Sets of characters of a regular expression, as ranges in order that do not touch.

Covers: merging, what is outside, other cases, the named classes. Does not cover: classes of
Unicode.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable

Ranges = tuple[tuple[int, int], ...]
LAST = 0x10FFFF
#: No character beyond this one has another case.
_LAST_LETTER = 0x1E943


def pairs(text: str) -> Ranges:
    """``AZaz``: A to Z and a to z."""
    return tuple((ord(low), ord(high)) for low, high in zip(text[::2], text[1::2], strict=True))


WORD = pairs("09AZ__az")
PERL = {"d": pairs("09"), "w": WORD, "s": pairs("\t\n\f\r  ")}
POSIX = {
    "alnum": pairs("09AZaz"),
    "alpha": pairs("AZaz"),
    "ascii": pairs("\0\x7f"),
    "blank": pairs("\t\t  "),
    "cntrl": pairs("\0\x1f\x7f\x7f"),
    "digit": pairs("09"),
    "graph": pairs("!~"),
    "lower": pairs("az"),
    "print": pairs(" ~"),
    "punct": pairs("!/:@[`{~"),
    "space": pairs("\t\r  "),
    "upper": pairs("AZ"),
    "word": WORD,
    "xdigit": pairs("09AFaf"),
}


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """In order, and as few as there can be."""
    kept: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if kept and low <= kept[-1][1] + 1:
            kept[-1] = (kept[-1][0], max(kept[-1][1], high))
        else:
            kept.append((low, high))
    return tuple(kept)


def others(ranges: Ranges) -> Ranges:
    """All characters that are in none of them; never empty, so that it stays a character."""
    gaps, begin = [], 0
    for low, high in ranges:
        if low > begin:
            gaps.append((begin, low - 1))
        begin = max(begin, high + 1)
    return (*gaps, (begin, LAST)) if begin <= LAST else (*gaps, (LAST + 1, LAST + 1))


def letters(ranges: Ranges) -> list[int]:
    """Those of them that have another case; none where all that there are are in one range."""
    cased = _by_case()[0]
    return [
        code
        for low, high in ranges
        if low > cased[0] or high < cased[-1]
        for code in cased[bisect.bisect_left(cased, low) : bisect.bisect_right(cased, high)]
    ]


def with_cases(ranges: Ranges, of: list[int]) -> Ranges:
    """With the other cases of these letters: ``k`` has ``K`` and the sign of kelvin."""
    same = _by_case()[1]
    return merged([*ranges, *((case, case) for code in of for case in same[code])])


@functools.cache
def _by_case() -> tuple[list[int], dict[int, list[int]]]:
    """The characters that have another case, in order; and by each all that are its cases."""
    groups: dict[str, list[int]] = {}
    for code in range(_LAST_LETTER + 1):
        groups.setdefault(_fold(chr(code)), []).append(code)
    same = {code: group for group in groups.values() if len(group) > 1 for code in group}
    return sorted(same), same


def _fold(letter: str) -> str:
    """Unicode's simple folding: one character for one; Turkish letters stay apart."""
    folds = (letter.casefold(), letter.lower())
    return next((fold for fold in folds if len(fold) == 1), letter)
