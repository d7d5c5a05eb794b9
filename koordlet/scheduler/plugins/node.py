"""Plugins that look at the node object alone.

Covers: NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodeDeclaredFeatures,
ImageLocality. Does not cover: what pods on the node change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.cluster.label_index import counts
from koordlet.scheduler.cluster.vectors import Bools, Ints, Rows
from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.pods import PodClass


class NodeUnschedulable(framework.Plugin):
    """Cordoned nodes, for pods that do not bear it."""

    name = "NodeUnschedulable"
    listens = ActionType.NODE_NEW | ActionType.NODE_TAINTS

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        cordoned = columns.index.field("unschedulable").where(bool)
        if not cordoned.any() or terms.tolerated(pod_class.tolerations, terms.CORDONED):
            return None
        return framework.masked(~cordoned, "node(s) were unschedulable")

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        node = event.node
        bears = terms.tolerated(pod_class.tolerations, terms.CORDONED)
        return node is None or bears or not node.unschedulable


class NodeName(framework.Plugin):
    """The node that the pod itself names."""

    name = "NodeName"
    listens = ActionType.NODE_NEW

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        if not pod_class.node_name:
            return None
        passing = columns.index.field("name").where(lambda name: name == pod_class.node_name)
        return framework.masked(passing, "node(s) didn't match the requested node name")

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        return event.node is None or event.node.name == pod_class.node_name


def _repelled(pod_class: PodClass, taints: Iterable[terms.Taint]) -> bool:
    hard = (taint for taint in taints if taint.effect in terms.HARD)
    return not all(terms.tolerated(pod_class.tolerations, taint) for taint in hard)


def untolerated(pod_class: PodClass, columns: Columns) -> Bools:
    """Nodes with a NoSchedule or NoExecute taint that a class does not tolerate."""

    def refuses(taints: Any) -> bool:
        return _repelled(pod_class, taints)

    return columns.index.field("taints").where(refuses)


class TaintToleration(framework.Plugin):
    """Taints: hard ones refuse, soft ones cost score."""

    name = "TaintToleration"
    listens = ActionType.NODE_NEW | ActionType.NODE_TAINTS

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        refused = untolerated(pod_class, columns)
        if not refused.any():
            return None
        return framework.masked(~refused, "node(s) had untolerated taint(s)")

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        return event.node is None or not _repelled(pod_class, event.node.taints)

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        soft = [
            toleration
            for toleration in pod_class.tolerations
            if toleration.effect in {"", "PreferNoSchedule"}
        ]
        column = columns.index.field("taints")
        table = [
            sum(
                taint.effect == "PreferNoSchedule" and not terms.tolerated(soft, taint)
                for taint in taints  # type: ignore[attr-defined]
            )
            for taints in column.values
        ]
        return SoftTaints(counts(table, column))


class SoftTaints(framework.StaticScore):
    """Fewer soft taints are better."""

    normalised = True

    def final(self, raw: Ints, rows: Rows) -> Ints:
        return framework.scaled(raw, reverse=True)

    def constant(self, raw: Ints) -> int | None:
        return None if raw.any() else framework.MAX_SCORE


class PreferredAffinity(framework.StaticScore):
    """More fulfilled wishes are better."""

    normalised = True

    def final(self, raw: Ints, rows: Rows) -> Ints:
        return framework.scaled(raw)


def matching(pod_class: PodClass, columns: Columns) -> Bools:
    """Nodes that a class's own nodeSelector and required affinity accept."""
    passing = columns.index.selected(dict(pod_class.node_selector))
    if pod_class.required is not None:
        passing &= columns.index.any_term(pod_class.required)
    return passing


class NodeAffinity(framework.Plugin):
    """nodeSelector, required and preferred node affinity, and what the profile adds."""

    name = "NodeAffinity"
    listens = ActionType.NODE_NEW | ActionType.NODE_LABELS

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        added = wire.mapping(args, "addedAffinity")
        needed = added.get("requiredDuringSchedulingIgnoredDuringExecution")
        self._required = None
        if needed is not None:
            bodies = wire.bodies(needed, "nodeSelectorTerms")
            self._required = tuple(map(terms.node_term, bodies))
        self._preferred = tuple(
            (wire.integer(term, "weight"), terms.node_term(wire.mapping(term, "preference")))
            for term in wire.bodies(added, "preferredDuringSchedulingIgnoredDuringExecution")
        )

    def names(self, pod_class: PodClass) -> frozenset[str] | None:
        if not pod_class.required:
            return None
        union: set[str] = set()
        for term in pod_class.required:
            named = [
                set(requirement.values)
                for requirement in term.fields
                if requirement.operator == "In"
            ]
            if not named:
                return None
            union |= set.intersection(*named)
        if not union:
            raise framework.RefusedError("pod affinity terms conflict")
        return frozenset(union)

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        if self._required is None and not pod_class.node_selector and pod_class.required is None:
            return None
        added = np.ones(columns.size, np.bool_)
        if self._required is not None:
            added = columns.index.any_term(self._required)
        own = np.where(matching(pod_class, columns), 0, 2)
        return framework.Coded(
            np.where(added, own, 1).astype(np.int64),
            "node(s) didn't match scheduler-enforced node affinity",
            "node(s) didn't match Pod's node affinity/selector",
        )

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        node = event.node
        if node is None:
            return True
        if any(node.labels.get(key) != value for key, value in pod_class.node_selector.items()):
            return False
        several = (self._required, pod_class.required)
        return all(
            any(terms.fulfils(term, node.name, node.labels) for term in required)
            for required in several
            if required is not None
        )

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        wishes = [*self._preferred, *pod_class.preferred]
        if not wishes:
            return None
        weights = np.zeros(columns.size, np.int64)
        for weight, term in wishes:
            weights += weight * columns.index.term(term)
        return PreferredAffinity(weights)


class NodeDeclaredFeatures(framework.Plugin):
    """Features of the kubelet without which the pod cannot run."""

    name = "NodeDeclaredFeatures"
    listens = ActionType.NODE_NEW | ActionType.NODE_LABELS

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        if not pod_class.features:
            return None
        passing = columns.index.field("features").where(
            lambda declared: isinstance(declared, frozenset) and pod_class.features <= declared
        )
        return framework.masked(passing, "node(s) didn't match Pod's required features")


_SMALL = 23 << 20
_LARGE = 1000 << 20


class ImageLocality(framework.Plugin):
    """Images that are there already, weighted by how many nodes have them."""

    name = "ImageLocality"

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        most = _LARGE * pod_class.containers
        alive = len(columns.rows)
        bytes_there = np.zeros(columns.size, np.int64)
        for image in pod_class.images:
            rows, sizes = columns.index.image(image)
            if rows.size:
                # As the peer: a fraction in floating point, times the size, cut.
                bytes_there[rows] += (sizes * (rows.size / alive)).astype(np.int64)
        if not bytes_there.any() or most <= _SMALL:
            return None
        clipped = np.clip(bytes_there, _SMALL, most)
        return framework.StaticScore(framework.MAX_SCORE * (clipped - _SMALL) // (most - _SMALL))
