"""Eviction thresholds: their grammar, their defaults, and what is refused.

Covers: the kubelet's signals, values, the four maps of a KubeletConfiguration and their spelling as
flags, thresholds that follow from others.
Does not cover: comparing with what is observed (``policy.eviction.node_pressure``).

Facts: the kubelet's documentation of node-pressure eviction and its KubeletConfiguration v1beta1.
Rules:
1. A threshold is met when what is available is less than it; equal is not met.
2. ``0%`` and ``100%``, spelled exactly so, are no thresholds: that is how one is switched off.
3. A soft threshold with a grace period of nothing is a hard one.
4. A percentage counts in 32 bits, and what it amounts to is cut to a whole number.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from koordlet.model import duration, quantity, quantity_text, remember
from koordlet.model.record import dataclass

MEMORY = "memory.available"
ALLOCATABLE_MEMORY = "allocatableMemory.available"
NODEFS, NODEFS_INODES = "nodefs.available", "nodefs.inodesFree"
IMAGEFS, IMAGEFS_INODES = "imagefs.available", "imagefs.inodesFree"
CONTAINERFS, CONTAINERFS_INODES = "containerfs.available", "containerfs.inodesFree"
PIDS = "pid.available"

MEMORY_SIGNALS = (MEMORY, ALLOCATABLE_MEMORY)
DISK_SIGNALS = (
    NODEFS,
    NODEFS_INODES,
    IMAGEFS,
    IMAGEFS_INODES,
    CONTAINERFS,
    CONTAINERFS_INODES,
)
SIGNALS = (*MEMORY_SIGNALS, *DISK_SIGNALS, PIDS)

#: Ours beside the kubelet's: percent of time lost to short memory, and swap space left.
STALL_PREFIX = "pressure."
STALLS = tuple(
    f"{STALL_PREFIX}memory.{degree}.avg{seconds}"
    for degree in ("some", "full")
    for seconds in (10, 60, 300)
)
SWAP = "swap.available"
#: Time is counted in hundredths of a percent, so that numbers are whole.
WHOLE = 10_000

#: The condition that a signal is evidence of, and the resource that messages name.
CONDITION = {
    **dict.fromkeys(MEMORY_SIGNALS, "MemoryPressure"),
    **dict.fromkeys(DISK_SIGNALS, "DiskPressure"),
    PIDS: "PIDPressure",
    **dict.fromkeys(STALLS, "MemoryStalled"),
    SWAP: "SwapPressure",
}
RESOURCE = {
    **dict.fromkeys(MEMORY_SIGNALS, "memory"),
    **{
        signal: "inodes" if signal.endswith("inodesFree") else "ephemeral-storage"
        for signal in DISK_SIGNALS
    },
    PIDS: "pids",
    **dict.fromkeys((*STALLS, SWAP), "memory"),
}

#: What the kubelet does where ``evictionHard`` is not there at all.
DEFAULT_HARD: Mapping[str, str] = {
    MEMORY: "100Mi",
    NODEFS: "10%",
    NODEFS_INODES: "5%",
    IMAGEFS: "15%",
    IMAGEFS_INODES: "5%",
}

_NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?)\Z", re.ASCII | re.IGNORECASE
)


class ThresholdError(ValueError):
    """A threshold that is refused; ``where`` is the map and the signal that it stands at."""

    def __init__(self, message: str, *where: str) -> None:
        super().__init__(message)
        self.where = where
        #: What may stand there, where it is the name that is refused.
        self.known: tuple[str, ...] = ()


def _unsupported(signal: str, where: str, known: Iterable[str]) -> ThresholdError:
    error = ThresholdError(f"unsupported eviction signal {signal}", where, signal)
    error.known = tuple(sorted(known))
    return error


@dataclass(frozen=True, slots=True)
class Value:
    """An amount, or a part of the capacity: exactly one of both."""

    #: As it is written.
    text: str
    amount: int | None = None
    part: float | None = None

    def of(self, capacity: int) -> int:
        """The amount that it stands for (rule 4)."""
        if self.amount is not None:
            return self.amount
        return int(float(capacity) * (self.part or 0.0))

    def spelled(self, capacity: int) -> str:
        """The amount as messages print it."""
        if self.amount is not None:
            return quantity_text.canonical(self.text)
        return quantity_text.binary(self.of(capacity))


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One of them."""

    signal: str
    value: Value
    #: Seconds that it must be met before anything follows.
    grace: float = 0.0
    #: How much more must be available again before it counts as relieved.
    reclaim: Value | None = None

    @property
    def hard(self) -> bool:
        """True where what follows, follows at once."""
        return self.grace == 0.0

    @property
    def key(self) -> tuple[str, str, float]:
        """The identity of a threshold."""
        return self.signal, self.value.text, self.grace


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """As a KubeletConfiguration has them: signal to text."""

    #: ``None``: not there at all, which brings the defaults; empty: none.
    hard: Mapping[str, str] | None = None
    soft: Mapping[str, str] = field(default_factory=dict)
    soft_grace: Mapping[str, str] = field(default_factory=dict)
    reclaim: Mapping[str, str] = field(default_factory=dict)
    #: Defaults also beside a given ``hard``.
    merge_defaults: bool = False
    #: Whether the groups of all pods are limited, which makes their memory a signal of its own.
    enforce_pods: bool = True

    @classmethod
    def of(cls, section: Any) -> Texts:
        """The maps of ``policies.node_pressure``, of a model or of the record made of it."""
        return cls(
            hard=section.eviction_hard,
            soft=section.eviction_soft or {},
            soft_grace=section.eviction_soft_grace_period or {},
            reclaim=section.eviction_minimum_reclaim or {},
            merge_defaults=section.merge_default_eviction_settings,
            enforce_pods="pods" in section.enforce_node_allocatable,
        )

    @property
    def hard_in_force(self) -> Mapping[str, str]:
        """With the defaults where they count."""
        if self.hard is None:
            return DEFAULT_HARD
        return {**DEFAULT_HARD, **self.hard} if self.merge_defaults else self.hard


