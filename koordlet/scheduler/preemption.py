"""Which pods have to go so that a more important one finds its place.

Covers: victims on one node, disruption budgets, the choice among nodes, the message.
Does not cover: evicting them (the caller's).

A dry run takes the pods out of the columns, asks the filters of that one node, and puts them back:
the verdict is that of the real cycle, because it is the real cycle.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from koordlet.model import selectors
from koordlet.scheduler import messages, terms
from koordlet.scheduler.columns import Columns
from koordlet.scheduler.cycle import Cycle
from koordlet.scheduler.framework import Failure, Verdict
from koordlet.scheduler.pods import Pod
from koordlet.scheduler.reservation import keys
from koordlet.scheduler.view import View

#: A tenth of the nodes, but at least a hundred, are enough to choose from.
_SHARE, _LEAST = 10, 100


@dataclass(slots=True)
class Budget:
    """A PodDisruptionBudget: how many more of its pods may go."""

    namespace: str
    selector: selectors.Compiled | None
    allowed: int
    #: Names that are on their way out and counted already.
    disrupted: frozenset[str] = frozenset()

    def covers(self, pod: Pod) -> bool:
        """Whether it protects a pod; an empty selector protects nobody here."""
        return (
            self.namespace == pod.namespace
            and self.selector is not None
            and bool(self.selector.labels)
            and bool(pod.sort.labels)
            and pod.name not in self.disrupted
            and terms.holds(self.selector, pod.sort.labels)
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, and who would have to leave it."""

    row: int
    victims: tuple[Pod, ...]
    violations: int


#: Who was promised a place on a node before a pod, by row.
Promised = Callable[[int], Sequence[Pod]]


def nobody(_row: int) -> Sequence[Pod]:
    """Nobody was promised anything."""
    return ()


def attempt(
    cycle: Cycle,
    pod: Pod,
    failure: Failure,
    budgets: Sequence[Budget],
    promised: Promised = nobody,
) -> Candidate | str:
    """The node to preempt on, or why there is none."""
    if not pod.preempts:
        return "preemption: not eligible due to preemptionPolicy=Never."
    total = len(cycle.columns.rows)
    if failure.verdicts is None:
        found = dict.fromkeys(range(total), messages.NOT_HELPFUL)
        return _message(total, list(found.values()))
    potential = [row for row, verdict in failure.verdicts.items() if verdict.resolvable]
    reasons = [messages.NOT_HELPFUL] * (total - len(potential))
    wanted = min(len(potential), max(len(potential) * _SHARE // 100, _LEAST))
    candidates: list[Candidate] = []
    with cycle.sight(pod) as view:
        for row in potential:
            with joined(cycle.columns, row, promised(row)):
                tried = _dry_run(cycle, view, pod, row, budgets)
            if isinstance(tried, Verdict):
                reasons += tried.reasons
                continue
            candidates.append(tried)
            if len(candidates) >= wanted and any(not one.violations for one in candidates):
                break
    return min(candidates, key=_cost) if candidates else _message(total, reasons)


@contextlib.contextmanager
def joined(columns: Columns, row: int, guests: Sequence[Pod]) -> Iterator[None]:
    """As if those who were promised a place on a node had it already.

    Guests are at least as important as the pod that is tried: nobody takes them for victims.
    """
    for one in guests:
        columns.place(one, row)
    try:
        yield
    finally:
        for one in guests:
            columns.remove(one)
            one.node = ""


def _message(total: int, reasons: list[str]) -> str:
    return f"preemption: {messages.histogram(total, reasons)}"


def _dry_run(
    cycle: Cycle, view: View, pod: Pod, row: int, budgets: Sequence[Budget]
) -> Candidate | Verdict:
    columns = cycle.columns
    lower = [one for one in columns.pods[row].values() if _may_go(one, pod)]
    if not lower:
        return Verdict((messages.NO_VICTIMS,), resolvable=False)
    lower.sort(key=importance)
    for one in lower:
        columns.remove(one)
    victims: list[Pod] = []
    try:
        refusal = view.verdict(row)
        if refusal is not None:
            victims = lower
            return refusal
        violating, others = split(lower, budgets)
        violations = 0
        for group, counts in ((violating, True), (others, False)):
            for one in group:
                columns.place(one, row)
                if not view.passes(row):
                    columns.remove(one)
                    victims.append(one)
                    violations += counts
    finally:
        for one in victims:
            columns.place(one, row)
    if violating and others:
        victims.sort(key=importance)
    return Candidate(row, tuple(victims), violations)


def _may_go(one: Pod, pod: Pod) -> bool:
    """Less important, a pod that runs, and not exempt by the peer's label."""
    if one.priority >= pod.priority or one.stands_for:
        return False
    return one.sort.labels.get(keys.NEVER_VICTIM) != "true"


def split(pods: Sequence[Pod], budgets: Sequence[Budget]) -> tuple[list[Pod], list[Pod]]:
    """Those whose leaving would break a budget, and the others, in the given order."""
    left = [one.allowed for one in budgets]
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        broken = False
        for place, budget in enumerate(budgets):
            if budget.covers(pod):
                left[place] -= 1
                broken |= left[place] < 0
        (violating if broken else others).append(pod)
    return violating, others


def importance(pod: Pod) -> tuple[int, str, int]:
    """Most important first: higher priority, then longer running, then the input's order."""
    return -pod.priority, pod.started or "~", pod.position


def _cost(one: Candidate) -> tuple[int, int, int, int, tuple[int, ...], int]:
    """Fewest violations, lowest top priority, lowest sum, fewest, latest start; lowest row."""
    top = max((pod.priority for pod in one.victims), default=-(2**31))
    summed = sum(pod.priority + 2**31 for pod in one.victims)
    earliest = min((pod.started or "~" for pod in one.victims if pod.priority == top), default="")
    # Later start times first: each character counts down.
    latest = tuple(-ord(letter) for letter in earliest)
    return one.violations, top, summed, len(one.victims), latest, one.row
