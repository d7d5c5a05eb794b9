"""koordlet's own signals: stall time, swap space, workloads close to their memory limit. Pure.

Covers: limits on the averages of the pressure files, swap left, the workload closest to its memory
limit, the conditions that follow.
Does not cover: evicting: these only tell, so that a scheduler and people know.

Kernel facts: Documentation/accounting/psi.rst: percent of time in which some, or all, tasks that
wanted to run waited for the resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.history import series
from koordlet.model import (
    decision,
    meter,
    qos,
    quantity_text,
    resources,
    snapshot,
    thresholds,
)
from koordlet.model import pod as pods

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
    conditions = [
        decision.Condition(
            type=kind,
            status=bool(met),
            reason=f"Koordlet{kind}" if met else f"KoordletNo{kind}",
            message="; ".join(met) or "within its limits",
        )
        for kind, met in holding.items()
    ]
    return signals, conditions


def _stall(now: snapshot.Snapshot, name: str, percent: float) -> decision.Signal:
    value = now.pressure.stalls.get(name)
    why = ""
    if value is None:
        resource = name.partition(".")[0]
        why = now.pressure.problems.get(f"pressure.{resource}", "this kernel does not report it")
    return decision.Signal(
        name=f"pressure.{name}",
        observed="" if value is None else f"{value:g}%",
        threshold=f"{percent:g}%",
        met=None if value is None else value >= percent,
        why=why,
    )


def _swap(now: snapshot.Snapshot, least: thresholds.Value) -> decision.Signal:
    total, free = now.pressure.swap_total, now.pressure.swap_free
    if not total or free is None:
        why = "no swap space" if total == 0 else "not known"
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
        and (limit := _memory_limit(pod))
        and (used := past.groups.last(pod.group, meter.WORKING_SET)) is not None
    ]
    if not known:
        why = "no measured workload has a memory limit"
        signal = decision.Signal(
            name=TIGHT, observed="", threshold=f"{percent}%", met=None, why=why
        )
        return signal, _tight_condition("")
    part, pod, used, limit = max(known, key=lambda each: (each[0], each[1].uid))
    sizes = f"{quantity_text.binary(int(used))} of {quantity_text.binary(limit)}"
    text = f"{pod.key} uses {sizes}"
    met = part * 100 >= percent
    signal = decision.Signal(
        name=TIGHT, observed=text, threshold=f"{percent}%", met=met, spelled=f"{percent}%"
    )
    # Without the number, which moves with every look: what changes is written.
    limit_text = quantity_text.binary(limit)
    return signal, _tight_condition(f"{pod.key} is near its limit of {limit_text}" if met else "")


def _memory_limit(pod: pods.Pod) -> int:
    batch = pod.limits.get(resources.BATCH_MEMORY) if pod.raw_qos is qos.Qos.BE else None
    return batch or pod.limits.get(resources.MEMORY, 0)


def _tight_condition(text: str) -> decision.Condition:
    return decision.Condition(
        type=TIGHT_CONDITION,
        status=bool(text),
        reason=f"Koordlet{TIGHT_CONDITION}" if text else f"KoordletNo{TIGHT_CONDITION}",
        message=text or "within its limits",
    )
