"""koordlet's own eviction thresholds: memory stalls and swap space. Pure.

Covers: what is observed of them, their conditions, the pause after a victim.
Does not cover: bookkeeping (``pressure_state``), ranking (``ranking``), telling without
evicting (``stalls``).

Rules:
1. They are thresholds like the kubelet's: what is available is time that is *not* lost, in
   hundredths of a percent, or swap space. All have one grace period.
2. Memory and swap only. Who uses most memory eases both by going, and is known; who stalls CPU or
   disks is not told by any counter of a pod (the stalled ones suffer), and is held back by other
   means: ``cpu_suppress``, ``adaptive``, ``cpu_evict``, ``blkio_qos``.
3. An average forgets slowly (psi.rst: exponentially, over its window), so that the next victim
   waits for two windows; swap is free as soon as its user is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from koordlet.model import decision, pressure, thresholds
from koordlet.policy.eviction import pressure_signals

_SWAP_PAUSE = 10.0


def observe(read: pressure.Reading) -> Iterator[tuple[str, pressure_signals.Observation]]:
    """Observations of koordlet's own signals."""
    for signal in thresholds.STALLS:
        lost = read.stalls.get(signal.removeprefix(thresholds.STALL_PREFIX))
        if lost is not None:
            left = thresholds.left(lost)
            yield signal, pressure_signals.Observation(left, thresholds.WHOLE, read.at)
    if read.swap_total and read.swap_free is not None:
        yield (
            thresholds.SWAP,
            pressure_signals.Observation(read.swap_free, read.swap_total, read.at),
        )


def missing(signal: str, read: pressure.Reading) -> str:
    """The reason that a signal is not observed."""
    if signal == thresholds.SWAP:
        return "no swap space" if read.swap_total == 0 else "not known"
    return read.problems.get("pressure.memory", "this kernel does not report it")


def pause(signal: str) -> float:
    """Seconds after a victim until its relief can be seen (rule 3); nothing for the kubelet's."""
    if signal in thresholds.STALLS:
        return 2.0 * float(signal.rpartition("avg")[2])
    return _SWAP_PAUSE if signal == thresholds.SWAP else 0.0


def conditions(
    configured: Iterable[thresholds.Threshold], holding: Iterable[str]
) -> Iterator[decision.Condition]:
    """A condition for each kind that has a threshold."""
    limits: dict[str, list[str]] = {}
    for threshold in configured:
        limits.setdefault(thresholds.CONDITION[threshold.signal], []).append(_limit(threshold))
    for kind, texts in limits.items():
        holds = kind in holding
        yield decision.Condition(
            type=kind,
            status=holds,
            reason=f"Koordlet{kind}" if holds else f"KoordletNo{kind}",
            message=f"beyond {' or '.join(texts)}, or was lately" if holds else "within its limits",
        )


def _limit(threshold: thresholds.Threshold) -> str:
    sign = "<" if threshold.signal == thresholds.SWAP else ">="
    return f"{threshold.signal}{sign}{threshold.value.text}"


def united(several: Iterable[decision.Condition]) -> tuple[decision.Condition, ...]:
    """Merge conditions to one of each type; one that holds wins."""
    found: dict[str, decision.Condition] = {}
    for condition in several:
        if condition.type not in found or condition.status:
            found[condition.type] = condition
    return tuple(found.values())
