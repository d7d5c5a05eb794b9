"""Calling back what was lent: which pods of a quota above its runtime go.

Covers: since when a quota is above, the choice of pods, parents by their leaves. A function of the
amounts and the clock. Does not cover: evicting (``loop.revoke_controller``), at which pace
(``disruption.limiter``).

Rules:
1. A quota is above where it uses more than its runtime of a name that its maximum bounds. Pods that
   end already count as gone.
2. Above for longer than ``delay``: pods go from the least important on (lower priority first, of
   equals the youngest), those that may not be preempted never, and nobody who has nothing of a name
   that is exceeded.
3. Then the most important ones stay after all, as far as the runtime has room for them.
4. A parent above its runtime is repaired at its leaves, the one with the largest excess first.
   What its leaves call back by themselves counts.
5. After a choice, the delay begins anew. Who was chosen and is still there is named again each
   time, unless the quota has room for it by now.
6. The root and the system quota call nothing back.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from koordlet.kubeapi import elastic_quotas
from koordlet.model.record import dataclass
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas.amounts import Amounts, add, listed
from koordlet.scheduler.quotas.tree import QuotaNode, Usage

_NEVER = frozenset({elastic_quotas.ROOT, elastic_quotas.SYSTEM})


class CountedPod(Protocol):
    """A pod of a quota, and what it counts for."""

    @property
    def pod(self) -> Pod:
        """The pod."""

    @property
    def usage(self) -> Usage:
        """Its amounts."""


class QuotaAmounts(Protocol):
    """The parts of ``book.QuotaBook`` that are asked."""

    @property
    def nodes(self) -> Mapping[str, QuotaNode]:
        """All quotas by name."""

    def limit(self, node: QuotaNode) -> Amounts:
        """What a quota may use now."""

    def counted(self, node: QuotaNode) -> Iterable[CountedPod]:
        """The pods that are directly in a quota."""


@dataclass(frozen=True, slots=True)
class Revocation:
    """A pod that is to go, and for which quota."""

    pod: Pod
    #: That is above its runtime: the pod's own, or one above.
    quota: QuotaNode
    message: str


class RevokeWatch:
    """Since when each quota is above its runtime."""

    def __init__(self, delay: float, equals: Callable[[Pod], Any] | None = None) -> None:
        """``equals``: the order among pods of one priority and age."""
        self._delay = delay
        self._equals: Callable[[Pod], Any] = equals or operator.attrgetter("key")
        #: When each quota was last not above.
        self._within: dict[str, float] = {}
        #: By quota: the UIDs of pods that were chosen (rule 5).
        self._called: dict[str, frozenset[str]] = {}

    def look(self, picture: QuotaAmounts, now: float) -> list[Revocation]:
        """The pods that are called back now."""
        # Those below before those above (rule 4).
        nodes = sorted(
            (node for node in picture.nodes.values() if node.name not in _NEVER),
            key=lambda node: (-len(node.path), node.name),
        )
        self._within = {node.name: self._within.get(node.name, now) for node in nodes}
        usable = _Usable(picture)
        revocations: list[Revocation] = []
        for node in nodes:
            if called := self._called.get(node.name):
                revocations += self._call_back(usable, node, called)
        for node in nodes:
            if not usable.exceeded(node):
                self._within[node.name] = now
            elif now - self._within[node.name] > self._delay:
                self._within[node.name] = now
                revocations += self._call_back(usable, node)
        called_by: dict[str, set[str]] = {}
        for revocation in revocations:
            called_by.setdefault(revocation.quota.name, set()).add(revocation.pod.uid)
        self._called = {name: frozenset(uids) for name, uids in called_by.items()}
        return revocations

    def _call_back(
        self, usable: _Usable, node: QuotaNode, only: frozenset[str] | None = None
    ) -> list[Revocation]:
        """Choose pods, of all or of those that were chosen before."""
        names = usable.exceeded(node)
        message = _message(node, names, usable.used(node), usable.runtime(node))
        below = sorted(node.below(), key=lambda each: (-usable.excess(each, names), each.name))
        taken: list[CountedPod] = []
        for each in below:
            for counted in sorted(usable.pods(each), key=self._importance):
                exceeded = usable.exceeded(node)
                if not exceeded:
                    break
                chosen = only is None or counted.pod.uid in only
                if chosen and any(counted.usage.used.get(name) for name in exceeded):
                    usable.take(each, counted)
                    taken.append(counted)
        for counted in sorted(taken, key=self._importance, reverse=True):
            if usable.fits(node, counted.usage.used):
                usable.put_back(counted)
                taken.remove(counted)
        return [Revocation(counted.pod, node, message) for counted in taken]

    def _importance(self, counted: CountedPod) -> tuple[Any, ...]:
        """The least important first (rule 2)."""
        pod = counted.pod
        return pod.priority, _descending(pod.created), self._equals(pod)


class _Usable:
    """Amounts at a moment, less what goes."""

    def __init__(self, picture: QuotaAmounts) -> None:
        self._picture = picture
        self._less: dict[str, dict[str, int]] = {}
        self._taken: dict[str, QuotaNode] = {}
        for node in picture.nodes.values():
            for counted in picture.counted(node):
                if counted.pod.terminating:
                    self._add(node, counted.usage.used, 1)

    def _add(self, node: QuotaNode, amounts: Amounts, sign: int) -> None:
        for each in node.path:
            add(self._less.setdefault(each.name, {}), amounts, sign)

    def runtime(self, node: QuotaNode) -> Amounts:
        return self._picture.limit(node)

    def used(self, node: QuotaNode) -> Amounts:
        less = self._less.get(node.name)
        if not less:
            return node.used
        used = dict(node.used)
        add(used, less, -1)
        return used

    def exceeded(self, node: QuotaNode) -> list[str]:
        """The names of which a quota uses more than its runtime (rule 1)."""
        used, most = self.used(node), self.runtime(node)
        return sorted(name for name in node.spec.max if used.get(name, 0) > most.get(name, 0))

    def excess(self, node: QuotaNode, names: Iterable[str]) -> float:
        """How far a quota is above its own runtime, in parts of it, of the name it is worst in."""
        used, most = self.used(node), self.runtime(node)
        return max(
            ((used.get(name, 0) - most.get(name, 0)) / max(1, most.get(name, 0)) for name in names),
            default=0.0,
        )

    def fits(self, node: QuotaNode, amounts: Amounts) -> bool:
        """Whether a quota has room for amounts within its runtime."""
        used, most = self.used(node), self.runtime(node)
        return all(
            used.get(name, 0) + amounts.get(name, 0) <= most.get(name, 0) for name in node.spec.max
        )

    def pods(self, node: QuotaNode) -> list[CountedPod]:
        """The pods directly in a quota that may go."""
        return [
            counted
            for counted in self._picture.counted(node)
            if counted.usage.used
            and not counted.usage.non_preemptible
            and not counted.pod.terminating
            and counted.pod.uid not in self._taken
            and not counted.pod.reserve_pod_of
        ]

    def take(self, leaf: QuotaNode, counted: CountedPod) -> None:
        self._taken[counted.pod.uid] = leaf
        self._add(leaf, counted.usage.used, 1)

    def put_back(self, counted: CountedPod) -> None:
        self._add(self._taken.pop(counted.pod.uid), counted.usage.used, -1)


def _message(node: QuotaNode, names: list[str], used: Amounts, runtime: Amounts) -> str:
    return (
        f"quota {node.name} uses {listed(used, names)} and may use {listed(runtime, names)} now:"
        " others want what it borrowed"
    )


def _descending(text: str) -> tuple[int, ...]:
    """A key that sorts later texts first."""
    return tuple(-ord(letter) for letter in text)
