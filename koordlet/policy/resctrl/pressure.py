"""Noisy-neighbour detection: best-effort bandwidth while latency-sensitive work waits.

Covers: the share of each domain's traffic that is best-effort's, the signal, the next step of the
limit. Does not cover: reading counters (``host.resctrl.monitor``), what the pressure of latency-
sensitive work is (whoever observes it passes it in), writing the limit (``resctrl``).

Bandwidth is tightened before CPU is taken: it slows the neighbour and stops nothing. A limit is
halved at once and given back a step at a time, so that it does not swing.
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.model import decision, resctrl, snapshot
from koordlet.model.record import dataclass

#: Best-effort work may take this much of a domain's traffic, in percent.
SHARE = 50.0
#: From here on latency-sensitive work waits too long: percent of time (PSI, some).
PRESSURE = 5.0
STEP = 10
LEAST = 10
#: Seconds between two steps: no shorter than the counters' slow lane, so that each sees new ones.
PERIOD = 10.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """One domain's memory traffic in bytes per second."""

    domain: str
    best_effort: float
    total: float

    @property
    def share(self) -> float:
        """Share of best-effort work in percent; 0 without traffic."""
        return 100.0 * self.best_effort / self.total if self.total > 0 else 0.0


def traffic(usage: Iterable[resctrl.Usage]) -> tuple[Traffic, ...]:
    """Memory traffic of each domain, as far as it is known.

    A control group's counters are the sum of its own tasks and of all its monitoring groups
    (Documentation/arch/x86/resctrl.rst, "mon_data"), so those are not counted again.
    """
    totals: dict[str, tuple[float, float]] = {}
    for reading in usage:
        if reading.total_rate is None or "mon_groups" in reading.group.split("/"):
            continue
        theirs, whole = totals.get(reading.domain, (0.0, 0.0))
        noisy = reading.total_rate if reading.group == "BE" else 0.0
        totals[reading.domain] = (theirs + noisy, whole + reading.total_rate)
    return tuple(Traffic(domain, *rates) for domain, rates in sorted(totals.items()))


def of(now: snapshot.Snapshot) -> tuple[decision.Signal, ...]:
    """Noisy-neighbour signals of a snapshot."""
    if now.resctrl is None:
        return ()
    waiting = None if now.strain is None else now.strain.waiting
    # Of the time in which its threads want to run, so much they wait.
    felt = None if waiting is None else 100 * waiting / (1 + waiting)
    return signals(now.resctrl.usage, felt)


def signals(usage: Iterable[resctrl.Usage], pressure: float | None) -> tuple[decision.Signal, ...]:
    """One signal for each domain: met where both the share and the pressure are over their limits.

    ``pressure`` is of latency-sensitive work in percent of time.
    """
    return tuple(_signal(flow, pressure) for flow in traffic(usage))


def _signal(flow: Traffic, pressure: float | None) -> decision.Signal:
    observed = f"{flow.share:.0f} % of {flow.total / 1e9:.2f} GB/s"
    known = pressure is not None
    return decision.Signal(
        name=f"{resctrl.NOISY_NEIGHBOUR}.{flow.domain}",
        observed=f"{observed}, pressure {pressure:.1f} %" if known else observed,
        threshold=f"{SHARE:g} % of the traffic and {PRESSURE:g} % pressure",
        met=flow.share > SHARE and pressure > PRESSURE if pressure is not None else None,
        why="" if known else "the pressure of latency-sensitive work is not known",
    )


def tightened(percent: int, signals: Iterable[decision.Signal], *, most: int = 100) -> int:
    """Compute the next bandwidth limit of best-effort work, in percent.

    Halved where a neighbour is noisy, a step wider where all is quiet, kept where it is not known.
    """
    met = [signal.met for signal in signals]
    if any(met):
        return max(LEAST, percent // 2 // STEP * STEP)
    if not met or None in met:
        return percent
    return min(most, percent + STEP)
