"""Whether a quota can be in force, by itself and beside the others.

Covers: the peer's checks with its messages, on reading: nothing here refuses a write; where the
mistake is, and its remedy.
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

    #: The peer's words, where it has any: tools match them.
    message: str
    #: Where in the object, and what to do about it.
    path: str = ""
    fix: str = ""
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
        return next(self.objections(new, old), None)

    def objections(self, new: ElasticQuota, old: ElasticQuota | None = None) -> Iterator[Objection]:
        """All of them, in the order of the peer's checks."""
        yield from by_itself(new)
        yield from self._relations(new, old)

    def _relations(self, new: ElasticQuota, old: ElasticQuota | None) -> Iterator[Objection]:
        children = tuple(self.quotas.children(new.name))
        if children and not new.is_parent:
            words = "quota has children, isParent is forbidden to modify as false"
            several = ", ".join(sorted(child.name for child in children)[:3])
            yield Objection(
                f"{words}, quotaName:{new.name}",
                _label(elastic_quotas.IS_PARENT),
                f'set it to "true", or give its children another parent: {several}',
            )
        if old is not None:
            yield from self._changes(new, old)
        if not new.is_root:
            yield from self._beside_parent(new)
            yield from self._above_children(new, children)
        yield from _strict(new)
        if self.gates.guarantees and new.parent != elastic_quotas.ROOT and not new.is_root:
            yield from self._guarantee(new)

    def _changes(self, new: ElasticQuota, old: ElasticQuota) -> Iterator[Objection]:
        """What must stay as it is."""
        name = new.name
        bounds = new.min, new.max, new.parent
        if name in {elastic_quotas.ROOT, elastic_quotas.SYSTEM} and bounds != (
            *(old.min, old.max),
            old.parent,
        ):
            yield Objection(
                f"quota {name} is built in and cannot be changed", "spec", "leave it as it was"
            )
        if new.is_parent and not old.is_parent and self.quotas.pods(name):
            words = "quota has bound pods, isParent is forbidden to modify as true"
            yield Objection(
                f"{words}, quotaName: {name}",
                _label(elastic_quotas.IS_PARENT),
                "let its pods end or name another quota first",
            )
        if new.tree_id and old.tree_id != new.tree_id:
            yield Objection(
                f"{name} tree id changed [{old.tree_id}] vs [{new.tree_id}]",
                _label(elastic_quotas.TREE_ID),
                "leave it as it was, or make another quota",
            )

    def _above_children(
        self, new: ElasticQuota, children: tuple[ElasticQuota, ...]
    ) -> Iterator[Objection]:
        own = self._tree_of(new) if children else ""
        for child in children:
            if child.tree_id and child.tree_id != own:
                words = f"{new.name} tree id is different from child {child.name}"
                yield Objection(
                    f"{words}, [{own}] vs [{child.tree_id}]",
                    _label(elastic_quotas.TREE_ID),
                    "give both the same",
                )
            yield from self._keys(new, child)
        least = self.quotas.minimums(new.name)
        if not new.forces_update and (beyond := exceeding(least, new.min)):
            words = "checkMinQuotaSum all children's MinQuota > current MinQuota"
            yield Objection(
                f"{words}, current: {new.name}",
                f"spec.min.{beyond[0]}",
                f"its children have {listed(least, beyond)} together, it has"
                f" {listed(new.min, beyond)}: raise its minimum or lower theirs",
            )

    def _beside_parent(self, new: ElasticQuota) -> Iterator[Objection]:
        """The checks between a quota and the one above; the root bounds nothing."""
        if new.parent == elastic_quotas.ROOT:
            return
        parent, where = self.quotas.spec(new.parent), _label(elastic_quotas.PARENT)
        if parent is None:
            there = bool(self.quotas.parent(new.parent))
            why = ", which is not in force" if there else " but no quota has that name"
            fix = f"repair quota {new.parent}" if there else "create it, or name another parent"
            yield Objection(f"{new.name} has parentName {new.parent}{why}", where, fix)
            return
        if not parent.is_parent:
            words = "but the parentQuotaInfo's IsParent is false"
            yield Objection(
                f"{new.name} has parentName {new.parent} {words}",
                where,
                f'set {elastic_quotas.IS_PARENT}: "true" on {new.parent}',
            )
        if self.circles(new):
            yield Objection(
                f"{new.name} has parentName {new.parent}, which is below {new.name}",
                where,
                "name a parent that is not below it",
            )
        if new.tree_id and new.tree_id != (theirs := self._tree_of(parent)):
            words = f"{new.name} tree id is different from parent {parent.name}"
            yield Objection(
                f"{words}, [{new.tree_id}] vs [{theirs}]",
                _label(elastic_quotas.TREE_ID),
                "leave the label out: a quota is in its parent's tree",
            )
        yield from self._keys(parent, new)
        if not new.forces_update:
            summed = resources.total((self.quotas.minimums(parent.name), new.min))
            known = self.quotas.spec(new.name)
            if known is not None and known.parent == parent.name:
                add(summed, known.min, -1)
            if beyond := exceeding(summed, parent.min):
                words = "checkMinQuotaSum all brothers' MinQuota > parent MinQuota"
                yield Objection(
                    f"{words}, parent: {parent.name}",
                    f"spec.min.{beyond[0]}",
                    f"with its brothers it has {listed(summed, beyond)}, the parent"
                    f" {listed(parent.min, beyond)}: lower a minimum or raise the parent's",
                )

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

    def _keys(self, parent: ElasticQuota, child: ElasticQuota) -> Iterator[Objection]:
        most, least = parent.max.keys(), parent.min.keys()
        failed = "checkSubAndParentGroupQuotaKey failed"
        missing = sorted(child.max.keys() - most)
        fix = f"bound {', '.join(missing)} in {parent.name}, too, or not in {child.name}"
        if self.gates.updates_keys:
            if missing:
                words = f"{child.name}'s max keys are not all included in {parent.name}'s"
                yield Objection(f"{failed}: {words}", "spec.max", fix)
        elif child.max.keys() != most:
            if not missing:
                fix = f"bound {', '.join(sorted(most - child.max.keys()))} in {child.name}, too"
            words = f"{parent.name}'s max keys are not the same with {child.name}'s"
            yield Objection(f"{failed}: {words}", "spec.max", fix)
        if lacking := sorted(child.min.keys() - least):
            yield Objection(
                f"{failed}: {child.name}'s min keys are not all included in {parent.name}'s",
                "spec.min",
                f"give {parent.name} a minimum of {', '.join(lacking)}, or {child.name} none",
            )

    def _guarantee(self, new: ElasticQuota) -> Iterator[Objection]:
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
                beyond = exceeding(need, self.quotas.guaranteed(parent.name))
                yield Objection(
                    f"tree root quota {parent.name} can't guarantee for min",
                    f"spec.min.{beyond[0]}",
                    f"{parent.name} would need {listed(need, beyond)}: lower the minimum, or"
                    " raise those above",
                )
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


