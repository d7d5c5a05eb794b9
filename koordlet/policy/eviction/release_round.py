"""One round of evictions until enough is released, as Koordinator's. Pure.

Covers: how many candidates go, those that were chosen before, the pause after a choice, relief.
Does not cover: candidates and their order (``candidates``), how much is short (the policies).

Rules:
1. Chosen pods that still exist, and pods being deleted, count as released before another pod is
   chosen, in every task of the round.
2. Each task goes through its order until its amount is released. Releases count in the unit of the
   short resource (Koordinator counts memory a thousandfold and so evicts too few).
3. After a choice no pod is chosen for the cool time.
4. Once there is relief, chosen pods whose eviction has not begun stay.
5. Stale input chooses no pod and suspends earlier choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from koordlet.model import action, decision, eviction, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.eviction import candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """State kept between ticks."""

    victims: tuple[eviction.Eviction, ...] = ()
    #: When somebody was chosen last.
    chosen_at: float | None = None


class Task(NamedTuple):
    """The amount that one feature must release, its reason and its candidates."""

    policy: str
    #: The peer's name of the feature.
    feature: str
    signal: decision.Signal
    #: In the unit of ``size``.
    amount: int
    ordered: Sequence[pods.Pod]
    size: candidates.Size


def turn(
    now: snapshot.Snapshot, state: State, tasks: Sequence[Task], *, cool: float, relieved: bool
) -> State:
    """The state after this round. ``relieved``: nothing is short any more (rule 4)."""
    here = {pod.uid for pod in now.pods if pod.active}
    waiting = () if relieved else tuple(victim for victim in state.victims if victim.uid in here)
    cooling = state.chosen_at is not None and 0 <= now.at - state.chosen_at < cool
    new: list[eviction.Eviction] = []
    if not cooling:
        gone = {victim.uid for victim in waiting}
        gone |= {pod.uid for pod in now.pods if pod.active and pod.deleting is not None}
        for task in tasks:
            chosen = _chosen(task, now, gone)
            gone |= {victim.uid for victim in chosen}
            new += chosen
    return State(victims=(*waiting, *new), chosen_at=now.at if new else state.chosen_at)


def _chosen(task: Task, now: snapshot.Snapshot, gone: set[str]) -> list[eviction.Eviction]:
    """Rules 1 and 2."""
    released = sum(task.size(pod) or 0 for pod in now.pods if pod.uid in gone)
    ranking = tuple(
        eviction.Candidate(
            pod=pod.key,
            keys=(
                ("priority", str(pod.priority_value)),
                ("size", "unknown" if (size := task.size(pod)) is None else str(size)),
            ),
        )
        for pod in task.ordered
    )
    chosen: list[eviction.Eviction] = []
    for pod in task.ordered:
        if released >= task.amount:
            break
        if pod.uid not in gone:
            size = task.size(pod) or 0
            released += size
            chosen.append(_eviction(task, pod, size, ranking, now.wall))
    return chosen


def _eviction(
    task: Task, pod: pods.Pod, size: int, ranking: tuple[eviction.Candidate, ...], wall: float
) -> eviction.Eviction:
    return eviction.Eviction(
        pod=pod.key,
        uid=pod.uid,
        policy=task.policy,
        signal=task.signal.name,
        reason=f"trigger by koordlet feature {task.feature}",
        message=f"{task.signal.name} is {task.signal.observed}, the threshold is"
        f" {task.signal.threshold}:"
        f" {task.amount} must be released. ",
        observed=task.signal.observed,
        threshold=task.signal.threshold,
        since=wall,
        group=pod.group,
        match=pod.match,
        ranking=ranking,
        release=size,
    )


def decided(
    state: State, signals: Sequence[decision.Signal], held: str = ""
) -> decision.Decision[Any]:
    """The decision of a policy; ``held`` is the reason to evict nothing now (rule 5)."""
    return decision.Decision(
        next_state=state,
        actions=()
        if held
        else tuple(action.evict(victim, victim.message.strip()) for victim in state.victims),
        evictions=() if held else state.victims,
        signals=tuple(signals),
        explanation={"held": held} if held else {},
    )
