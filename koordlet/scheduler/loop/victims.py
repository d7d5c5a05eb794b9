"""Victims of preemption from the decision until they are gone.

Covers: who is to be evicted, what is counted of it meanwhile. Does not cover: choosing victims
(``scheduler.framework.preemption``, ``scheduler.gangs.preemption``), evicting them (``reporter``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.objects.pods import Pod


class Victims:
    """Pods whose end is decided, whether the store has heard of it or not."""

    def __init__(
        self,
        pod_cache: PodCache,
        budgets: DisruptionBudgets,
        leave: Callable[[str], None] = lambda _node: None,
        left: Callable[[str], None] = lambda _node: None,
    ) -> None:
        """Who is told of a node that victims begin to leave, and that the last of them has left."""
        self._pod_cache, self._budgets = pod_cache, budgets
        self._leave, self._left = leave, left
        #: Whether a victim is not bound yet, and gives its room back instead of being deleted.
        self.gives_room: Callable[[Pod], bool] = lambda _: False
        self._nodes: dict[str, str] = {}
        #: How many have yet to leave a node, for each node that any has.
        self.leaving: Counter[str] = Counter()

    def __contains__(self, uid: str) -> bool:
        return uid in self._nodes

    def take(self, victims: Sequence[Pod], now: float) -> tuple[Pod, ...]:
        """Decide the end of these pods; those that were not ending by themselves."""
        fresh = tuple(
            victim for victim in victims if not victim.terminating and not self.gives_room(victim)
        )
        self._budgets.take(fresh, now)
        for victim in fresh:
            self._nodes[victim.uid] = victim.node
            self.leaving[victim.node] += 1
            if self.leaving[victim.node] == 1:
                self._leave(victim.node)
            victim.preempted = True
            self._pod_cache.ending(victim, ends=True)
        return fresh

    def drop(self, uid: str) -> None:
        """A pod is gone."""
        self._forget(uid)
        self._budgets.ends(uid)

    def _forget(self, uid: str) -> None:
        node = self._nodes.pop(uid, None)
        if node is not None:
            self.leaving[node] -= 1
            if not self.leaving[node]:
                del self.leaving[node]
                self._left(node)

    def spare(self, victim: Pod) -> bool:
        """Spare a victim that could not be deleted; whether it was still there."""
        self._forget(victim.uid)
        self._budgets.spare(victim.uid)
        known = self._pod_cache.get(victim.key)
        if known is None or known.uid != victim.uid or not known.terminating:
            return False
        self._pod_cache.ending(known, ends=False)
        return True
