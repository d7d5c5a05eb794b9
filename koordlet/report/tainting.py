"""Keeps koordlet's taints on the Node in step with conditions, and leaves other taints alone.

Covers: when the Node is read and written for it, who was faster, taking them away for good.
Does not cover: which taints (``report.objects.node_taints``), the loop (``report.writing``).

Rules:
1. Taints are one list, which every writer writes as a whole (an API server knows no keys in it). So
   the Node is read, the list laid anew, and written only if nobody wrote the Node in between: else
   once more, at once and a few times.
2. What stands there is known from the Node that is watched anyway: without a difference nothing is
   asked.
3. A taint stays for a while after its condition: one that comes and goes sends pods to and fro.
4. Without an effect none is wanted; what an agent before us left is taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.report import view, writing
from koordlet.report.objects import node_taints

#: Seconds that a taint outlasts its condition.
LINGERS = 30.0
#: How often somebody else may be faster before the next look.
_TRIES = 5


class Taints:
    """Taints of one node."""

    name = "Node taints"
    period = 1.0

    def __init__(self, effect: str | None, clock: Callable[[], float]) -> None:
        self._effect = effect
        self._clock = clock
        self._budget = writing.WriteBudget(clock)
        #: Key to when its condition held last.
        self._held: dict[str, float] = {}

    async def bring(self, store: objects.Objects, now: view.ReportView) -> int | None:
        """Make the Node's list as the conditions of this moment want it."""
        node = now.snapshot.node
        keys = self._wanted(now)
        if not node.known or node_taints.ours(node.taints) == self._marks(keys):
            return 0
        if not self._budget.take():
            return None
        return await lay(store, node.name, keys, self._effect or "")

    def _wanted(self, now: view.ReportView) -> frozenset[str]:
        """Rules 3 and 4."""
        if self._effect is None:
            return frozenset()
        at = self._clock()
        self._held |= dict.fromkeys(node_taints.wanted(now), at)
        self._held = {key: seen for key, seen in self._held.items() if at - seen < LINGERS}
        return frozenset(self._held)

    def _marks(self, keys: Iterable[str]) -> frozenset[str]:
        return frozenset(f"{key}:{self._effect}" for key in keys)


async def lay(store: objects.Objects, name: str, keys: Iterable[str] = (), effect: str = "") -> int:
    """Exactly these of ours, or none (rule 1); how often something was written."""
    ref = objects.Ref(kinds.NODES, name)
    wanted = tuple(keys)
    for tries in range(1, _TRIES + 1):
        there = await store.get(ref)
        made = node_taints.laid(there, wanted, effect)
        if made is None:
            return 0
        body = {"spec": {"taints": made or None}}
        try:
            await store.patch(ref, objects.Merge(body, objects.revision(there)))
        except refusals.Conflict:
            if tries == _TRIES:
                raise
        else:
            return 1
    return 0
