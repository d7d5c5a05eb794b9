"""koordlet's own signals: stall time, swap space, workloads close to their memory limit. Pure.

Covers: thresholds of memory stalls and of swap that evict: what is observed of them, their
conditions, the pause after a victim; limits that only tell a scheduler and people: averages of the
pressure files, swap left, the workload closest to its memory limit.
Does not cover: bookkeeping (``pressure_state``), ranking (``ranking``).

Kernel facts: Documentation/accounting/psi.rst: percent of time in which some, or all, tasks that
wanted to run waited for the resource.

Rules:
1. Those that evict are thresholds like the kubelet's: what is available is time that is *not*
   lost, in hundredths of a percent, or swap space. All have one grace period.
2. Memory and swap only. Who uses most memory eases both by going, and is known; who stalls CPU or
   disks is not told by any counter of a pod (the stalled ones suffer), and is held back by other
   means: ``cpu_suppress``, ``adaptive``, ``cpu_evict``, ``blkio_qos``.
3. An average forgets slowly (psi.rst: exponentially, over its window), so that the next victim
   waits for two windows; swap is free as soon as its user is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from koordlet.history import series
from koordlet.model import decision, meter, pressure, quantity_text, snapshot, thresholds
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
    resource = signal.removeprefix(thresholds.STALL_PREFIX).partition(".")[0]
    return read.problems.get(f"pressure.{resource}", "this kernel does not report it")


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
        beyond = f"beyond {' or '.join(texts)}, or was lately"
        yield condition(kind, beyond if kind in holding else "")


def condition(kind: str, problem: str, fine: str = "within its limits") -> decision.Condition:
    """The condition of a kind, which holds where there is a problem."""
    return decision.Condition(
        type=kind,
        status=bool(problem),
        reason=f"Koordlet{kind}" if problem else f"KoordletNo{kind}",
        message=problem or fine,
    )


def _limit(threshold: thresholds.Threshold) -> str:
    sign = "<" if threshold.signal == thresholds.SWAP else ">="
    return f"{threshold.signal}{sign}{threshold.value.text}"


def united(several: Iterable[decision.Condition]) -> tuple[decision.Condition, ...]:
    """Merge conditions to one of each type; one that holds wins."""
    united: dict[str, decision.Condition] = {}
    for condition in several:
        if condition.type not in united or condition.status:
            united[condition.type] = condition
    return tuple(united.values())


# Limits that only tell --------------------------------------------------------------------------

#: Resource to the condition that its stalls are evidence of.
CONDITION = {"memory": "MemoryStalled", "cpu": "CPUStalled", "io": "IOStalled"}
SWAP = "swap.available"
_SWAP_CONDITION = "SwapPressure"
TIGHT = "workload.memory.available"
TIGHT_CONDITION = "WorkloadMemoryTight"


def judge(
    now: snapshot.Snapshot, limits: Mapping[str, float], swap: thresholds.Value | None
) -> tuple[list[decision.Signal], list[decision.Condition]]:
    """Judge the signals that have a limit, and the conditions that follow."""
    signals = [_stall(now, name, percent) for name, percent in sorted(limits.items())]
    if swap is not None:
        signals.append(_swap(now, swap))
    holding: dict[str, list[str]] = {}
    for signal in signals:
        kind = _SWAP_CONDITION if signal.name == SWAP else CONDITION[signal.name.split(".")[1]]
        met = holding.setdefault(kind, [])
        if signal.met:
            # Without the number, which moves with every look: what changes is written.
            met.append(f"{signal.name} is beyond its limit of {signal.threshold}")
    return signals, [condition(kind, "; ".join(met)) for kind, met in holding.items()]


def _stall(now: snapshot.Snapshot, name: str, percent: float) -> decision.Signal:
    value = now.pressure.stalls.get(name)
    return decision.Signal(
        name=f"pressure.{name}",
        observed="" if value is None else f"{value:g}%",
        threshold=f"{percent:g}%",
        met=None if value is None else value >= percent,
        why=missing(name, now.pressure) if value is None else "",
    )


def _swap(now: snapshot.Snapshot, least: thresholds.Value) -> decision.Signal:
    total, free = now.pressure.swap_total, now.pressure.swap_free
    if not total or free is None:
        why = missing(thresholds.SWAP, now.pressure)
        return decision.Signal(name=SWAP, observed="", threshold=least.text, met=None, why=why)
    return decision.Signal(
        name=SWAP,
        observed=quantity_text.binary(free),
        threshold=least.spelled(total),
        met=least.of(total) > free,
        spelled=least.text,
    )


def judge_tight(
    now: snapshot.Snapshot, past: series.History, percent: int
) -> tuple[decision.Signal, decision.Condition]:
    """Judge the workload that is closest to its memory limit."""
    known = [
        (used / limit, pod, used, limit)
        for pod in now.pods
        if pod.group is not None
        and pod.active
        and (limit := pod.memory_limit)
        and (used := past.groups.last(pod.group, meter.WORKING_SET)) is not None
    ]
    if not known:
        why = "no measured workload has a memory limit"
        signal = decision.Signal(
            name=TIGHT, observed="", threshold=f"{percent}%", met=None, why=why
        )
        return signal, condition(TIGHT_CONDITION, "")
    part, pod, used, limit = max(known, key=lambda each: (each[0], each[1].uid))
    sizes = f"{quantity_text.binary(int(used))} of {quantity_text.binary(limit)}"
    text = f"{pod.key} uses {sizes}"
    met = part * 100 >= percent
    signal = decision.Signal(
        name=TIGHT, observed=text, threshold=f"{percent}%", met=met, spelled=f"{percent}%"
    )
    # Without the number, which moves with every look: what changes is written.
    limit_text = quantity_text.binary(limit)
    return signal, condition(
        TIGHT_CONDITION, f"{pod.key} is near its limit of {limit_text}" if met else ""
    )