#: The keys of a KubeletConfiguration, which errors name.
HARD, SOFT = "evictionHard", "evictionSoft"
GRACE, RECLAIM = "evictionSoftGracePeriod", "evictionMinimumReclaim"
#: Ours.
OWN = "evictionOwn"


def parse(texts: Texts) -> tuple[Threshold, ...]:
    """Hard, then soft, then derived thresholds; ``ThresholdError`` for the first that is wrong."""
    hard = list(_listed(HARD, texts.hard_in_force))
    soft = list(_listed(SOFT, texts.soft))
    graces = {signal: _grace(signal, text) for signal, text in texts.soft_grace.items()}
    reclaims = {signal: _reclaim(signal, text) for signal, text in texts.reclaim.items()}
    parsed = hard
    for threshold in soft:
        if threshold.signal not in graces:
            message = (
                f"grace period must be specified for the soft eviction threshold {threshold.signal}"
            )
            raise ThresholdError(message, SOFT, threshold.signal)
        parsed.append(replace(threshold, grace=graces[threshold.signal]))
    parsed = [replace(threshold, reclaim=reclaims.get(threshold.signal)) for threshold in parsed]
    if texts.enforce_pods:
        # The memory of all pods together is watched by the node's own hard threshold.
        copies = [
            threshold for threshold in parsed if threshold.signal == MEMORY and threshold.hard
        ]
        parsed += [replace(copy, signal=ALLOCATABLE_MEMORY) for copy in copies]
    return tuple(parsed)


@remember.last
def with_containerfs(parsed: tuple[Threshold, ...], layout: str) -> tuple[Threshold, ...]:
    """Thresholds of the containers' file system are never those that were given.

    It is the node's own file system or that of the images, and has the thresholds of that one.
    ``layout`` is one of ``model.pressure``.
    """
    source = "imagefs" if layout == "dedicated" else "nodefs"
    kept = [threshold for threshold in parsed if not threshold.signal.startswith("containerfs.")]
    derived = [
        replace(threshold, signal=threshold.signal.replace(source, "containerfs"))
        for threshold in kept
        if threshold.signal.startswith(f"{source}.")
    ]
    return (*kept, *derived)


def own(texts: Mapping[str, str], grace: float) -> tuple[Threshold, ...]:
    """Thresholds of our own: name of an average to percent of time lost; swap space as any."""
    return tuple(
        Threshold(signal=signal, value=_own(signal, text), grace=grace)
        for name, text in texts.items()
        for signal in (name if name == SWAP else f"{STALL_PREFIX}{name}",)
    )


