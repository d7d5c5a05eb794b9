"""Forms of kernel file contents: parsing, writing, equality.

Covers: one class for each form, ranges included. Does not cover: which file has which form
(``model.knob``).

Rules:
1. ``parse`` takes what the kernel shows and raises ``ValueError`` for anything else; ``text`` gives
   what the kernel takes, and raises ``ValueError`` for a value that it would refuse. No form ever
   gives an empty text: the kernel reads an empty memory limit as 0 and kills.
2. Damage is never equal to a value: what cannot be parsed is compared as it stands.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Protocol

from koordlet.model import cpuset
from koordlet.model.record import dataclass


class Form(Protocol):
    """The form of one file."""

    def same(self, wanted: str, current: str) -> bool:
        """Whether a file's text holds the wanted value."""

    def measure(self, text: str) -> float:
        """The size of a value, for ordering writes; 0 where values have no order."""

    @property
    def range(self) -> str:
        """The values that the kernel takes, for people."""


class _Unordered:
    """A form whose values have no order; sets have one of their own."""

    __slots__ = ()

    def measure(self, text: str) -> float:
        del text
        return 0.0


@dataclass(frozen=True, slots=True)
class Plain(_Unordered):
    """A text that is compared as it is."""

    range: str = ""

    def same(self, wanted: str, current: str) -> bool:
        return wanted.strip() == current.strip()


@dataclass(frozen=True, slots=True)
class Held(_Unordered):
    """A file with more content than koordlet wants; a function compares them."""

    holds: Callable[[str, str], bool]
    range: str = ""

    def same(self, wanted: str, current: str) -> bool:
        return self.holds(wanted, current)


@dataclass(frozen=True, slots=True)
class List(_Unordered):
    """A list of CPUs or nodes; equal as sets."""

    range: str = "a list such as `0-3,8`"

    def same(self, wanted: str, current: str) -> bool:
        return wanted == current or canonical_list(wanted) == canonical_list(current)


@functools.lru_cache(maxsize=1024)
def canonical_list(text: str) -> str:
    """The kernel's normal form of a list; what is no list stays as it is."""
    try:
        return str(cpuset.CPUSet.parse(text))
    except ValueError:
        return text.strip()


@dataclass(frozen=True, slots=True)
class Words(_Unordered):
    """Words in any order."""

    range: str = "`+name` and `-name`"

    def same(self, wanted: str, current: str) -> bool:
        return sorted(wanted.split()) == sorted(current.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One integer, or no limit."""

    low: int
    high: int
    #: The word for no limit; empty where there is always one.
    unlimited: str = ""
    #: Shown instead of that word by some kernels.
    also_unlimited: int | None = None
    #: Shown instead of the lowest by some kernels.
    also_low: int | None = None
    #: The kernel rounds down to multiples of one of these, the size of its pages.
    pages: tuple[int, ...] = (1,)
    #: The kernel takes what is outside of the range and cuts it, where it refuses elsewhere.
    clamps: bool = False

    @property
    def range(self) -> str:
        """The values that the kernel takes."""
        numbers = f"{self.low}…{self.high}"
        return f"{numbers}, `{self.unlimited}`" if self.unlimited else numbers

    def parse(self, text: str) -> int | None:
        """The number; ``None`` is no limit."""
        word = text.strip()
        if self.unlimited and word == self.unlimited:
            return None
        number = self.low if (number := int(word)) == self.also_low else number
        return None if self.also_unlimited is not None and number >= self.also_unlimited else number

    def text(self, value: int | None) -> str:
        """The text to write."""
        if value is None:
            if not self.unlimited:
                raise ValueError("this file has no value for no limit")
            return self.unlimited
        if not self.low <= value <= self.high:
            raise ValueError(f"{value} is not in {self.range}")
        return str(value)

    def same(self, wanted: str, current: str) -> bool:
        asked, shown = self._normal(wanted), self._normal(current)
        if asked == shown or not isinstance(asked, int) or not shown:
            return asked == shown
        return any(asked // page * page == shown for page in self.pages)

    def _normal(self, text: str) -> int | str | None:
        try:
            number = self.parse(text)
        except ValueError:
            return text.strip()
        if number is None:
            return None
        if self.clamps:
            number = min(self.high, max(self.low, number))
        return number // self.pages[0] * self.pages[0]

    def measure(self, text: str) -> float:
        try:
            number = self.parse(text)
        except ValueError:
            return 0.0
        return float("inf") if number is None else float(number)


@dataclass(frozen=True, slots=True)
class Quota:
    """CPU time in each period; ``usec`` is ``None`` without a limit."""

    usec: int | None
    period_usec: int = 100_000

    @property
    def cpus(self) -> float:
        """In CPUs."""
        return float("inf") if self.usec is None else self.usec / self.period_usec


#: The kernel's bounds of a period and a quota, in microseconds.
PERIODS = range(1_000, 1_000_001)
QUOTAS = range(1_000, 17_592_186_044_416)


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """``cpu.max``: quota, or ``max``, and period."""

    range: str = "`max` or 1000…17592186044415, then the period 1000…1000000"

    def parse(self, text: str) -> Quota:
        """Both fields; a file without a period has the usual one."""
        quota, *period = text.split()
        usec = None if quota == "max" else int(quota)
        return Quota(usec, int(period[0])) if period else Quota(usec)

    def text(self, value: Quota) -> str:
        """The text to write: quota and period."""
        bounded = value.usec is None or value.usec in QUOTAS
        if not bounded or value.period_usec not in PERIODS:
            raise ValueError(f"{value} is not in {self.range}")
        return f"{'max' if value.usec is None else value.usec} {value.period_usec}"

    def same(self, wanted: str, current: str) -> bool:
        try:
            return self.parse(wanted) == self.parse(current)
        except ValueError:
            return wanted.split() == current.split()

    def measure(self, text: str) -> float:
        try:
            return self.parse(text).cpus
        except (ValueError, ZeroDivisionError):
            return 0.0


@dataclass(frozen=True, slots=True)
class Keyed(_Unordered):
    """One line for each device: ``8:0 rbps=1048576 wiops=max``, or ``8:0 1048576`` without names.

    A line that is written changes that device only, and of it the named fields only. Devices
    without a limit have no line.
    """

    #: What a field that is not shown holds.
    unset: str = "max"
    range: str = "`MAJOR:MINOR FIELD=VALUE …`"
    #: What follows a device's number to undo a line where there was none; empty: its fields unset.
    reset: str = ""

    def text(self, device: str, fields: dict[str, int | None]) -> str:
        """The line of a device; ``None`` is no limit."""
        major, _, minor = device.partition(":")
        if not fields or not (major.isdigit() and minor.isdigit()):
            raise ValueError(f"not a device with limits: {device!r} {fields}")
        shown = ((name, self.unset if v is None else str(v)) for name, v in fields.items())
        return " ".join([device, *(f"{name}={value}" if name else value for name, value in shown)])

    def same(self, wanted: str, current: str) -> bool:
        there = devices(current)
        return all(
            there.get(device, {}).get(name, self.unset) == value
            for device, fields in devices(wanted).items()
            for name, value in fields.items()
        )


def devices(text: str) -> dict[str, dict[str, str]]:
    """The fields of each device of a ``Keyed`` text; of two lines, the later one counts."""
    by_device = {}
    for line in text.splitlines():
        device, *fields = line.split() or [""]
        pairs = (field.rpartition("=") for field in fields)
        by_device[device] = {name: value for name, _, value in pairs}
    return by_device
