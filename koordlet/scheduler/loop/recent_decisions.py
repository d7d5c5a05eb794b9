"""The newest decisions with their scores, for the cluster page.

Covers: which are kept, whose scores are computed. Does not cover: showing them
(``scheduler.process.cluster_json``).

Rules:
1. It looks on before a pod takes its place: the scores are those that it was chosen by.
2. A decision costs a few words. Scores of all nodes cost a pass over them, so they are computed for
   one decision in ``PAUSE`` seconds at most: a queue that empties is not held up by scores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from koordlet.model.record import dataclass
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.loop.outcomes import Bind, Outcome, Refusal
from koordlet.scheduler.objects.pods import Pod

#: Decisions that are kept, seconds between scored ones, nodes that are named of a ranking.
KEPT, PAUSE, RANKED = 50, 0.2, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The best nodes with their totals, and how many could have been taken."""

    best: tuple[tuple[str, int], ...]
    feasible: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One scheduling attempt and its result."""

    #: By the clock of the loop.
    at: float
    #: Its key; the UID of a reservation.
    pod: str
    #: Empty: none.
    node: str
    message: str = ""
    #: It is about a reservation, about no pod.
    reservation: bool = False
    victims: tuple[str, ...] = ()
    #: ``None``: not computed (rule 2).
    ranking: Ranking | None = None


class RecentDecisions:
    """The newest decisions."""

    def __init__(self) -> None:
        self._entries: deque[Decision] = deque(maxlen=KEPT)
        self._ranked = float("-inf")

    def __iter__(self) -> Iterator[Decision]:
        """The newest first."""
        return reversed(tuple(self._entries))

    def ranking(self, cycle: Cycle, pod: Pod, now: float) -> Ranking | None:
        """The scores that a pod is placed by; ``None`` within ``PAUSE`` of the last ones."""
        if now - self._ranked < PAUSE:
            return None
        self._ranked = now
        scored = cycle.scored(pod)
        nodes = cycle.columns.nodes
        # Of equal totals the lowest row is the better one.
        best = tuple(
            (node.name, int(scored.totals[each]))
            for each in (-scored.totals).argsort(kind="stable")[:RANKED].tolist()
            if (node := nodes[int(scored.rows[each])]) is not None
        )
        return Ranking(best=best, feasible=int(scored.rows.size))

    def note(self, outcome: Outcome, ranking: Ranking | None, now: float) -> None:
        """Record an attempt."""
        pod = outcome.pod
        entry = Decision(
            at=now,
            pod=pod.reserve_pod_of or pod.key,
            node=outcome.node,
            reservation=bool(pod.reserve_pod_of),
            ranking=ranking,
        )
        if isinstance(outcome, Refusal):
            victims = tuple(victim.key for victim in outcome.victims)
            entry = replace(entry, message=outcome.message, victims=victims)
        self._entries.append(entry)

    def failed(self, bind: Bind, message: str, now: float) -> None:
        """Record a binding that the store did not take."""
        self._entries.append(Decision(at=now, pod=bind.pod.key, node="", message=message))
