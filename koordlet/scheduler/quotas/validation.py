"""Whether a quota can be in force, by itself and beside the others.

Covers: the peer's checks with its messages, on reading: nothing here refuses a write.
Does not cover: what follows of an objection (``book``), reading objects
(``kubeapi.elastic_quotas``).

Rules:
1. An objection to the quota itself is *fatal*: no such version is ever in force. Of those about its
   relations, a version that came later gives way to the one before; the first one is in force all
   the same, or a restart would leave its pods without any bound.
2. The first objection counts, in the order of the peer's checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Protocol

from koordlet.kubeapi import elastic_quotas
from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.model import resources
from koordlet.model.record import dataclass
from koordlet.scheduler.quotas.amounts import Amounts, add, exceeding, largest, listed, quantities


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a version of a quota should not be in force."""

    message: str
    fatal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationGates:
    """The peer's feature gates that decide about checks."""

    #: ElasticQuotaEnableUpdateResourceKey: a child may bound fewer names than its parent.
    updates_keys: bool = False
    #: ElasticQuotaGuaranteeUsage.
    guarantees: bool = False


class QuotasInForce(Protocol):
    """The quotas that are in force."""

    def spec(self, name: str) -> ElasticQuota | None:
        """The quota of a name."""

    def parent(self, name: str) -> str:
        """The parent that the store's object of a name has; empty: there is no object."""

    def children(self, name: str) -> Iterable[ElasticQuota]:
        """The quotas whose parent this is."""

    def minimums(self, name: str) -> Amounts:
        """The sum of their minimums."""

    def pods(self, name: str) -> tuple[str, ...]:
        """The names of the pods that are directly in a quota."""

    def guaranteed(self, name: str) -> Amounts:
        """What a quota is guaranteed."""

    def self_used(self, name: str) -> Amounts:
        """What the pods that are directly in a quota use."""


@dataclass(frozen=True, slots=True)
class Validation:
    """The checks beside the quotas that are in force."""

    quotas: QuotasInForce
    gates: ValidationGates = field(default_factory=ValidationGates)

    def objection(self, new: ElasticQuota, old: ElasticQuota | None = None) -> Objection | None:
        """The first objection to a version, in place of the one that is in force."""
        own = next(_own(new), None)
        if own is not None:
            return Objection(own, fatal=True)
        message = next(self._relations(new, old), None)
        return Objection(message) if message is not None else None

    def _relations(self, new: ElasticQuota, old: ElasticQuota | None) -> Iterator[str]:
        children = tuple(self.quotas.children(new.name))
        if children and not new.is_parent:
            words = "quota has children, isParent is forbidden to modify as false"
            yield f"{words}, quotaName:{new.name}"
        if old is not None:
            yield from self._changes(new, old)
        if not new.is_root:
            yield from self._beside_parent(new)
            yield from self._above_children(new, children)
        yield from _strict(new)
        if self.gates.guarantees and new.parent != elastic_quotas.ROOT and not new.is_root:
            yield from self._guarantee(new)

    def _changes(self, new: ElasticQuota, old: ElasticQuota) -> Iterator[str]:
        """What must stay as it is."""
        name = new.name
        bounds = new.min, new.max, new.parent
        if name in {elastic_quotas.ROOT, elastic_quotas.SYSTEM} and bounds != (
            *(old.min, old.max),
            old.parent,
        ):
            yield f"quota {name} is built in and cannot be changed"
        if new.is_parent and not old.is_parent and self.quotas.pods(name):
            words = "quota has bound pods, isParent is forbidden to modify as true"
            yield f"{words}, quotaName: {name}"
        if new.tree_id and old.tree_id != new.tree_id:
            yield f"{name} tree id changed [{old.tree_id}] vs [{new.tree_id}]"

    def _above_children(
        self, new: ElasticQuota, children: tuple[ElasticQuota, ...]
    ) -> Iterator[str]:
        own = self._tree_of(new) if children else ""
        for child in children:
            if child.tree_id and child.tree_id != own:
                words = f"{new.name} tree id is different from child {child.name}"
                yield f"{words}, [{own}] vs [{child.tree_id}]"
            yield from self._keys(new, child)
        if not new.forces_update and exceeding(self.quotas.minimums(new.name), new.min):
            words = "checkMinQuotaSum all children's MinQuota > current MinQuota"
            yield f"{words}, current: {new.name}"

    def _beside_parent(self, new: ElasticQuota) -> Iterator[str]:
        """The checks between a quota and the one above; the root bounds nothing."""
        if new.parent == elastic_quotas.ROOT:
            return
        parent = self.quotas.spec(new.parent)
        if parent is None:
            yield f"{new.name} has parentName {new.parent} but no quota has that name"
            return
        if not parent.is_parent:
            words = "but the parentQuotaInfo's IsParent is false"
            yield f"{new.name} has parentName {new.parent} {words}"
        if self.circles(new):
            yield f"{new.name} has parentName {new.parent}, which is below {new.name}"
        if new.tree_id and new.tree_id != (theirs := self._tree_of(parent)):
            words = f"{new.name} tree id is different from parent {parent.name}"
            yield f"{words}, [{new.tree_id}] vs [{theirs}]"
        yield from self._keys(parent, new)
        if not new.forces_update:
            summed = resources.total((self.quotas.minimums(parent.name), new.min))
            known = self.quotas.spec(new.name)
            if known is not None and known.parent == parent.name:
                add(summed, known.min, -1)
            if exceeding(summed, parent.min):
                words = "checkMinQuotaSum all brothers' MinQuota > parent MinQuota"
                yield f"{words}, parent: {parent.name}"

    def _tree_of(self, quota: ElasticQuota) -> str:
        """The tree id of a quota: its own, or that of the first one above that has any."""
        above: ElasticQuota | None = quota
        seen = set[str]()
        while above is not None and not above.tree_id and above.parent not in seen:
            seen.add(above.parent)
            above = self.quotas.spec(above.parent)
        return above.tree_id if above is not None else ""

    def circles(self, new: ElasticQuota) -> bool:
        """Whether the parents of a quota lead back to it."""
        name, seen = new.parent, set[str]()
        while name and name != new.name and name not in seen:
            seen.add(name)
            name = self.quotas.parent(name)
        return name == new.name

    def _keys(self, parent: ElasticQuota, child: ElasticQuota) -> Iterator[str]:
        most, least = parent.max.keys(), parent.min.keys()
        failed = "checkSubAndParentGroupQuotaKey failed"
        if self.gates.updates_keys:
            if not child.max.keys() <= most:
                yield f"{failed}: {child.name}'s max keys are not all included in {parent.name}'s"
        elif child.max.keys() != most:
            yield f"{failed}: {parent.name}'s max keys are not the same with {child.name}'s"
        if not child.min.keys() <= least:
            yield f"{failed}: {child.name}'s min keys are not all included in {parent.name}'s"

    def _guarantee(self, new: ElasticQuota) -> Iterator[str]:
        """Whether a minimum is covered up the chain: by each quota above, as far as one must go."""
        below, need = new, largest(self.quotas.self_used(new.name), new.min)
        seen = {new.name}
        while below.parent not in seen:
            seen.add(below.parent)
            parent = self.quotas.spec(below.parent)
            if parent is None:
                return
            others = (
                self.quotas.guaranteed(child.name)
                for child in self.quotas.children(parent.name)
                if child.name != below.name
            )
            need = largest(parent.min, resources.total((*others, need)))
            if not exceeding(need, self.quotas.guaranteed(parent.name)):
                return
            if parent.is_root or parent.parent == elastic_quotas.ROOT:
                yield f"tree root quota {parent.name} can't guarantee for min"
                return
            below = parent


