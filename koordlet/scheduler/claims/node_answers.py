"""Which nodes can serve a pod's claims, remembered until something changes there.

Covers: one answer for each node and each kind of demand; pods that ask for the same share them.
Does not cover: the search (``allocator``), which devices it would be (searched when one is chosen).

An answer depends on what a node sees (slices, labels: ``PoolBook`` notes both) and on what is in
use of the pools that it sees. A pod that gets a device of a node costs the next one a search there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import field

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import allocator, devices_in_use, pools
from koordlet.scheduler.claims.demand import ClaimDemand

#: Kinds of demand that are remembered: a few hundred kilobytes each in a large cluster.
_KINDS = 32


@dataclass(slots=True)
class _Known:
    """Answers, and up to where changes are in them."""

    slices_end: int
    use_end: int
    why_not: dict[str, str] = field(default_factory=dict)

    def forget(self, nodes: set[str] | None, slices_end: int, use_end: int) -> None:
        """Changes up to here have made answers old; ``None``: all of them."""
        for node in self.why_not.keys() & nodes if nodes is not None else list(self.why_not):
            del self.why_not[node]
        self.slices_end, self.use_end = slices_end, use_end


class NodeAnswers:
    """Why nodes cannot serve a demand; empty where they can."""

    def __init__(self, book: pools.PoolBook, in_use: devices_in_use.DevicesInUse) -> None:
        self._book, self._in_use = book, in_use
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def of(
        self,
        claims: Sequence[ClaimDemand],
        nodes: Mapping[str, Mapping[str, str]],
        most_steps: int = allocator.MOST_STEPS,
    ) -> Mapping[str, str]:
        """By node why it cannot serve the claims; ``nodes`` has their labels.

        The answers are of all nodes ever asked about. ``AllocationError``: no node can.
        """
        known = self._of_kind(claims)
        for node in nodes.keys() - known.why_not.keys():
            view = self._book.view(node, nodes[node])
            solution = allocator.search(claims, view, self._in_use, most_steps)
            known.why_not[node] = solution.why_not
        return known.why_not

    def _of_kind(self, claims: Sequence[ClaimDemand]) -> _Known:
        kind = _kind(claims)
        slices_end, use_end = self._book.changes.end, self._in_use.changes.end
        known = self._known.setdefault(kind, _Known(slices_end, use_end))
        self._known.move_to_end(kind)
        if len(self._known) > _KINDS:
            self._known.popitem(last=False)
        known.forget(self._changed(known), slices_end, use_end)
        return known

    def _changed(self, known: _Known) -> set[str] | None:
        """The nodes whose answers are old; ``None``: all of them."""
        seen = self._book.changes.since(known.slices_end)
        used = self._in_use.changes.since(known.use_end)
        if seen is None or used is None:
            return None
        nodes = set(seen)
        for key in set(used):
            viewers = self._book.viewers(key)
            if viewers is None:
                return None
            nodes |= viewers
        return nodes


def _kind(claims: Sequence[ClaimDemand]) -> str:
    """The same for pods that ask for the same: all that a search reads of them."""
    return repr(
        [
            (
                [[(wish.request, wish.key) for wish in wishes] for wishes in wanted.requests],
                wanted.claim.requests,
                wanted.claim.constraints,
            )
            for wanted in claims
        ]
    )
