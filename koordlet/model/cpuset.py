"""CPU sets: the arithmetic of CPU numbers lives here and nowhere else.

Covers: every list and mask form that the kernel prints or accepts, set algebra, iteration.
Does not cover: which CPUs exist (``model.topology``) or whose they are (``model.ledger``).

A set is one integer used as a bitmap: algebra is a single machine operation per 64 CPUs, hashing
and equality are those of ``int``, and 8 192 CPUs are 1 KiB. NUMA node lists have the same grammar,
so the same type holds them.

Kernel facts (``lib/bitmap-str.c``, Documentation/admin-guide/kernel-parameters.rst):
* lists: ``0-3,8``, strides ``0-31:2/8`` (the first 2 of each 8), ``all``, ``N`` for the last bit;
  separators are commas or white space, empty items are skipped, the kernel prints normalised form;
* masks: hexadecimal, 32-bit words separated by commas, most significant first.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from koordlet.model.record import dataclass

#: No machine has more; a larger number in a file is damage, and would cost memory to represent.
MAX_CPUS = 1 << 16

#: A machine has few sets and asks for them a thousand times; longer texts are not remembered.
_REMEMBERED, _SHORT = 1024, 256

#: A list that names each of them alone is shorter; beyond it parsing would take seconds.
MAX_TEXT = 1 << 19

# The kernel takes ASCII only, for digits and for white space.
_ITEM = re.compile(r"(\d+|N)(?:-(\d+|N)(?::(\d+)/(\d+))?)?\Z", re.ASCII)
_SEPARATOR = re.compile(r"[,\s]+", re.ASCII)
_MASK = re.compile(r"[0-9a-fA-F]{1,8}(?:,[0-9a-fA-F]{1,8})*\Z")


@dataclass(frozen=True, slots=True)
class CPUSet:
    """An immutable set of CPU (or node) numbers."""

    bits: int = 0

    @classmethod
    def of(cls, cpus: Iterable[int]) -> CPUSet:
        """The set of the numbers given."""
        bits = 0
        for cpu in cpus:
            bits |= 1 << _checked(cpu, str(cpu))
        return cls(bits)

    @classmethod
    def span(cls, first: int, last: int) -> CPUSet:
        """The set first..last, both included; empty when last < first."""
        if last < first:
            return cls()
        return cls(((1 << (last - first + 1)) - 1) << first)

    @classmethod
    def parse(cls, text: str, *, limit: int | None = None) -> CPUSet:
        """Parse a kernel list. ``limit`` is the number of CPUs that ``all`` and ``N`` refer to."""
        return _short(text) if limit is None and len(text) <= _SHORT else cls(_list(text, limit))

    @classmethod
    def parse_mask(cls, text: str) -> CPUSet:
        """Parse a kernel bitmap such as ``00000000,000000ff`` (an optional ``0x`` is accepted)."""
        _sane(text)
        body = text.strip().removeprefix("0x")
        if not _MASK.match(body):
            raise ValueError(f"not a CPU mask: {text.strip()[:80]!r}")
        bits = int("".join(word.rjust(8, "0") for word in body.split(",")), 16)
        if bits.bit_length() > MAX_CPUS:
            raise ValueError(f"CPU mask of {bits.bit_length()} bits, more than {MAX_CPUS}")
        return cls(bits)

    def __contains__(self, cpu: object) -> bool:
        return isinstance(cpu, int) and cpu >= 0 and bool(self.bits >> cpu & 1)

    def __iter__(self) -> Iterator[int]:
        """Ascending. Cost: one step per member, not per possible CPU."""
        bits, base = self.bits, 0
        while bits:
            # Peel 64 bits at a time: shifting a huge integer per member would be quadratic.
            word = bits & 0xFFFF_FFFF_FFFF_FFFF
            while word:
                low = word & -word
                yield base + low.bit_length() - 1
                word ^= low
            bits >>= 64
            base += 64

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __bool__(self) -> bool:
        return self.bits != 0

    def __or__(self, other: CPUSet) -> CPUSet:
        return CPUSet(self.bits | other.bits)

    def __and__(self, other: CPUSet) -> CPUSet:
        return CPUSet(self.bits & other.bits)

    def __sub__(self, other: CPUSet) -> CPUSet:
        return CPUSet(self.bits & ~other.bits)

    def __xor__(self, other: CPUSet) -> CPUSet:
        return CPUSet(self.bits ^ other.bits)

    def __le__(self, other: CPUSet) -> bool:
        """Subset, as for ``frozenset``."""
        return self.bits & ~other.bits == 0

    def __lt__(self, other: CPUSet) -> bool:
        return self.bits != other.bits and self <= other

    def __ge__(self, other: CPUSet) -> bool:
        return other <= self

    def __gt__(self, other: CPUSet) -> bool:
        return other < self

    def isdisjoint(self, other: CPUSet) -> bool:
        """True when no CPU is in both."""
        return self.bits & other.bits == 0

    @property
    def first(self) -> int:
        """The lowest member; ``ValueError`` when empty."""
        if not self.bits:
            raise ValueError("an empty CPU set has no first member")
        return (self.bits & -self.bits).bit_length() - 1

    @property
    def last(self) -> int:
        """The highest member; ``ValueError`` when empty."""
        if not self.bits:
            raise ValueError("an empty CPU set has no last member")
        return self.bits.bit_length() - 1

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Maximal runs (first, last), ascending."""
        bits, base = self.bits, 0
        while bits:
            skip = (bits & -bits).bit_length() - 1
            bits >>= skip
            run = (~bits & (bits + 1)).bit_length() - 1
            yield base + skip, base + skip + run - 1
            bits >>= run
            base += skip + run

    def __str__(self) -> str:
        """The kernel's own normal form: ``0-3,8``; the empty set is an empty string."""
        return _text(self)

    def __repr__(self) -> str:
        return f"CPUSet({str(self)!r})"

    def mask(self) -> str:
        """The kernel's bitmap form, 32-bit words, most significant first."""
        words = max(1, -(-self.bits.bit_length() // 32))
        return ",".join(f"{self.bits >> 32 * i & 0xFFFF_FFFF:08x}" for i in reversed(range(words)))


def union(sets: Iterable[CPUSet]) -> CPUSet:
    """The union of any number of sets, empty for none."""
    bits = 0
    for cpus in sets:
        bits |= cpus.bits
    return CPUSet(bits)


@functools.lru_cache(_REMEMBERED)
def _short(text: str) -> CPUSet:
    return CPUSet(_list(text, None))


@functools.lru_cache(_REMEMBERED)
def _text(cpus: CPUSet) -> str:
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in cpus.ranges())


def _list(text: str, limit: int | None) -> int:
    _sane(text)
    bits = 0
    for item in _SEPARATOR.split(text):
        if item:
            bits |= _item(item, limit)
    return bits


def _sane(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise ValueError(f"{len(text)} characters are more than any CPU set needs")


def _checked(cpu: int, text: str) -> int:
    if not 0 <= cpu < MAX_CPUS:
        raise ValueError(f"CPU number out of range 0-{MAX_CPUS - 1}: {text[:80]!r}")
    return cpu


def _number(text: str, limit: int | None, item: str) -> int:
    if text == "N":
        if limit is None:
            raise ValueError(f"{item!r} needs to know the number of CPUs")
        return limit - 1
    if len(text) > 9:
        return _checked(-1, item)
    return _checked(int(text), item)


def _item(item: str, limit: int | None) -> int:
    if item.lower() == "all":
        if limit is None:
            raise ValueError("'all' needs to know the number of CPUs")
        return (1 << limit) - 1
    match = _ITEM.match(item)
    if match is None:
        raise ValueError(f"not a CPU list item: {item[:80]!r}")
    first = _number(match[1], limit, item)
    last = _number(match[2], limit, item) if match[2] else first
    if last < first:
        raise ValueError(f"CPU range runs backwards: {item[:80]!r}")
    if match[3] is None:
        return ((1 << (last - first + 1)) - 1) << first
    return _strided(first, last, int(match[3][:9]), int(match[4][:9]), item)


def _strided(first: int, last: int, used: int, group: int, item: str) -> int:
    if used == 0 or group == 0 or used > group:
        raise ValueError(f"CPU stride makes no sense: {item[:80]!r}")
    # Double the pattern until it covers the range: a step per group would let a short text of
    # many strided items run for minutes.
    length = last - first + 1
    bits = (1 << min(used, length)) - 1
    while group < length:
        bits |= bits << group
        group *= 2
    return (bits & ((1 << length) - 1)) << first


def lenient(text: str) -> CPUSet:
    """Parse a kernel list; empty where the text is malformed."""
    try:
        return CPUSet.parse(text)
    except ValueError:
        return CPUSet()
