"""Separates limits in force from limits of inactive policies for all surfaces.

Covers: a limit whose files were refused, and the sentences above every surface about what does not
act. Does not cover: modes (``apply.planner``), rendering.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from koordlet.model import best_effort, knob, result
from koordlet.report import view

#: Files that hold best-effort work to an amount of CPU.
_HOLDING = frozenset({knob.CPUSET_CPUS.name, knob.CPU_CFS_QUOTA.name})
_THERE = frozenset({result.Verdict.DONE, result.Verdict.VANISHED})


def limit(
    decided: best_effort.Limit | None, results: Iterable[result.Result]
) -> best_effort.Limit | None:
    """The limit, idle where a file that holds it was not written in this pass."""
    if decided is None or decided.milli is None:
        return decided
    for one in results:
        step = one.step
        if step is None or step.undo or one.verdict in _THERE:
            continue
        did = step.action
        if did.policy == decided.policy and getattr(did, "knob", "") in _HOLDING:
            why = one.detail or one.verdict.value
            return best_effort.idle(decided, f"{one.target} was not written: {why}")
    return decided


def acting(now: view.ReportView) -> best_effort.Limit | None:
    """The limit that best-effort work is held to now."""
    found = now.plan.limit
    return None if found is None or found.idle else found


def allowance(found: best_effort.Limit) -> str:
    """Amount of CPU as text."""
    return "all of its CPUs" if found.milli is None else f"{found.milli / 1000:.2f} CPUs"


def banner(now: view.ReportView) -> Iterator[str]:
    """A sentence for each policy that is not in force."""
    if now.mode != "enforce":
        yield "This agent only observes and changes nothing."
    found = now.plan.limit
    if found is not None and found.idle and now.mode == "enforce":
        yield (
            f"Best-effort work is not limited: {found.idle}"
            f" ({found.policy} would allow {allowance(found)})."
        )
    for condition in now.plan.conditions:
        if condition.type == "PolicyRolledBack" and condition.status:
            yield f"A change by {condition.subject} was undone: {condition.message}."
