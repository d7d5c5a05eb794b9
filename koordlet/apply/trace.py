"""One pass as its stations saw it, and what became of every action that a policy asked for. Pure.

Covers: the value that the stations of a pass fill, the fate of each action.
Does not cover: what was read (``model.snapshot``), showing a trace (``report.trace_json``).

Rules:
1. A trace changes nothing: a pass with a trace decides and drafts what it does without one.
2. Each action of each policy has one fate, in the order in which the policies decide.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from koordlet.apply import kinds, planner, present
from koordlet.model import action, plan
from koordlet.model.record import dataclass
from koordlet.policy.framework import chain


class Trace:
    """What the stations of one pass tell: the chain its inputs, the drafter its comparison."""

    def __init__(self) -> None:
        #: What each policy decided from, by its stem.
        self.inputs: chain.Inputs = {}
        self.wanted = planner.Wanted()
        self.present = present.Present()

    def compare(self, wanted: planner.Wanted, there: present.Present) -> None:
        """Take the merged actions of all policies, and what was found at their targets."""
        self.wanted, self.present = wanted, there


class Fate(enum.Enum):
    """What became of an action."""

    #: A step of the plan does it.
    DUE = "due"
    #: A step of the plan shows it: its policy is in shadow.
    SHADOW = "shadow"
    #: The machine is so already.
    ALREADY_SO = "alreadySo"
    #: Another policy wants another value there, and that one counts.
    OVERRULED = "overruled"
    #: Two policies limit the same file, and the stricter of both counts.
    MERGED = "merged"
    #: What is there gave no answer, so nothing is written.
    UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One action that a policy asked for, and its fate."""

    #: As the policy asked for it, before it was merged with those of others.
    action: action.Action
    mode: plan.Mode
    fate: Fate
    #: The text found there; ``None`` where nothing was found.
    was: str | None = None
    #: Places in the order of the plan; several where the value is reached on a way.
    steps: tuple[int, ...] = ()
    #: Who or what decided the fate, where it is not the action alone.
    detail: str = ""


def wishes(trace: Trace, round_: chain.Round, made: plan.Plan) -> Iterator[Wish]:
    """Every action of every policy with its fate."""
    steps: dict[str, list[plan.Step]] = {}
    for step in made.steps:
        if not step.undo:
            steps.setdefault(step.action.target, []).append(step)
    for outcome in round_.outcomes:
        for wanted in outcome.decision.actions if outcome.decision is not None else ():
            due = steps.get(wanted.target, [])
            fate, detail = _fate(trace, outcome.mode, wanted, due)
            numbered = fate in (Fate.DUE, Fate.SHADOW)
            yield Wish(
                action=wanted,
                mode=outcome.mode,
                fate=fate,
                was=trace.present.texts.get(wanted.target),
                steps=tuple(step.order for step in due) if numbered else (),
                detail=detail,
            )


def _fate(
    trace: Trace, mode: plan.Mode, wanted: action.Action, due: list[plan.Step]
) -> tuple[Fate, str]:
    unanswered = trace.present.unknown.get(wanted.target)
    if unanswered is not None:
        return Fate.UNANSWERED, f"{unanswered} gives no answer"
    kept = trace.wanted.actions[wanted.target]
    if kinds.value(kept) != kinds.value(wanted):
        if kept.policy == wanted.policy or trace.wanted.modes[wanted.target] is mode:
            if _is_conflict(trace, wanted):
                return Fate.OVERRULED, f"{kept.policy} comes first, and wants {kinds.value(kept)}"
            return Fate.MERGED, f"{kinds.value(kept)} counts: {kept.reason}"
        return Fate.OVERRULED, f"{kept.policy} enforces {kinds.value(kept)}"
    detail = "" if kept.policy == wanted.policy else f"{kept.policy} wants the same"
    if not due:
        return Fate.ALREADY_SO, detail
    shadow = all(step.mode is plan.Mode.SHADOW for step in due)
    return (Fate.SHADOW if shadow else Fate.DUE), detail


def _is_conflict(trace: Trace, wanted: action.Action) -> bool:
    return any(
        (conflict.target, conflict.dropped_policy, conflict.dropped)
        == (wanted.target, wanted.policy, kinds.value(wanted))
        for conflict in trace.wanted.conflicts
    )
