"""Whether the last draft still stands: it had nothing to do, and nothing has changed.

Covers: comparing two passes, how long the files that neither shows are trusted to be as they were.
Does not cover: the slow lane, which trusts nothing (``agent.tick``).
"""

from __future__ import annotations

from koordlet.apply import planner
from koordlet.model import plan, snapshot
from koordlet.policy.framework import chain

#: Passes in a row that may trust that files of which nothing was told did not change.
_PASSES = 9


class Trust:
    """Trust in unread files: until an event arrives, and for a few passes only."""

    def __init__(self) -> None:
        self._known: object = None
        self._left = -1

    def begins(self, known: object) -> None:
        """Begin anew after all files were read; ``known`` changes with every event."""
        self._known, self._left = known, _PASSES

    def lasts(self, known: object) -> bool:
        """Whether one more pass may trust unread files."""
        self._left = self._left - 1 if known == self._known else -1
        return self._left >= 0


def stands(
    draft: planner.Draft,
    before: tuple[snapshot.Snapshot, chain.Round],
    now: tuple[snapshot.Snapshot, chain.Round],
    *,
    acting: bool = True,
) -> bool:
    """Whether the last draft had nothing to do and would be the same again.

    What policies in shadow would do is not done; where nobody acts, neither is the rest.
    Only while the kernel tells what happens are the groups the same object; else each draft is made
    anew.
    """
    (then, wanted), (seen, wants) = before, now
    return (
        not (acting and any(step.mode is plan.Mode.ENFORCE for step in draft.plan.steps))
        and not draft.left
        and not then.unanswered
        and then.groups is seen.groups
        and then.unsupported == seen.unsupported
        and then.resctrl is seen.resctrl
        and then.cookies is seen.cookies
        and _same_wishes(wanted, wants)
    )


def _same_wishes(before: chain.Round, now: chain.Round) -> bool:
    """Whether the policies want the same of the machine, whatever they measured."""
    return len(before.outcomes) == len(now.outcomes) and all(
        outcome is other
        or (
            (outcome.stem, outcome.mode, outcome.failure) == (other.stem, other.mode, other.failure)
            and _wishes(outcome) == _wishes(other)
        )
        for outcome, other in zip(before.outcomes, now.outcomes, strict=True)
    )


def _wishes(outcome: chain.Outcome) -> tuple[object, ...]:
    return outcome.decision.actions if outcome.decision is not None else ()
