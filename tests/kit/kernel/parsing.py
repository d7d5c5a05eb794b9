"""How the kernel reads the texts that are written to control files.

Covers: whole numbers (``kstrtoull``), page counts (``memparse``), ``sscanf("%llu")``, CPU lists.
Does not cover: what the values mean (``cpu``, ``memory1``, ``cpuset1`` ...).

Written from the kernel's behaviour and apart from ``koordlet.model.cpuset`` on purpose: the parser
of the product must not be the judge of what the product writes.

Kernel facts: ``lib/kstrtox.c``, ``lib/cmdline.c`` (memparse), ``lib/bitmap-str.c``
(``lib/bitmap.c`` before 6.7), ``mm/page_counter.c``.
"""

from __future__ import annotations

import errno
import re

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel.tree import refused

PAGE = 4096
U64 = (1 << 64) - 1
#: What an unlimited page counter holds (``PAGE_COUNTER_MAX``).
NO_LIMIT = ((1 << 63) - 1) // PAGE

_SPACE = " \t\n\v\f\r"
_SUFFIXES = {suffix: 10 * power for power, suffix in enumerate("KMGTPE", start=1)}


def strip(text: str) -> str:
    """``strstrip``: C's white space only."""
    return text.strip(_SPACE)


def unsigned(text: str) -> int:
    """``kstrtoull(text, 0)``: no blanks, one newline at the end is allowed."""
    value, rest = _digits(text.removeprefix("+"))
    if value is None:
        raise refused(errno.EINVAL)
    if value > U64:
        raise refused(errno.ERANGE)
    if rest.removesuffix("\n") != "" or rest.count("\n") > 1:
        raise refused(errno.EINVAL)
    return value


def signed(text: str) -> int:
    """``kstrtoll(text, 0)``."""
    if not text.startswith("-"):
        value = unsigned(text)
        if value >> 63:
            raise refused(errno.ERANGE)
        return value
    value = unsigned(text[1:])
    if text[1:2] == "+":
        raise refused(errno.EINVAL)
    if value > 1 << 63:
        raise refused(errno.ERANGE)
    return -value


def integer(text: str) -> int:
    """``kstrtoint(strstrip(text), 0)``."""
    value = signed(strip(text))
    if not -(1 << 31) <= value < 1 << 31:
        raise refused(errno.ERANGE)
    return value


def scanned(text: str) -> int | None:
    """``sscanf(text, "%llu")``: leading digits, whatever follows; silently modulo 2**64."""
    match = re.match(r"[ \t\n\v\f\r]*([0-9]+)", text)
    return int(match[1]) & U64 if match else None


def pages(text: str, unlimited: str, *, wraps: bool = True) -> int:
    """``page_counter_memparse``: pages rounded down; bytes wrap at 2**64; an empty text is 0.

    The newest kernels take the most there is instead of wrapping.
    """
    text = strip(text)
    if text == unlimited:
        return NO_LIMIT
    value, rest = _digits(text)
    whole, size = value or 0, (value or 0) & U64
    if rest and rest[0].upper() in _SUFFIXES:
        whole <<= _SUFFIXES[rest[0].upper()]
        size = size << _SUFFIXES[rest[0].upper()] & U64
        rest = rest[1:]
    if not wraps:
        size = whole
    if rest:
        raise refused(errno.EINVAL)
    return min(size // PAGE, NO_LIMIT)


def _digits(text: str) -> tuple[int | None, str]:
    """A number in C's notation (0x, leading 0) at the start, and what follows it."""
    if re.match(r"0[xX][0-9a-fA-F]", text):
        match, base = re.match(r"0[xX]([0-9a-fA-F]+)", text), 16
    elif text.startswith("0"):
        match, base = re.match(r"([0-7]+)", text), 8
    else:
        match, base = re.match(r"([0-9]+)", text), 10
    if match is None:
        return None, text
    return int(match[1], base), text[match.end() :]


def bits(text: str, limit: int) -> CPUSet:
    """``bitmap_parselist``: EINVAL for nonsense, ERANGE for members that cannot exist.

    The first region that is wrong decides, as in the kernel.
    """
    union = CPUSet()
    rest = text
    while rest := rest.lstrip(_SPACE + ","):
        members, rest = _region(rest, limit)
        union |= members
    return union


def _region(text: str, limit: int) -> tuple[CPUSet, str]:
    if text[:3].lower() == "all":
        first, last, rest = 0, limit - 1, text[3:]
    else:
        first, rest = _bit(text, limit)
        last = first
        if not _ends(rest):
            last, rest = _bit(_after(rest, "-"), limit)
    used = group = last + 1
    if not _ends(rest):
        used, rest = _bit(_after(rest, ":"), limit)
        group, rest = _bit(_after(rest, "/"), limit)
    if first > last or group == 0 or used > group:
        raise refused(errno.EINVAL)
    if last >= limit:
        raise refused(errno.ERANGE)
    return CPUSet.of(bit for bit in range(first, last + 1) if (bit - first) % group < used), rest


def _bit(text: str, limit: int) -> tuple[int, str]:
    if text.startswith("N"):
        return limit - 1, text[1:]
    match = re.match(r"[0-9]+", text)
    if match is None:
        raise refused(errno.EINVAL)
    if int(match[0]) >> 32:
        raise refused(errno.EOVERFLOW)
    return int(match[0]), text[match.end() :]


def _after(text: str, sign: str) -> str:
    if not text.startswith(sign):
        raise refused(errno.EINVAL)
    return text[1:]


def _ends(text: str) -> bool:
    return not text or text[0] in _SPACE + ","
