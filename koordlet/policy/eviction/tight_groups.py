"""Workloads close to their own memory limit: a signal of koordlet's. Pure.

Covers: the one that is nearest to its limit, the condition that follows.
Does not cover: evicting: this only tells, since such a workload harms nobody but itself.
"""

from __future__ import annotations

from koordlet.history import series
from koordlet.model import decision, meter, qos, quantity_text, resources, snapshot
from koordlet.model import pod as pods

SIGNAL = "workload.memory.available"
CONDITION = "WorkloadMemoryTight"


def judge(
    now: snapshot.Snapshot, past: series.History, percent: int
) -> tuple[decision.Signal, decision.Condition]:
    """Judge the workload that is closest to its memory limit."""
    known = [
        (used / limit, pod, used, limit)
        for pod in now.pods
        if pod.group is not None
        and pod.active
        and (limit := _limit(pod))
        and (used := past.groups.last(pod.group, meter.WORKING_SET)) is not None
    ]
    if not known:
        why = "no measured workload has a memory limit"
        signal = decision.Signal(
            name=SIGNAL, observed="", threshold=f"{percent}%", met=None, why=why
        )
        return signal, _condition("")
    part, pod, used, limit = max(known, key=lambda each: (each[0], each[1].uid))
    sizes = f"{quantity_text.binary(int(used))} of {quantity_text.binary(limit)}"
    text = f"{pod.key} uses {sizes}"
    met = part * 100 >= percent
    signal = decision.Signal(
        name=SIGNAL, observed=text, threshold=f"{percent}%", met=met, spelled=f"{percent}%"
    )
    # Without the number, which moves with every look: what changes is written.
    limit_text = quantity_text.binary(limit)
    return signal, _condition(f"{pod.key} is near its limit of {limit_text}" if met else "")


def _limit(pod: pods.Pod) -> int:
    batch = pod.limits.get(resources.BATCH_MEMORY) if pod.raw_qos is qos.Qos.BE else None
    return batch or pod.limits.get(resources.MEMORY, 0)


def _condition(text: str) -> decision.Condition:
    return decision.Condition(
        type=CONDITION,
        status=bool(text),
        reason=f"Koordlet{CONDITION}" if text else f"KoordletNo{CONDITION}",
        message=text or "within its limits",
    )
