"""Putting everything back: one code path for stopping, for ``koordlet restore``, for a successor.

Covers: passes of restore until nothing more can be done, and what could not be.
Does not cover: what a restore consists of (``apply.planner``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from koordlet import line
from koordlet.apply import executor
from koordlet.model import result

#: A group that empties late, or a set that waits for those above or below it, is tried again.
_PASSES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a restore did."""

    restored: int
    #: Not put back because somebody else has written there since, or the group is gone.
    left: tuple[result.Result, ...]
    failed: tuple[result.Result, ...]


def restore(
    run: line.Line,
    hands: executor.Executor,
    report: Callable[[result.Result], None] = lambda _: None,
) -> Summary:
    """Put back everything that the journal holds. A second call does nothing."""
    restored = 0
    left: dict[str, result.Result] = {}
    failed: dict[str, result.Result] = {}
    for _ in range(_PASSES):
        entries = dict(hands.book.entries)
        if not entries:
            break
        made = run.restoring(entries)
        hands.pauses.keep_only(set())
        results = hands.run(made.draft, made.snapshot, report, patience=executor.PATIENCE)
        run.moved(results)
        good = [one for one in results if one.verdict is result.Verdict.DONE]
        restored += sum(1 for one in good if one.step is not None and not one.step.interim)
        left |= {one.target: one for one in results if one.verdict is result.Verdict.LEFT}
        failed = {one.target: one for one in results if one.verdict in result.BAD}
        if not good:
            break
    return Summary(restored=restored, left=tuple(left.values()), failed=tuple(failed.values()))