def _own(signal: str, text: str) -> Value:
    if signal == SWAP:
        return value(OWN, SWAP, text)
    name = signal.removeprefix(STALL_PREFIX)
    if signal not in STALLS:
        raise _unsupported(name, OWN, (signal.removeprefix(STALL_PREFIX) for signal in STALLS))
    part = _part(OWN, name, text) if text.endswith("%") else 0.0
    if not 0 < part <= 1:
        message = f"{name} is percent of time, more than 0% and at most 100%: {text}"
        raise ThresholdError(message, OWN, name)
    # Met from this percentage on, while a threshold is met below its amount only.
    return Value(text, amount=left(part * 100) + 1)


def left(lost: float) -> int:
    """Of a percentage of time that is lost, the rest as an amount."""
    return WHOLE - round(lost * 100)


def flag(text: str, separator: str) -> dict[str, str]:
    """A map as flags spell it: ``memory.available<100Mi,nodefs.available<10%``.

    An item of nothing is skipped, so that a comma at the end is no mistake.
    """
    by_signal: dict[str, str] = {}
    for part in (each for each in text.split(",") if each.strip()):
        signal, mark, value = part.strip().partition(separator)
        if not mark or not signal or not value:
            msg = f"invalid eviction threshold {part.strip()!r}, expected signal{separator}value"
            raise ValueError(msg)
        by_signal[signal.strip()] = value.strip()
    return by_signal


def _listed(where: str, texts: Mapping[str, str]) -> Iterator[Threshold]:
    for signal, text in texts.items():
        _known(where, signal)
        if text in ("0%", "100%"):
            continue
        yield Threshold(signal=signal, value=value(where, signal, text))


def _known(where: str, signal: str) -> None:
    if signal not in SIGNALS:
        raise _unsupported(signal, where, SIGNALS)


def value(where: str, signal: str, text: str) -> Value:
    """A threshold's value; ``ThresholdError`` names the map and the signal."""
    if text.endswith("%"):
        part = _part(where, signal, text)
        if not 0 <= part <= 1:
            bound = ">= 0%" if part < 0 else "<= 100%"
            message = f"eviction percentage threshold {signal} must be {bound}: {text}"
            raise ThresholdError(message, where, signal)
        return Value(text, part=part)
    amount = _amount(where, signal, text)
    if amount <= 0:
        shown = quantity_text.canonical(text)
        message = f"eviction threshold {signal} must be positive: {shown}"
        raise ThresholdError(message, where, signal)
    return Value(text, amount=amount)


def _reclaim(signal: str, text: str) -> Value:
    _known(RECLAIM, signal)
    if text.endswith("%"):
        part = _part(RECLAIM, signal, text)
        if part <= 0:
            message = f"eviction percentage minimum reclaim {signal} must be positive: {text}"
            raise ThresholdError(message, RECLAIM, signal)
        return Value(text, part=part)
    amount = _amount(RECLAIM, signal, text)
    if amount < 0:
        message = f"negative eviction minimum reclaim specified for {signal}"
        raise ThresholdError(message, RECLAIM, signal)
    return Value(text, amount=amount)


def _grace(signal: str, text: str) -> float:
    _known(GRACE, signal)
    try:
        seconds = duration.parse(text)
    except ValueError as error:
        raise ThresholdError(str(error), GRACE, signal) from error
    if seconds < 0:
        message = f"invalid eviction grace period specified: {text}, must be a positive value"
        raise ThresholdError(message, GRACE, signal)
    return seconds


def _part(where: str, signal: str, text: str) -> float:
    number = text.rstrip("%")
    if _NUMBER.match(number) is None:
        raise ThresholdError(f"invalid percentage {text!r} of {signal}", where, signal)
    try:
        return _single(_single(float(number)) / 100)
    except OverflowError as error:
        message = f"percentage {text!r} of {signal} is out of range"
        raise ThresholdError(message, where, signal) from error


def _single(value: float) -> float:
    """Rounded to 32 bits."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def _amount(where: str, signal: str, text: str) -> int:
    if text != text.strip():
        raise ThresholdError(f"{signal}: not a quantity: {text[:64]!r}", where, signal)
    try:
        return quantity.units(text)
    except ValueError as error:
        raise ThresholdError(f"{signal}: {error}", where, signal) from error
