"""koordlet's own pressure signals: stall time and swap space. Pure.

Covers: limits on the averages of the pressure files, swap left, the conditions that follow.
Does not cover: evicting: these only tell, so that a scheduler and people know.

Kernel facts: Documentation/accounting/psi.rst: percent of time in which some, or all, tasks that
wanted to run waited for the resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model import decision, quantity_text, snapshot, thresholds

#: Resource to the condition that its stalls are evidence of.
CONDITION = {"memory": "MemoryStalled", "cpu": "CPUStalled", "io": "IOStalled"}
SWAP = "swap.available"
_SWAP_CONDITION = "SwapPressure"


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
