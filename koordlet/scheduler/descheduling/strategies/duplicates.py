"""RemoveDuplicates: replicas of one owner that share a node while others have none.

Covers: what a duplicate is, how many nodes could have one, how many are too many. Does not cover:
pods without an owner.

Rules:
1. Equal are pods of the same owners with the same images; a pod counts once for each owner, and is
   evicted once.
2. The nodes that could have a replica are those that its selectors and tolerations admit, and that
   are not cordoned (the peer counts these). Each of fewer than two is no choice.
3. On each node at most ``ceil(replicas / nodes)`` stay.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from koordlet.scheduler.cluster.vectors import Bools
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling import selection
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.descheduling.state import is_cordoned
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.plugins import node as node_plugins

#: Namespace, kind and name of an owner, and the images.
_Key = tuple[str, str, str, tuple[str, ...]]


class RemoveDuplicates:
    """Evicts replicas beyond an even share of their nodes."""

    name = "RemoveDuplicates"

    def __init__(self, fields: Fields) -> None:
        self._pods = selection.PodSelection(namespaces=selection.choice(fields, "namespaces"))
        self._kinds = frozenset(fields.texts("excludeOwnerKinds"))
        fields.done()

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Owner by owner, node by node."""
        occurrences, duplicates = self._found(scene)
        scope = np.zeros(scene.state.columns.size, np.bool_)
        scope[[row for row in scene.rows if not is_cordoned(scene.state.node(row))]] = True
        feasible: dict[PodClass, Bools] = {}
        for key, by_row in duplicates.items():
            nodes = _nodes(scene, by_row, scope, feasible)
            if nodes < 2:
                continue
            upper = -(-occurrences[key] // nodes)
            for several in by_row.values():
                # The list does not have the first of them.
                if len(several) + 1 <= upper:
                    continue
                _, kind, name, _ = key
                reason = (
                    f"{len(several) + 1} replicas of {kind} {name} are on this node,"
                    f" {upper} is its share of {occurrences[key]} over {nodes} nodes"
                )
                for resident in several[upper - 1 :]:
                    if (yield rounds.Intent(resident, reason)) is EvictionAnswer.NODE_LIMIT:
                        break

    def _found(
        self, scene: rounds.Scene
    ) -> tuple[Counter[_Key], dict[_Key, dict[int, list[Resident]]]]:
        occurrences: Counter[_Key] = Counter()
        duplicates: dict[_Key, dict[int, list[Resident]]] = defaultdict(dict)
        for row in scene.rows:
            seen: set[tuple[_Key, ...]] = set()
            for resident in scene.evictable(row, self._meant):
                keys = tuple(sorted(_keys(resident)))
                occurrences.update(keys)
                if keys in seen:
                    for key in keys:
                        duplicates[key].setdefault(row, []).append(resident)
                seen.add(keys)
        return occurrences, duplicates

    def _meant(self, resident: Resident) -> bool:
        pod_class = resident.pod.pod_class
        kinds = {reference.kind for reference in pod_class.references}
        return bool(kinds) and not kinds & self._kinds and self._pods.admits(pod_class)


def _keys(resident: Resident) -> list[_Key]:
    pod_class = resident.pod.pod_class
    images = resident.traits.images or tuple(sorted(pod_class.images))
    return [
        (pod_class.namespace, reference.kind, reference.name, images)
        for reference in pod_class.references
    ]


def _nodes(
    scene: rounds.Scene,
    by_row: dict[int, list[Resident]],
    scope: Bools,
    known: dict[PodClass, Bools],
) -> int:
    """How many nodes could have one of these pods."""
    columns = scene.state.columns
    union = np.zeros(columns.size, np.bool_)
    for pod_class in {
        resident.pod.pod_class for several in by_row.values() for resident in several
    }:
        nodes = known.get(pod_class)
        if nodes is None:
            nodes = scope & node_plugins.matching(pod_class, columns)
            nodes &= ~node_plugins.untolerated(pod_class, columns)
            known[pod_class] = nodes
        if int(nodes.sum()) > 1:
            union |= nodes
    return int(union.sum())
