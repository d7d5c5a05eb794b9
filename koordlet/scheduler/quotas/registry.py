"""Which quotas are in force: objects and profiles as the store has them, and trees of them.

Covers: the oldest object of a name, order of arrival, versions that give way, parents that are
missing or in a circle, trees by id, the totals that trees divide.
Does not cover: pods (``book``), the checks (``validation``).

Rules:
1. The object that is oldest has the name; where it lies means nothing. Others hear that they are
   ignored.
2. A version meets an objection: the version before stays in force; where there is none, it is in
   force all the same unless the objection is fatal. It is judged again when a quota beside it, or
   one that it is the parent of, has changed.
3. A quota whose parent is missing, of another tree or below it (also: still) is below the root.
4. A tree's total is that of its profile's nodes, or what its root says; the default tree has what
   the others leave, and what the default and the system quota use is off it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from koordlet.kubeapi import elastic_quotas, kinds
from koordlet.kubeapi.elastic_quotas import ElasticQuota, ElasticQuotaProfile
from koordlet.model.record import dataclass
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.quotas import validation
from koordlet.scheduler.quotas.amounts import Amounts, add
from koordlet.scheduler.quotas.pools import Pool
from koordlet.scheduler.quotas.settings import QuotaSettings
from koordlet.scheduler.quotas.siblings import NOBODY, Siblings
from koordlet.scheduler.quotas.tree import QuotaNode, QuotaTree
from koordlet.scheduler.quotas.validation import Objection, Validation

#: Notices that wait to be read; more are dropped.
_NOTICES = 1000


@dataclass(frozen=True, slots=True)
class QuotaNotice:
    """Something about a quota that its owner should know, for an event on the object."""

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    kind: kinds.Kind = kinds.ELASTIC_QUOTAS


class QuotaRegistry:
    """Quotas, profiles and nodes; what is in force after ``settle``."""

    def __init__(self, settings: QuotaSettings) -> None:
        self.settings = settings
        self.trees: dict[str, QuotaTree] = {"": self._tree("")}
        #: The default and the system quota: beside the trees.
        self.aside = QuotaTree(elastic_quotas.DEFAULT)
        names = elastic_quotas.DEFAULT, elastic_quotas.SYSTEM
        self.nodes = {name: self.aside.put(self._built_in(name)) for name in names}
        #: Whether there was any profile.
        self.pooled = False
        #: What is wrong with the version of the store, and what is in force; by the object's id.
        self.invalid: dict[str, str] = {}
        self._validation = Validation(self, settings.gates)
        self._objects: dict[str, dict[str, ElasticQuota]] = {}
        #: Quotas whose parents lead back to them.
        self._circling: frozenset[str] = frozenset()
        self._declared: dict[str, Siblings] = {}
        self._unsettled: dict[str, None] = {}
        self._pools: dict[str, Pool] = {}
        self._machines: dict[str, Node] = {}
        self._sum: dict[str, int] = {}
        self._notices: list[QuotaNotice] = []
        #: Totals are to be divided anew.
        self._stale = True
        #: Something may be admitted now that was not: room grew, or bounds changed.
        self.relieved = False

    def _tree(self, tree_id: str) -> QuotaTree:
        scales, guarantees = self.settings.scales_minimum, self.settings.gates.guarantees
        return QuotaTree(tree_id, scales_minimum=scales, guarantees=guarantees)

    def _built_in(self, name: str) -> ElasticQuota:
        """The default or the system quota as the arguments have it."""
        settings = self.settings
        most = settings.default_max if name == elastic_quotas.DEFAULT else settings.system_max
        return ElasticQuota(namespace=settings.namespace, name=name, max=most)

    def __bool__(self) -> bool:
        """Whether anything has a bound, as created built-in objects have not: else nobody pays."""
        return bool(self._pools) or any(
            name not in elastic_quotas.BUILT_IN or any(quota.max for quota in versions.values())
            for name, versions in self._objects.items()
        )

    # What the store has.

    def put_quota(self, quota: ElasticQuota) -> None:
        """Take in an ElasticQuota, or its newer version."""
        versions = self._objects.setdefault(quota.name, {})
        known, versions[quota.id] = versions.get(quota.id), quota
        if known != quota:
            self._unsettled[quota.name] = None

    def drop_quota(self, quota: ElasticQuota) -> None:
        """An ElasticQuota has gone."""
        versions = self._objects.get(quota.name, {})
        versions.pop(quota.id, None)
        if not versions:
            self._objects.pop(quota.name, None)
        self.invalid.pop(quota.id, None)
        self._unsettled[quota.name] = None

    def put_profile(self, profile: ElasticQuotaProfile) -> None:
        """Take in an ElasticQuotaProfile, or its newer version."""
        if profile.errors:
            self._notice(profile, f"the profile is not in force: {profile.errors[0]}")
            return
        self.drop_profile(profile)
        self.pooled = True
        pool = self._pools[profile.id] = Pool(profile)
        for node in self._machines.values():
            self._pour(pool, node, 1)
        self._unsettled[profile.quota_name] = None

    def drop_profile(self, profile: ElasticQuotaProfile) -> None:
        """An ElasticQuotaProfile has gone."""
        if (pool := self._pools.pop(profile.id, None)) is not None:
            self._unsettled[pool.profile.quota_name] = None

    def put_node(self, old: Node | None, new: Node | None) -> None:
        """Take in a change of a node: what trees divide follows."""
        self._stale = True
        known = self._machines.pop(old.name, None) if old is not None else None
        if new is not None:
            self._machines[new.name] = new
        for node, sign in ((known, -1), (new, 1)):
            if node is None:
                continue
            if self.settings.counts_unschedulable or not node.unschedulable:
                add(self._sum, node.allocatable, sign)
            for pool in self._pools.values():
                self._pour(pool, node, sign)

    def _pour(self, pool: Pool, node: Node, sign: int) -> None:
        if pool.pour(node, sign):
            self._unsettled[pool.profile.quota_name] = None

    def take_notices(self) -> list[QuotaNotice]:
        """What owners of quotas should know, once."""
        notices, self._notices = self._notices, []
        return notices

    # What is in force; also for the validation.

    def spec(self, name: str) -> ElasticQuota | None:
        """The quota of a name."""
        return self.nodes[name].spec if name in self.nodes else None

    def parent(self, name: str) -> str:
        """The parent that the store's object of a name has; empty: there is no object."""
        return owner.parent if (owner := self.owner(name)) is not None else ""

    def children(self, name: str) -> Iterable[ElasticQuota]:
        """The quotas in force that name a quota as their parent."""
        return self._declared.get(name, NOBODY).specs.values()

    def minimums(self, name: str) -> Amounts:
        """The sum of their minimums."""
        return self._declared.get(name, NOBODY).minimum

    def pods(self, name: str) -> tuple[str, ...]:
        """The names of the pods that are directly in a quota."""
        raise NotImplementedError

    def guaranteed(self, name: str) -> Amounts:
        """What a quota is guaranteed."""
        return self.nodes[name].guaranteed if name in self.nodes else {}

    def self_used(self, name: str) -> Amounts:
        """What the pods that are directly in a quota use."""
        return self.nodes[name].self_used if name in self.nodes else {}

    def limit(self, node: QuotaNode) -> Amounts:
        """What a quota may use now: its runtime, or its maximum where that alone bounds."""
        if not self.settings.uses_runtime or node.tree is self.aside:
            return node.spec.max
        return node.tree.runtime(node)

    def names(self) -> Iterable[str]:
        """The names that ElasticQuotas of the store have."""
        return self._objects

    def objects(self) -> Iterator[ElasticQuota]:
        """Every ElasticQuota of the store."""
        return (quota for versions in self._objects.values() for quota in versions.values())

    def objections(
        self,
        quota: ElasticQuota,
        old: ElasticQuota | None = None,
        beside: validation.QuotasInForce | None = None,
    ) -> Iterator[Objection]:
        """Why a quota would not be in force as written, in place of a version, beside others."""
        rival = old if old is not None and old.id != quota.id else self._oldest(quota.name)
        if rival is not None and rival.id != quota.id:
            words = f"quota {quota.name} is ignored: {rival.id} has its name"
            yield Objection(words, "metadata.name", "choose a name that no other quota has")
        yield from Validation(beside or self, self.settings.gates).objections(quota, old)

    def stored(self, name: str) -> ElasticQuota | None:
        """The object that says what a quota may use, and is told what it does."""
        return self.owner(name)

    # Settling.

    def _settle_quotas(self) -> list[ElasticQuota]:
        """Bring into force what has changed; the specs of before and after whose pods may move."""
        moved: list[ElasticQuota] = []
        while self._unsettled:
            batch = sorted(self._unsettled, key=self._age)
            self._unsettled.clear()
            before = len(moved)
            for name in self._parents_first(batch):
                moved += self._settle_quota(name)
            self.reconsider({spec.parent for spec in moved[before:]})
        return moved

    def reconsider(self, parents: Container[str] | None = None) -> None:
        """Judge again what is invalid: these parents and their children; ``None``: everything."""
        for quota_id in self.invalid:
            name = quota_id.partition("/")[2]
            if parents is None or name in parents or self.parent(name) in parents:
                self._unsettled[name] = None

    def _age(self, name: str) -> tuple[str, str]:
        created = (quota.created for quota in self._objects.get(name, {}).values())
        return min(created, default=""), name

    def _parents_first(self, batch: list[str]) -> Iterator[str]:
        left = dict.fromkeys(batch)
        for first in batch:
            line, name = [], first
            while name in left:
                del left[name]
                line.append(name)
                name = self.parent(name)
            yield from reversed(line)

    def owner(self, name: str) -> ElasticQuota | None:
        """The object that has a name (rule 1), as its profile completes it."""
        owner, pool = self._oldest(name), self._pool(name)
        return owner if pool is None else pool.root(owner)

    def _oldest(self, name: str) -> ElasticQuota | None:
        versions = self._objects.get(name, {}).values()
        return min(versions, key=lambda quota: (quota.created, quota.namespace), default=None)

    def _pool(self, name: str) -> Pool | None:
        """The oldest profile whose root has a name."""
        pools = (pool for pool in self._pools.values() if pool.profile.quota_name == name)
        return min(pools, key=lambda pool: (pool.profile.created, pool.profile.id), default=None)

    def pools(self) -> Iterator[tuple[Pool, ElasticQuota | None]]:
        """The pools that have a tree, each with the stored object of its root."""
        for name in sorted({pool.profile.quota_name for pool in self._pools.values()}):
            if (pool := self._pool(name)) is not None:
                yield pool, self._oldest(name)

    def _settle_quota(self, name: str) -> list[ElasticQuota]:
        owner, known = self.owner(name), self.nodes.get(name)
        if name == elastic_quotas.ROOT or (owner is None and known is None):
            return []
        if name in elastic_quotas.BUILT_IN:
            objection = next(validation.by_itself(owner), None) if owner is not None else None
            if owner is not None:
                self._judge(owner, objection, "the arguments hold")
            if owner is None or objection is not None or not owner.max:
                owner = self._built_in(name)
            self.aside.put(owner)
            return []
        if owner is None:
            return self._remove(name)
        for other in self._objects.get(name, {}).values():
            if other.id != owner.id:
                self._judge(other, Objection(f"quota {name} is ignored: {owner.id} has its name"))
        old = known.spec if known is not None and known.spec.id == owner.id else None
        objection = self._validation.objection(owner, old)
        if objection is not None and old is None and objection.fatal:
            self._judge(owner, objection, "it is not in force")
            return self._remove(name) if known is not None else []
        moved = self._enforce(owner if objection is None or old is None else old)
        self._judge(owner, objection, self._in_force(owner))
        return moved

    def _in_force(self, owner: ElasticQuota) -> str:
        """What of an object is in force that should not be as it is."""
        node = self.nodes[owner.name]
        if node.spec != owner:
            return "the version before stays in force"
        moved = node.parent is node.tree.root and owner.parent != elastic_quotas.ROOT
        return f"it is in force {'below the root' if moved else 'all the same'}"

    def _enforce(self, spec: ElasticQuota) -> list[ElasticQuota]:
        """Put a version into force where it belongs (rule 3)."""
        name, known = spec.name, self.nodes.get(spec.name)
        above = self.nodes.get(spec.parent)
        tree_id = spec.tree_id or (above.tree.id if above is not None else "")
        circles = self._validation.circles(spec)
        if above is not None and (above.tree.id != tree_id or circles or known in above.path):
            above = None
        if (tree := self.trees.get(tree_id)) is None:
            tree = self.trees[tree_id] = self._tree(tree_id)
        parent = above if above is not None else tree.root
        same = known is not None and known.spec == spec and known.parent is parent
        if same and circles == (name in self._circling):
            return []
        self._circling = self._circling | {name} if circles else self._circling - {name}
        before = [known.spec] if known is not None else []
        if known is not None:
            self._declared[known.spec.parent].drop(name)
            if known.tree is not tree:
                tree.adopt(known)
        self.nodes[name] = tree.put(spec, parent)
        self._declared.setdefault(spec.parent, Siblings()).put(spec)
        self._unsettled |= dict.fromkeys(self._declared.get(name, NOBODY).specs)
        return [*before, spec]

    def _remove(self, name: str) -> list[ElasticQuota]:
        """A quota is no more; its pods move before its amounts go (``book``)."""
        node = self.nodes.pop(name)
        self._circling -= {name}
        self._declared[node.spec.parent].drop(name)
        self._unsettled |= dict.fromkeys(self._declared.get(name, NOBODY).specs)
        self._leave(node)
        tree = node.tree
        tree.drop(name)
        if tree.id and len(tree.nodes) == 1:
            del self.trees[tree.id]
        return [node.spec]

    def _leave(self, node: QuotaNode) -> None:
        """Move the pods of a quota that is no more."""
        raise NotImplementedError

    def _judge(self, quota: ElasticQuota, objection: Objection | None, in_force: str = "") -> None:
        """Remember what is wrong with an object: the cause, the remedy, and what is in force."""
        words = [f"it counts for nothing: {problem}" for problem in quota.problems]
        if objection is not None:
            words = [objection.message, objection.fix, in_force]
        self._blame(quota, "; ".join(filter(None, words)))

    def _blame(self, quota: ElasticQuota, words: str) -> None:
        """Remember what is wrong with an object, and say it once; empty: nothing is."""
        before = self.invalid.pop(quota.id, "")
        if before and words != before:
            # Nobody needs to hear what is no more so.
            self._notices = [notice for notice in self._notices if notice.message != before]
        if words:
            self.invalid[quota.id] = words
            if words != before:
                self._notice(quota, words)

    def _notice(self, quota: ElasticQuota | ElasticQuotaProfile, message: str) -> None:
        if len(self._notices) < _NOTICES:
            where = quota.namespace, quota.name, quota.uid
            self._notices.append(QuotaNotice(*where, "Invalid", message, quota.kind))

    # Totals.

    def _divide(self) -> None:
        """Let each tree divide its total (rule 4)."""
        self._stale = False
        rest = dict(self._sum)
        add(rest, self.aside.root.used, -1)
        for tree_id, tree in self.trees.items():
            if not tree_id:
                continue
            roots = [node.spec for node in tree.root.children.values() if node.spec.is_root]
            total: Amounts = {}
            for spec in roots:
                total = spec.min if spec.total is None else spec.total
                if not spec.ignores_default_tree:
                    add(rest, total, -1)
            self.relieved |= tree.set_total(total)
        rest = {name: max(0, much) for name, much in rest.items()}
        self.relieved |= self.trees[""].set_total(rest)

    @property
    def total(self) -> Mapping[str, int]:
        """What all nodes have together."""
        return self._sum

    def overcommitted(self) -> str:
        """What to say of minimums that add up to more than there is; empty: nothing."""
        root = self.trees[""].root
        least = (child.spec.min for child in root.children.values())
        return validation.overcommitted(least, root.runtime)