def _label(key: str) -> str:
    return f"metadata.labels[{key}]"


def by_itself(quota: ElasticQuota) -> Iterator[Objection]:
    """Objections to a quota by itself."""
    name = quota.name
    for error in quota.errors:
        yield Objection(
            f"quota {name} cannot be read: {error}",
            error.partition(" ")[0].rstrip(":"),
            "write a quantity such as 4, 500m or 10Gi for each name",
            fatal=True,
        )
    weight = f"Annotation[{elastic_quotas.WEIGHT}]"
    for where, path, amounts, word in (
        ("Spec.Max", "spec.max", quota.max, "dimensions"),
        ("Spec.Min", "spec.min", quota.min, "dimensions"),
        (weight, f"metadata.annotations[{elastic_quotas.WEIGHT}]", quota.weight, "dimension"),
    ):
        negative = sorted(key for key, much in amounts.items() if much < 0)
        if negative:
            yield Objection(
                f"{name} quota.{where}'s value < 0, in {word} :[{' '.join(negative)}]",
                f"{path}.{negative[0]}",
                "write zero or more",
                fatal=True,
            )
    for key in sorted(quota.min):
        if key not in quota.max:
            yield Objection(
                f"resourceKey {key} of quota {name} is included in min,"
                " which is not included in max",
                f"spec.min.{key}",
                f"give spec.max.{key} an amount, or leave {key} out of min",
                fatal=True,
            )
        elif quota.min[key] > quota.max[key]:
            least, most = quantities(quota.min)[key], quantities(quota.max)[key]
            yield Objection(
                f"resourceKey {key} of quota {name} min {least} > max {most}",
                f"spec.min.{key}",
                f"write {most} or less, or raise spec.max.{key}",
                fatal=True,
            )


def _strict(quota: ElasticQuota) -> Iterator[Objection]:
    """Names whose maximum must not fall below what is used."""
    for key in quota.strict_keys:
        used, most = quota.used.get(key), quota.max.get(key)
        if used is None or (most is not None and most >= used):
            continue
        path, spelled = f"spec.max.{key}", quantities(quota.used)[key]
        fix = f"write {spelled} or more, or let pods end first"
        if most is None:
            yield Objection(
                f"resourceKey {key} of quota {quota.name} is included in used,"
                " which is not included in max but should check max >= used",
                path,
                fix,
            )
        else:
            yield Objection(
                f"resourceKey {key} of quota {quota.name}"
                f" max {quantities(quota.max)[key]} < used {spelled}",
                path,
                fix,
            )
