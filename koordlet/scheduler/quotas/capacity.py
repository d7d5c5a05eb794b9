"""Quotas where a namespace is the quota: what each may use, and who borrows.

Covers: the oldest quota of each namespace, bounds and messages of admission, who is above its
minimum. Does not cover: counting pods (``book``), making room (``loop.capacity_scheduler``).

Rules:
1. There is no tree and no runtime: a namespace may use up to its maximum, and all namespaces with
   a quota together up to the sum of their minimums.
2. A name that a minimum lacks is zero of it; one that a maximum lacks is not bounded. Only names
   that the pod asks for are compared.
3. A pod that is nominated counts as if it were there: for its own namespace where it is at least
   as important, for all together also where its namespace is not above its minimum.
4. Pods are in the quota of their namespace, whatever their labels say.
5. The status says what pods that run ask for, as the peer's controller does; those that have a node
   and do not run yet count for admission alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from koordlet.kubeapi import kinds
from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.model import resources
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas.amounts import NONE, Amounts, add, exceeding, quantities
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.pools import Pool
from koordlet.scheduler.quotas.settings import UNBOUNDED
from koordlet.scheduler.quotas.tree import QuotaNode
from koordlet.scheduler.quotas.validation import Objection, QuotasInForce, Validation


class CapacityBook(QuotaBook):
    """The quotas of namespaces and their pods."""

    def __init__(self) -> None:
        super().__init__()
        #: By namespace; a name may be there in both kinds.
        self._quotas: dict[str, dict[tuple[str, kinds.Kind], ElasticQuota]] = {}
        #: The sum of all minimums; ``None``: to be summed anew.
        self._least: Amounts | None = None

    def put_quota(self, quota: ElasticQuota) -> None:
        self._quotas.setdefault(quota.namespace, {})[quota.id, quota.kind] = quota
        self._choose(quota.namespace)

    def drop_quota(self, quota: ElasticQuota) -> None:
        self._quotas.get(quota.namespace, {}).pop((quota.id, quota.kind), None)
        self.invalid.pop(quota.id, None)
        self._choose(quota.namespace)

    def settle(self) -> bool:
        moved = super().settle()
        if moved:
            self._least = None
        return moved

    def objections(
        self,
        quota: ElasticQuota,
        old: ElasticQuota | None = None,
        beside: QuotasInForce | None = None,
    ) -> Iterator[Objection]:
        oldest = next(iter(self._several(quota.namespace)), quota)
        if (oldest.id, oldest.kind) != (quota.id, quota.kind):
            words = f"quota {oldest.id} is the namespace's already"
            yield Objection(words, "metadata.namespace", "change that one")
        yield from Validation(beside or self, self.settings.gates).objections(_in_force(quota), old)

    def put(self, pod: Pod) -> None:
        super().put(pod)
        # It may run now: that changes what is written, and nothing that is counted.
        self.touched[pod.namespace] = None

    def stored(self, name: str) -> ElasticQuota | None:
        return next(iter(self._several(name)), None)

    def changes(self, stored: ElasticQuota, node: QuotaNode) -> dict[str, Any]:
        """What pods that run ask for, with the zeros of all names that the quota has (rule 5)."""
        used = dict.fromkeys((*stored.min, *stored.max), 0)
        for counted in self.counted(node):
            if counted.pod.running:
                for name, much in counted.pod.pod_class.requests.real.items():
                    used[name] = used.get(name, 0) + much
        if used == stored.used:
            return {}
        gone = dict.fromkeys(stored.used.keys() - used.keys())
        return {"status": {"used": {**gone, **quantities(used)}}}

    def names(self) -> Iterable[str]:
        """None: what the other meaning builds in is not missing here."""
        return ()

    def objects(self) -> Iterator[ElasticQuota]:
        return (quota for several in self._quotas.values() for quota in several.values())

    def pools(self) -> Iterator[tuple[Pool, ElasticQuota | None]]:
        """None, for the same reason."""
        return iter(())

    def refusal(self, pod: Pod, nominated: Iterable[Pod] = (), drawn: Amounts | None = None) -> str:
        """Why a pod is not admitted beside those that are nominated; empty: it is."""
        node = self.of(pod.pod_class)
        if node is None:
            return ""
        requests = pod.pod_class.requests.real
        asked = {
            name: more
            for name, much in requests.items()
            if (more := much - (drawn or {}).get(name, 0)) > 0
        }
        why = self._why(node, asked, *self._nominated(pod, node, nominated))
        return f"Pod {pod.key} {why}" if why else ""

    def gang_refusal(self, name: str, node: QuotaNode, asked: Amounts) -> str:
        """Why the members of a gang are not admitted together, whoever is nominated."""
        why = self._why(node, asked, NONE, NONE)
        return f"Gang {name} {why}" if why else ""

    def _why(self, node: QuotaNode, asked: Amounts, own: Amounts, everybody: Amounts) -> str:
        """Why amounts are beyond a bound, beside those of nominated pods; empty: they are not."""
        words = "is rejected in PreFilter because"
        if self._beyond(asked, node.used, own, node.spec.max, unbounded=True):
            return f"{words} ElasticQuota {node.name} is more than Max"
        if self._beyond(asked, self.trees[""].root.used, everybody, self._minimums()):
            return f"{words} total ElasticQuota used is more than min"
        return ""

    def borrows_for(self, pod: Pod, node: QuotaNode, nominated: Iterable[Pod] = ()) -> bool:
        """Whether a pod would be beyond the minimum of its own namespace."""
        own, _ = self._nominated(pod, node, nominated)
        return self._beyond(pod.pod_class.requests.real, node.used, own, node.spec.min)

    def _nominated(
        self, pod: Pod, node: QuotaNode, nominated: Iterable[Pod]
    ) -> tuple[Amounts, Amounts]:
        """What those count for in the namespace, and in all together (rule 3)."""
        own: dict[str, int] = {}
        others: dict[str, int] = {}
        for guest in nominated:
            quota = self.of(guest.pod_class) if guest.key != pod.key else None
            if quota is node and guest.priority >= pod.priority:
                add(own, guest.pod_class.requests.real)
            elif quota is not None and quota is not node and not over_minimum(quota):
                add(others, guest.pod_class.requests.real)
        return own, resources.total((own, others))

    @staticmethod
    def _beyond(
        asked: Amounts, used: Amounts, guests: Amounts, most: Amounts, *, unbounded: bool = False
    ) -> bool:
        """Whether a name that is asked for would be beyond a bound (rule 2)."""
        return any(
            used.get(name, 0) + guests.get(name, 0) + much > most.get(name, 0)
            for name, much in asked.items()
            if much and (name in most or not unbounded)
        )

    def _minimums(self) -> Amounts:
        if self._least is None:
            nodes = self.trees[""].root.children.values()
            self._least = resources.total(node.spec.min for node in nodes)
        return self._least

    def _several(self, namespace: str) -> list[ElasticQuota]:
        """The quotas of a namespace, the one that counts first."""
        quotas = self._quotas.get(namespace, {}).values()
        return sorted(quotas, key=lambda quota: (quota.created, quota.name, quota.kind.group))

    def _blame(self, quota: ElasticQuota, words: str) -> None:
        """The object of the store hears it, under its own name."""
        super()._blame(self.stored(quota.namespace) or quota, words)

    def _choose(self, namespace: str) -> None:
        """Let the oldest quota of a namespace be in force, under the namespace's name."""
        several = self._several(namespace)
        for other in several[1:]:
            words = f"quota {other.id} is ignored: {several[0].id} is the namespace's already"
            super()._blame(other, words)
        if not several:
            self._quotas.pop(namespace, None)
            super().drop_quota(ElasticQuota(namespace=namespace, name=namespace))
            return
        super().put_quota(_in_force(several[0]))

    def _resolve(self, _label: str, namespace: str) -> QuotaNode | None:
        """Rule 4."""
        node = self.nodes.get(namespace)
        return node if node is not None and node.tree is not self.aside else None


def _in_force(quota: ElasticQuota) -> ElasticQuota:
    """A quota as the tree has it: under the namespace's name, and bounded where it is not."""
    return ElasticQuota(
        kind=quota.kind,
        namespace=quota.namespace,
        name=quota.namespace,
        uid=quota.uid,
        created=quota.created,
        min=quota.min,
        max={**dict.fromkeys(quota.min, UNBOUNDED), **quota.max},
        errors=quota.errors,
    )


def over_minimum(node: QuotaNode) -> bool:
    """Whether a namespace uses more than its minimum of any name."""
    return bool(exceeding(node.used, node.spec.min))
