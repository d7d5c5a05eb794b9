"""Node pressure signals for reports: observed, threshold, since when, why not. Pure.

Covers: one row for each threshold that is configured. Does not cover: deciding (``node_pressure``),
signals without a threshold that evicts (``stalls``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from koordlet.model import decision, snapshot, thresholds
from koordlet.model.record import dataclass
from koordlet.policy.eviction import (
    kubelet_owned,
    messages,
    own_thresholds,
    pressure_signals,
    pressure_state,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Observations at one moment and the thresholds for them."""

    now: snapshot.Snapshot
    #: Without what is too old.
    found: Mapping[str, pressure_signals.Observation]
    #: Signal of the kubelet's to why it is not observed.
    missing: Mapping[str, str]
    configured: tuple[thresholds.Threshold, ...]
    beside: kubelet_owned.Neighbour


def signals(look: Look, book: pressure_state.Book) -> Iterator[decision.Signal]:
    """Signals in the order of the configuration."""
    for threshold in look.configured:
        seen = look.found.get(threshold.signal)
        if seen is None:
            yield decision.Signal(
                name=threshold.signal,
                observed="",
                threshold=threshold.value.text,
                met=None,
                why=_missing(look, threshold.signal),
            )
            continue
        name = pressure_state.name(threshold)
        first = book.first.get(name)
        met = pressure_state.is_met(threshold, look.found) or (
            name in book.acted and pressure_state.is_met(threshold, look.found, reclaim=True)
        )
        wanted = messages.wanted(threshold, seen.capacity)
        late = look.beside.late(threshold, seen.capacity)
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
        return own_thresholds.missing(signal, look.now.pressure)
    return look.missing.get(signal) or "the file system has not answered lately"


def _waiting(threshold: thresholds.Threshold, at: float, first: float | None) -> str:
    left = threshold.grace - (at - (at if first is None else first))
    return (
        f"soft threshold: {left:.0f} s of {threshold.grace:.0f} s grace period left"
        if left > 0
        else ""
    )
