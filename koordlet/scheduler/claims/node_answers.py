"""Which nodes can serve a demand, remembered until something changes there.

Covers: one answer for each node, with its solution; pods that ask for the same share them.
Does not cover: the search (``allocator``), the time for it (``search_time``).

An answer depends on what a node sees (slices, labels: ``PoolBook`` notes both) and on what is in
use of the pools that it sees. A pod that gets a device of a node costs the next one a search there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import allocator, devices_in_use, pools, search_time
from koordlet.scheduler.claims.demand import ClaimDemand
from koordlet.scheduler.cluster import vectors

#: Up to where changes of slices and of devices in use were taken in.
Position = tuple[int, int]
#: Of the first wish of a request; of each after it one less.
_BEST = 8
_NONE = allocator.Solution()


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """What a node says to a demand."""

    #: Empty: it can serve it.
    why_not: str = ""
    #: How early in their lists the wishes are that would be served, added up.
    rating: int = 0
    solution: allocator.Solution = _NONE


class NodeAnswers:
    """The answers of nodes to one demand."""

    def __init__(
        self,
        claims: Sequence[ClaimDemand],
        book: pools.PoolBook,
        in_use: devices_in_use.DevicesInUse,
        time: search_time.SearchTime,
    ) -> None:
        self.claims = tuple(claims)
        self._book, self._in_use, self._time = book, in_use, time
        self._answers: dict[str, NodeAnswer] = {}
        self._at = self.position
        #: Nodes whose answers have become old.
        self.changes: vectors.ChangeLog[str] = vectors.ChangeLog()
        #: Whether nodes may differ by which wishes they serve.
        self.has_wishes = any(
            "/" in wishes[0].name for wanted in self.claims for wishes in wanted.requests
        )
        #: Whether the last search has found that the pod cannot be served at all.
        self.broken = False

    def handed_on(self, claims: Sequence[ClaimDemand]) -> NodeAnswers:
        """The same answers for claims that ask for the same, which messages name then."""
        heir = NodeAnswers(claims, self._book, self._in_use, self._time)
        heir._answers, heir._at = dict(self._answers), self._at
        return heir

    @property
    def position(self) -> Position:
        """The present; another one later where answers may differ."""
        return self._book.changes.end, self._in_use.changes.end

    def _changed(self, since: Position) -> set[str] | None:
        """The nodes whose answers may be others since then; ``None``: all of them."""
        seen = self._book.changes.since(since[0])
        used = self._in_use.changes.since(since[1])
        if seen is None or used is None:
            return None
        nodes = set(seen)
        for key in set(used):
            viewers = self._book.viewers(key)
            if viewers is None:
                return None
            nodes |= viewers
        return nodes

    def of(self, nodes: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[NodeAnswer]:
        """The answers of nodes, given by name and labels.

        ``AllocationError``: no node can serve the demand, or there was no time to ask all.
        """
        self.forget()
        has_begun = False
        # Nodes that see the same devices share an answer.
        by_view: dict[int, NodeAnswer] = {}
        for node, labels in nodes:
            known = self._answers.get(node)
            if known is None:
                self.broken = True
                view = self._book.view(node, labels)
                known = by_view.get(id(view))
                if known is None:
                    if not has_begun:
                        self._time.begin()
                        has_begun = True
                    self._time.check()
                    known = by_view[id(view)] = self._searched(view)
                self._answers[node], self.broken = known, False
            yield known

    def _searched(self, view: pools.NodePools) -> NodeAnswer:
        solution = allocator.search(self.claims, view, self._in_use, self._time)
        rated = rating(self.claims, solution) if self.has_wishes else 0
        return NodeAnswer(solution.why_not, rated, solution)

    def forget(self) -> Position:
        """Drop the answers that have become old; up to where that is known."""
        now = self.position
        if now == self._at:
            return now
        changed = self._changed(self._at)
        self._at = now
        if changed is None:
            self._answers.clear()
            self.changes.forget()
            return now
        for node in changed:
            self._answers.pop(node, None)
            self.changes.append(node)
        return now


def rating(claims: Sequence[ClaimDemand], solution: allocator.Solution) -> int:
    """How early in their lists the wishes are that a solution serves, added up."""
    served = {(choice.claim, choice.request.name) for choice in solution.devices}
    return sum(
        _BEST - place
        for claim, wanted in enumerate(claims)
        for wishes in wanted.requests
        for place, wish in enumerate(wishes)
        if "/" in wish.name and (claim, wish.name) in served
    )
