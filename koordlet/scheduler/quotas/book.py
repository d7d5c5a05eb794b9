"""The book of quotas: whose pods are in which quota, and what they count for.

Covers: the quota of a pod, pods that come, change, get a node and go, holds of reservations.
Does not cover: which quotas are in force (``registry``), admission (``admission``).

Rules:
1. The quota of a pod is that of its label; else that of its Namespace's label or annotation; else
   one that is named as its namespace and lies in it; else the oldest that lists its namespace; else
   the default quota. A label that names no quota means the default quota.
2. Pods with one label in one namespace move together, at once, when a quota comes or goes.
3. What a reservation holds is used by its own quota. A pod that draws on it uses what it has beyond
   that: each unit counts once.
4. A pod that is still there one grace period after it should have been gone counts for nothing, or
   a node that died would keep the room of the quota.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from koordlet.kubeapi import elastic_quotas
from koordlet.kubeapi.selectors import Requirement
from koordlet.model.record import dataclass
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.quotas import pools, status
from koordlet.scheduler.quotas.amounts import NONE, Amounts, difference, exceeding
from koordlet.scheduler.quotas.registry import QuotaRegistry
from koordlet.scheduler.quotas.settings import QuotaSettings
from koordlet.scheduler.quotas.tree import NOTHING, QuotaNode, Usage

_Key = tuple[str, str]


@dataclass(slots=True, eq=False)
class QuotaPod:
    """A pod and what it counts for."""

    pod: Pod
    bucket: QuotaBucket
    usage: Usage = NOTHING
    #: UIDs of the reservation that it holds the place of, and that it draws on.
    holds: str = ""
    draws: str = ""


@dataclass(slots=True, eq=False)
class QuotaBucket:
    """The pods of one label in one namespace."""

    key: _Key
    #: ``None``: in no quota at all.
    node: QuotaNode | None = None
    pods: dict[str, QuotaPod] = field(default_factory=dict)


class QuotaBook(QuotaRegistry):
    """All quotas and their pods."""

    def __init__(
        self, settings: QuotaSettings | None = None, named: dict[str, str] | None = None
    ) -> None:
        super().__init__(QuotaSettings() if settings is None else settings)
        self._pods: dict[str, QuotaPod] = {}
        self._buckets: dict[_Key, QuotaBucket] = {}
        self._inside: dict[str, dict[_Key, QuotaBucket]] = {}
        self._by_label: dict[str, dict[_Key, None]] = {}
        self._by_namespace: dict[str, dict[_Key, None]] = {}
        #: What Namespace objects say, and the quotas that list a namespace.
        self.named: dict[str, str] = {} if named is None else named
        self._listing: dict[str, dict[str, str]] = {}
        #: By UID of a reservation: its reserve pod, and the pods that draw on it.
        self._holds: dict[str, QuotaPod] = {}
        self._drawing: dict[str, dict[str, QuotaPod]] = {}
        #: Pods that end and still count, and the time on the wall.
        self._ending: dict[str, QuotaPod] = {}
        self._wall = 0.0
        #: Quotas that bound priorities.
        self._by_priority: dict[str, None] = {}
        #: Quotas whose amounts differ since the reader dropped them.
        self.touched: dict[str, None] = {}

    def settle(self) -> bool:
        """Bring into force what has changed; whether pods may be in other quotas now."""
        if not self._unsettled and not self._stale:
            return False
        moved = self._settle_quotas()
        for spec in moved:
            self._rehome(spec)
            self.touched[spec.name] = None
            self.relieved = True
            now = self.spec(spec.name)
            if now is not None and now.max_by_priority:
                self._by_priority[now.name] = None
            else:
                self._by_priority.pop(spec.name, None)
        for name in self._by_priority if moved else ():
            node = self.nodes[name]
            pods = (each for below in node.below() for each in self.counted(below))
            node.tree.settle_priorities(node, (each.usage for each in pods))
        # Whom a quota has now does not use the default quota any more.
        self._divide()
        return bool(moved)

    def take_relief(self, *, left: bool = False) -> bool:
        """Whether something may be admitted that was not; ``left``: what the next reader hears."""
        relieved, self.relieved = self.relieved, left
        return relieved

    # Which quota.

    def of(self, pod_class: PodClass) -> QuotaNode | None:
        """The quota of pods of a class; ``None``: they are in none."""
        label, namespace = _key(pod_class)
        known = self._buckets.get((label, namespace))
        return known.node if known is not None else self._resolve(label, namespace)

    def selector(self, pod_class: PodClass) -> tuple[Requirement, ...]:
        """What nodes satisfy that pods of a class are kept on; empty: all nodes do."""
        node = self.of(pod_class)
        if node is None or not node.tree.id:
            return ()
        roots = [each.spec for each in node.tree.root.children.values() if each.spec.is_root]
        several = pools.selectors(self._pools.values(), roots)
        return several[0] if len(several) == 1 else ()

    def changes(self, stored: elastic_quotas.ElasticQuota, node: QuotaNode) -> dict[str, Any]:
        """What of a merge patch differs from a stored object."""
        return status.changes(stored, node, self.limit(node))

    def get(self, key: str) -> QuotaPod | None:
        """A pod that is counted."""
        return self._pods.get(key)

    def counted(self, node: QuotaNode) -> Iterable[QuotaPod]:
        """The pods that are directly in a quota."""
        for bucket in self._inside.get(node.name, {}).values():
            yield from bucket.pods.values()

    def pods(self, name: str) -> tuple[str, ...]:
        node = self.nodes.get(name)
        return () if node is None else tuple(each.pod.name for each in self.counted(node))

    def name_namespace(self, namespace: str, quota: str) -> None:
        """Take in the quota that a Namespace names for its pods; empty: none."""
        if self.named.pop(namespace, "") != quota or quota:
            self.named |= {namespace: quota} if quota else {}
            self._place((), (namespace,))

    def _resolve(self, label: str, namespace: str) -> QuotaNode | None:
        """Rule 1."""
        has_default = self.settings.has_default_quota
        default = self.nodes[elastic_quotas.DEFAULT] if has_default else None
        named = label or (self.named.get(namespace) if has_default else "")
        if named:
            return self.nodes.get(named, default)
        if not has_default:
            return None
        own = self.nodes.get(namespace)
        if own is not None and own.spec.namespace == namespace:
            return own
        listing = self._listing.get(namespace)
        if listing:
            return self.nodes[self._listed_by(namespace)]
        return default

    def _list(self, spec: elastic_quotas.ElasticQuota) -> None:
        """Note which namespaces the version in force lists, in place of an older one."""
        now = self.spec(spec.name)
        for namespace in spec.namespaces:
            listing = self._listing.get(namespace, {})
            listing.pop(spec.name, None)
            if not listing:
                self._listing.pop(namespace, None)
        for namespace in now.namespaces if now is not None else ():
            listing = self._listing.setdefault(namespace, {})
            listing[spec.name] = now.created if now is not None else ""
            if len(listing) > 1:
                first = self._listed_by(namespace)
                for name in listing.keys() - {first}:
                    if (other := self.spec(name)) is not None:
                        message = f"namespace {namespace} is listed by quota {first} as well"
                        self._notice(other, f"{message}, which is older: its pods are there")

    def _listed_by(self, namespace: str) -> str:
        """The oldest quota that lists a namespace."""
        listing = self._listing[namespace]
        return min(listing, key=lambda name: (listing[name], name))

    def listed_elsewhere(self, quota: elastic_quotas.ElasticQuota) -> dict[str, str]:
        """Namespaces that a quota lists in vain, each with the older quota that has it."""
        owners = {name: self._listed_by(name) for name in quota.namespaces if name in self._listing}
        return {name: owner for name, owner in owners.items() if owner != quota.name}

    def _place(self, labels: Iterable[str], namespaces: Iterable[str]) -> None:
        """Move the pods of these labels and namespaces to where they belong now (rule 2)."""
        keys: dict[_Key, None] = {}
        for label in labels:
            keys |= self._by_label.get(label, {})
        for namespace in namespaces:
            keys |= self._by_namespace.get(namespace, {})
        for key in keys:
            bucket = self._buckets[key]
            self._move(bucket, self._resolve(*key))

    def _move(self, bucket: QuotaBucket, node: QuotaNode | None) -> None:
        if bucket.node is node:
            return
        for each in bucket.pods.values():
            self._count(bucket.node, each.usage, NOTHING)
            self._count(node, NOTHING, each.usage)
        self._index(bucket, node)

    def _leave(self, node: QuotaNode) -> None:
        self._rehome(node.spec)

    def _rehome(self, spec: elastic_quotas.ElasticQuota) -> None:
        """Move whom a quota means that came, changed or went: who names it did so before, maybe."""
        self._list(spec)
        naming = [namespace for namespace, name in self.named.items() if name == spec.name]
        self._place((spec.name,), (*spec.namespaces, spec.namespace, *naming))

    # Pods.

    def put(self, pod: Pod) -> None:
        """Take in a pod or its newer value; ``node`` is where it is, or is assumed."""
        key = _key(pod.pod_class)
        known = self._pods.get(pod.key)
        if known is not None and known.bucket.key != key:
            self.drop(pod.key)
            known = None
        if known is None:
            bucket = self._buckets.get(key) or self._bucket(key)
            known = self._pods[pod.key] = bucket.pods[pod.key] = QuotaPod(pod, bucket)
        known.pod = pod
        if pod.terminating and pod.leaving is not None:
            self._ending[pod.key] = known
        self._draw(known)
        self._set(known, self._beyond_hold(known))
        if known.holds:
            self._recount_drawing(known.holds)

    def release(self, pod: Pod) -> None:
        """A pod has no node any more, and waits for one."""
        known = self._pods.get(pod.key)
        if known is not None:
            self._undraw(known)
            self._set(known, self._usage(pod, placed=False))

    def pass_overdue(self, wall: float) -> None:
        """Let pods count for nothing that should have been gone by now (rule 4)."""
        self._wall = wall
        for key, known in list(self._ending.items()):
            if self._ended(known.pod):
                del self._ending[key]
                self._set(known, NOTHING)
                if known.holds:
                    self._recount_drawing(known.holds)

    def _ended(self, pod: Pod) -> bool:
        """Whether a pod that is there counts as if it were gone."""
        if not pod.terminating:
            return False
        overdue = pod.leaving.overdue if pod.leaving is not None else 0.0
        return self.settings.ignores_terminating or 0.0 < overdue < self._wall

    def drop(self, key: str) -> None:
        """A pod is gone, or has ended."""
        self._ending.pop(key, None)
        known = self._pods.pop(key, None)
        if known is None:
            return
        self._set(known, NOTHING)
        self._undraw(known)
        bucket = known.bucket
        del bucket.pods[key]
        if not bucket.pods:
            del self._buckets[bucket.key]
            self._index(bucket, None)
            for index, word in zip((self._by_label, self._by_namespace), bucket.key, strict=True):
                del index[word][bucket.key]
                if not index[word]:
                    del index[word]

    def _bucket(self, key: _Key) -> QuotaBucket:
        bucket = self._buckets[key] = QuotaBucket(key)
        self._index(bucket, self._resolve(*key))
        for index, word in zip((self._by_label, self._by_namespace), key, strict=True):
            index.setdefault(word, {})[key] = None
        return bucket

    def _index(self, bucket: QuotaBucket, node: QuotaNode | None) -> None:
        """Let a bucket be in a quota from now on; ``None``: in none."""
        if bucket.node is not None:
            inside = self._inside[bucket.node.name]
            del inside[bucket.key]
            if not inside:
                del self._inside[bucket.node.name]
        if node is not None:
            self._inside.setdefault(node.name, {})[bucket.key] = bucket
        bucket.node = node

    # Amounts.

    def _set(self, known: QuotaPod, usage: Usage) -> None:
        if known.usage == usage:
            return
        self._count(known.bucket.node, known.usage, usage)
        known.usage = usage

    def _count(self, node: QuotaNode | None, before: Usage, after: Usage) -> None:
        if node is None:
            return
        node.tree.count(node, before, after)
        self.touched[node.name] = None
        if node.tree is self.aside:
            self._stale |= before.used != after.used
        elif not self.relieved:
            less = exceeding(before.used, after.used) or exceeding(before.amounts, after.amounts)
            self.relieved = bool(less)

    # Reservations (rule 3).

    def _draw(self, known: QuotaPod) -> None:
        """Note what a pod holds for others and what it draws on."""
        pod = known.pod
        holds = (pod.reserve_pod_of or (pod.uid if pod.operates else "")) if pod.node else ""
        draws = pod.draws_on if pod.node else ""
        if (known.holds, known.draws) == (holds, draws):
            return
        self._undraw(known)
        known.holds, known.draws = holds, draws
        if holds:
            self._holds[holds] = known
        if draws:
            self._drawing.setdefault(draws, {})[pod.key] = known

    def _undraw(self, known: QuotaPod) -> None:
        if known.holds and self._holds.get(known.holds) is known:
            del self._holds[known.holds]
            self._recount_drawing(known.holds)
        if known.draws:
            several = self._drawing[known.draws]
            del several[known.pod.key]
            self._recount_drawing(known.draws)
            if not several:
                del self._drawing[known.draws]
        known.holds = known.draws = ""

    def _recount_drawing(self, uid: str) -> None:
        for known in self._drawing.get(uid, {}).values():
            self._set(known, self._beyond_hold(known))

    def _beyond_hold(self, known: QuotaPod) -> Usage:
        if self._ended(known.pod):
            return NOTHING
        usage = self._usage(known.pod, placed=bool(known.pod.node))
        holder = self._holds.get(known.draws) if known.draws else None
        if holder is None or not usage.used:
            return usage
        left = dict(holder.usage.used)
        for drawer in self._drawing[known.draws].values():
            if drawer is known:
                break
            for name, much in self.requests(drawer.pod.pod_class).items():
                left[name] = max(0, left.get(name, 0) - much)
        names = usage.amounts.items()
        beyond = {name: more for name, much in names if (more := much - left.get(name, 0)) > 0}
        return Usage(beyond, beyond, usage.non_preemptible, usage.priority)

    def _usage(self, pod: Pod, *, placed: bool) -> Usage:
        """What a pod counts for, without a look at reservations."""
        asked = self.requests(pod.pod_class)
        amounts = asked if all(asked.values()) else {k: v for k, v in asked.items() if v}
        return Usage(amounts, amounts if placed else NONE, is_fixed(pod.pod_class), pod.priority)

    def requests(self, pod_class: PodClass) -> Amounts:
        """What pods of a class count for."""
        requests = pod_class.requests
        if not (requests.overhead and self.settings.ignores_overhead):
            return requests.real
        return difference(requests.real, requests.overhead)

    def asked(self, pod_class: PodClass, node: QuotaNode) -> Amounts:
        """What a pod of a class asks for, of the names that its quota bounds."""
        most = node.spec.max
        return {k: v for k, v in self.requests(pod_class).items() if v and k in most}


def is_fixed(pod_class: PodClass) -> bool:
    """Whether pods of a class are never preempted, and count against the minimum."""
    return pod_class.labels.get(elastic_quotas.PREEMPTIBLE) == "false"


def _key(pod_class: PodClass) -> _Key:
    return pod_class.labels.get(elastic_quotas.NAME, ""), pod_class.namespace
