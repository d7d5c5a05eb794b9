"""Pools of nodes that have a tree of quotas of their own: what a profile's root quota is.

Covers: the nodes' amounts, the id of the tree, the root quota as the peer writes it, what a store
lacks of it. Does not cover: which object has the root's name (``registry``), writing
(``loop.quota_controller``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any

from koordlet.kubeapi import elastic_quotas, kinds
from koordlet.kubeapi.elastic_quotas import ElasticQuota, ElasticQuotaProfile
from koordlet.kubeapi.selectors import Requirement
from koordlet.model import resources
from koordlet.model.record import dataclass
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.quotas.amounts import Amounts, add, quantities

#: What a tree's root may use of each name, as it is written: practically everything.
WHOLE = (2**63 - 1) // 2000
_FNV, _PRIME = 0xCBF29CE484222325, 0x100000001B3

Object = dict[str, Any]


@dataclass(slots=True, eq=False)
class Pool:
    """A profile, and what its nodes have together."""

    profile: ElasticQuotaProfile
    total: dict[str, int] = field(default_factory=dict)
    unschedulable: dict[str, int] = field(default_factory=dict)

    def pour(self, node: Node, sign: int) -> bool:
        """Add a node, or take it away; whether it is of the pool."""
        if not all(requirement.matches(node.labels) for requirement in self.profile.selector):
            return False
        add(self.total, node.allocatable, sign)
        if node.unschedulable or not node.ready:
            add(self.unschedulable, node.allocatable, sign)
        return True

    @property
    def tree_id(self) -> str:
        """The id of its tree: the label, or the hash of its name that the peer writes there."""
        return self.profile.tree_id or str(fnv(self.profile.id))

    def root(self, owner: ElasticQuota | None) -> ElasticQuota:
        """The root of the tree, as the peer writes it over the stored object."""
        profile, keys, labels = self.profile, elastic_quotas, self.profile.quota_labels
        stored = owner or ElasticQuota(
            namespace=profile.namespace, name=profile.quota_name, created=profile.created
        )
        most = {name: resources.amount(name, str(WHOLE)) for name in profile.resource_keys}
        total, unschedulable = self._of_nodes(self.total), self._of_nodes(self.unschedulable)
        return replace(
            stored,
            parent=keys.ROOT,
            is_parent=True,
            is_root=True,
            tree_id=labels.get(keys.TREE_ID) or self.tree_id,
            ignores_default_tree=stored.ignores_default_tree
            or labels.get(keys.IGNORES_DEFAULT_TREE) == "true",
            profile=profile.name,
            min={name: total.get(name, 0) for name in profile.resource_keys},
            max=most,
            weight=most,
            total=total,
            unschedulable=unschedulable,
            errors=(),
        )

    def _of_nodes(self, amounts: Amounts) -> dict[str, int]:
        return {name: int(much * self.profile.ratio) for name, much in sorted(amounts.items())}

    def unstored(self, stored: ElasticQuota | None) -> Object:
        """What of the root quota's object a store lacks, as a merge patch; empty: nothing."""
        keys, root = elastic_quotas, self.root(stored)
        labels = {
            **self.profile.quota_labels,
            keys.IS_ROOT: "true",
            keys.IS_PARENT: "true",
            keys.TREE_ID: root.tree_id,
            keys.PROFILE: root.profile,
        }
        patch: Object = {}
        if stored is None or not labels.items() <= stored.labels.items():
            patch["metadata"] = {"labels": labels}
        notes = {
            key: json.dumps(quantities(amounts or {}), sort_keys=True, separators=(",", ":"))
            for key, amounts, known in (
                (keys.TOTAL, root.total, stored and stored.total),
                (keys.UNSCHEDULABLE, root.unschedulable, stored and stored.unschedulable),
            )
            if amounts != known
        }
        if notes:
            patch.setdefault("metadata", {})["annotations"] = notes
        if stored is None or (stored.min, stored.max) != (root.min, root.max):
            patch["spec"] = {
                "min": _exactly(root.min, () if stored is None else stored.min),
                "max": _exactly(root.max, () if stored is None else stored.max),
            }
        return patch

    def created(self) -> Object:
        """The root quota as an object that no store has; it goes with its profile."""
        profile, patch = self.profile, self.unstored(None)
        owner = {
            "apiVersion": profile.kind.api_version,
            "kind": profile.kind.name,
            "name": profile.name,
            "uid": profile.uid,
        }
        where = {"name": profile.quota_name, "namespace": profile.namespace}
        owners = {"ownerReferences": [owner]} if profile.uid else {}
        return {
            "apiVersion": kinds.ELASTIC_QUOTAS.api_version,
            "kind": kinds.ELASTIC_QUOTAS.name,
            **patch,
            "metadata": {**patch["metadata"], **where, **owners},
        }


def selectors(
    pools: Iterable[Pool], roots: Sequence[ElasticQuota]
) -> list[tuple[Requirement, ...]]:
    """The selectors of the nodes of a tree with these roots, where its pods are kept on them."""
    if any(not spec.keeps_to_nodes for spec in roots):
        return []
    names = {spec.name for spec in roots}
    profiles = (pool.profile for pool in pools)
    return [each.selector for each in profiles if each.quota_name in names and each.selector]


def _exactly(amounts: Amounts, known: Iterable[str]) -> dict[str, str | None]:
    """Amounts for a merge patch, in place of all that are there."""
    return {**dict.fromkeys(known), **quantities(amounts)}


def fnv(text: str) -> int:
    """FNV-1a with 64 bits, by which the peer names the tree of a profile."""
    result = _FNV
    for byte in text.encode():
        result = (result ^ byte) * _PRIME % 2**64
    return result
