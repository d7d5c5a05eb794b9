"""State of thresholds from pass to pass, as the kubelet keeps it. Pure.

Covers: which thresholds are met, since when, grace periods, minimum reclaim, conditions that do not
oscillate, observations that are no news; signals for reports: observed, threshold, since when, why
not.
Does not cover: when a pass takes place, who is evicted (``node_pressure``).

One pass, in this order:
1. Met is every threshold that is larger than what is available; without an observation none is.
2. What was acted on in the last pass stays met until the minimum reclaim is available on top.
3. The time since when counts from the first pass of an unbroken row; a break starts it again.
4. A condition holds while a threshold of it is met, and for the transition period after that,
   whatever the grace period.
5. To act on are those that were met for their grace period …
6. … of which the observation is newer than at the last pass, so that nobody is evicted twice for
   one and the same reading.
7. Memory comes first, then what is short now before what only rule 2 keeps met, then the order of
   the configuration, in which ours come after the kubelet's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from koordlet.model import decision, snapshot, thresholds
from koordlet.model.record import dataclass
from koordlet.policy.eviction import kubelet_owned, messages, own_signals, pressure_signals


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """State of all thresholds. Times are monotonic seconds."""

    #: Of each threshold that is met, since when.
    first: Mapping[str, float] = field(default_factory=dict)
    #: Of each condition, when a threshold of it was met last.
    seen: Mapping[str, float] = field(default_factory=dict)
    #: Thresholds that were to be acted on.
    acted: tuple[str, ...] = ()
    #: Of each signal, when the observation was made that the last pass had.
    observed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Result of one pass."""

    book: Book
    #: Everything that is met, whatever its grace period.
    met: tuple[thresholds.Threshold, ...] = ()
    #: What must be acted on now, the first first.
    due: tuple[thresholds.Threshold, ...] = ()
    #: The types of conditions that hold.
    conditions: tuple[str, ...] = ()


def name(threshold: thresholds.Threshold) -> str:
    """The key of a threshold."""
    return f"{threshold.signal}<{threshold.value.text}/{threshold.grace:g}"


def is_met(
    threshold: thresholds.Threshold,
    observed: Mapping[str, pressure_signals.Observation],
    *,
    reclaim: bool = False,
) -> bool:
    """Rule 1; with ``reclaim`` the minimum reclaim counts on top."""
    seen = observed.get(threshold.signal)
    if seen is None:
        return False
    wanted = threshold.value.of(seen.capacity)
    if reclaim and threshold.reclaim is not None:
        wanted += threshold.reclaim.of(seen.capacity)
    return wanted > seen.available


def turn(
    configured: Sequence[thresholds.Threshold],
    observed: Mapping[str, pressure_signals.Observation],
    book: Book,
    at: float,
    transition: float,
) -> Page:
    """One pass."""
    short = [threshold for threshold in configured if is_met(threshold, observed)]
    acted = [
        threshold
        for threshold in configured
        if name(threshold) in book.acted and threshold not in short
    ]
    met = (*short, *(victim for victim in acted if is_met(victim, observed, reclaim=True)))
    first = {name(threshold): min(book.first.get(name(threshold), at), at) for threshold in met}
    seen = {
        # A clock that was set back must not hold a condition for longer than it would.
        kind: min(when, at)
        for kind, when in book.seen.items()
        if at - when < transition
    }
    seen.update((thresholds.CONDITION[threshold.signal], at) for threshold in met)
    graced = [threshold for threshold in met if at - first[name(threshold)] >= threshold.grace]
    fresh = [threshold for threshold in graced if _news(threshold.signal, observed, book.observed)]
    return Page(
        book=Book(
            first=first,
            seen=seen,
            acted=tuple(name(threshold) for threshold in graced),
            observed={signal: seen.at for signal, seen in observed.items() if seen.at is not None},
        ),
        met=met,
        due=tuple(
            sorted(fresh, key=lambda threshold: threshold.signal not in thresholds.MEMORY_SIGNALS)
        ),
        conditions=holding(seen, at, transition),
    )


def holding(seen: Mapping[str, float], at: float, transition: float) -> tuple[str, ...]:
    """The conditions that hold at this moment (rule 4)."""
    return tuple(kind for kind in _KINDS if kind in seen and at - seen[kind] < transition)


_KINDS: Iterable[str] = tuple(dict.fromkeys(thresholds.CONDITION.values()))


def _news(
    signal: str,
    observed: Mapping[str, pressure_signals.Observation],
    before: Mapping[str, float],
) -> bool:
    """Rule 6."""
    at = observed[signal].at if signal in observed else None
    return signal in observed and (at is None or signal not in before or at > before[signal])


# Reports -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Observations at one moment and the thresholds for them."""

    now: snapshot.Snapshot
    #: Without what is too old.
    observed: Mapping[str, pressure_signals.Observation]
    #: Signal of the kubelet's to why it is not observed.
    missing: Mapping[str, str]
    configured: tuple[thresholds.Threshold, ...]
    beside: kubelet_owned.Neighbour


def signals(look: Look, book: Book) -> Iterator[decision.Signal]:
    """Signals in the order of the configuration."""
    for threshold in look.configured:
        seen = look.observed.get(threshold.signal)
        if seen is None:
            yield decision.Signal(
                name=threshold.signal,
                observed="",
                threshold=threshold.value.text,
                met=None,
                why=_missing(look, threshold.signal),
            )
            continue
        key = name(threshold)
        first = book.first.get(key)
        met = is_met(threshold, look.observed) or (
            key in book.acted and is_met(threshold, look.observed, reclaim=True)
        )
        wanted = messages.wanted(threshold, seen.capacity)
        late = look.beside.late(threshold)
        yield decision.Signal(
            name=threshold.signal,
            observed=messages.available(threshold.signal, seen.available),
            threshold=wanted,
            met=met,
            why=late or (_waiting(threshold, look.now.at, first) if met else ""),
            spelled="" if wanted == threshold.value.text else threshold.value.text,
            since=look.now.wall - (look.now.at - first) if met and first is not None else None,
        )


def _missing(look: Look, signal: str) -> str:
    if signal not in thresholds.SIGNALS:
        return own_signals.missing(signal, look.now.pressure)
    return look.missing.get(signal) or "the file system has not answered lately"


def _waiting(threshold: thresholds.Threshold, at: float, first: float | None) -> str:
    left = threshold.grace - (at - (at if first is None else first))
    return (
        f"soft threshold: {left:.0f} s of {threshold.grace:.0f} s grace period left"
        if left > 0
        else ""
    )