def deletion(quotas: QuotasInForce, name: str) -> str:
    """Why a quota should not be deleted; empty: it may be."""
    if name in {elastic_quotas.ROOT, elastic_quotas.SYSTEM, elastic_quotas.DEFAULT}:
        return f"delete quota failed, quota {name} is built in"
    for what, names in (
        ("child quotas", [child.name for child in quotas.children(name)]),
        ("child pods", list(quotas.pods(name))),
    ):
        if names:
            more = ", ..." if len(names) > 3 else ""
            several = ", ".join(sorted(names)[:3])
            return f"delete quota failed, quota {name} has {len(names)} {what}: {several}{more}"
    return ""


def overcommitted(minimums: Iterable[Amounts], total: Amounts) -> str:
    """What to say of minimums below the root that add up to more than there is; empty: nothing."""
    summed = resources.total(minimums)
    beyond = exceeding(summed, total)
    if not beyond:
        return ""
    words = "the minimums below the root add up to more than the total"
    return f"{words}: {listed(summed, beyond)} > {listed(total, beyond)}"


def _own(quota: ElasticQuota) -> Iterator[str]:
    """Objections to a quota by itself."""
    name = quota.name
    if quota.errors:
        yield f"quota {name} cannot be read: {quota.errors[0]}"
    for where, amounts, word in (
        ("Spec.Max", quota.max, "dimensions"),
        ("Spec.Min", quota.min, "dimensions"),
        (f"Annotation[{elastic_quotas.WEIGHT}]", quota.weight, "dimension"),
    ):
        negative = sorted(key for key, much in amounts.items() if much < 0)
        if negative:
            yield f"{name} quota.{where}'s value < 0, in {word} :[{' '.join(negative)}]"
    for key in sorted(quota.min):
        if key not in quota.max:
            yield (
                f"resourceKey {key} of quota {name} is included in min,"
                " which is not included in max"
            )
        elif quota.min[key] > quota.max[key]:
            least, most = quantities(quota.min)[key], quantities(quota.max)[key]
            yield f"resourceKey {key} of quota {name} min {least} > max {most}"


def _strict(quota: ElasticQuota) -> Iterator[str]:
    """Names whose maximum must not fall below what is used."""
    for key in quota.strict_keys:
        used, most = quota.used.get(key), quota.max.get(key)
        if used is None:
            continue
        if most is None:
            yield (
                f"resourceKey {key} of quota {quota.name} is included in used,"
                " which is not included in max but should check max >= used"
            )
        elif most < used:
            yield (
                f"resourceKey {key} of quota {quota.name}"
                f" max {quantities(quota.max)[key]} < used {quantities(quota.used)[key]}"
            )
