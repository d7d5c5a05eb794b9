"""ClusterNetworkTopology: the layers of the cluster's network, as the peers' object spells them.

Covers: the layers from the root's child down to the node, and the labels that name a node's place.
Does not cover: the nodes in them (``scheduler.gangs.network_tree``).

Rules:
1. The object named ``default`` counts. The layers are one chain: from ``NodeTopologyLayer``, which
   is always a node, through each ``parentTopologyLayer`` up to the root, ``ClusterTopologyLayer``,
   which is not listed.
2. A chain that is broken, or with layers beside it, is no tree: ``problem`` says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import shapes
from koordlet.model.record import dataclass

#: The name of the object that counts.
NAME = "default"
ROOT_LAYER, NODE_LAYER = "ClusterTopologyLayer", "NodeTopologyLayer"


@dataclass(frozen=True, slots=True)
class TopologyLayer:
    """One layer; a node is in the place that the first of its labels names."""

    name: str
    label_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """A ClusterNetworkTopology."""

    name: str
    #: From the root's child down to the layer above the nodes.
    layers: tuple[TopologyLayer, ...] = ()
    #: Why it is no tree; empty: it is.
    problem: str = ""

    @property
    def counts(self) -> bool:
        """Whether it is the object that counts."""
        return self.name == NAME

    @property
    def unused(self) -> str:
        """Why it has no effect; empty: it has."""
        return self.problem if self.counts else f'the network is the object named "{NAME}"'


def network_topology(body: Mapping[str, Any]) -> NetworkTopology:
    """A ClusterNetworkTopology, readable or not (rule 2)."""
    problems: list[str] = []
    name = str(shapes.section(body, "metadata", problems).get("name") or "")
    spec = shapes.section(body, "spec", problems)
    parents: dict[str, str] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for entry in shapes.sections(spec, "networkTopologySpec", problems):
        layer = str(entry.get("topologyLayer") or "")
        if layer in parents:
            problems.append(f"layer {shapes.shown(layer)} is listed twice")
        parents[layer] = str(entry.get("parentTopologyLayer") or ROOT_LAYER)
        labels = entry.get("labelKey")
        keys[layer] = tuple(map(str, labels)) if isinstance(labels, list) else ()
        if not keys[layer] and layer != NODE_LAYER:
            problems.append(f"layer {shapes.shown(layer)}: labelKey: expected a list of labels")
    chain = _chain(parents, problems)
    if problems:
        return NetworkTopology(name, problem=f"spec.networkTopologySpec: {problems[0]}")
    return NetworkTopology(name, tuple(TopologyLayer(layer, keys[layer]) for layer in chain))


def _chain(parents: Mapping[str, str], problems: list[str]) -> list[str]:
    """The layers above the nodes, the highest first."""
    if NODE_LAYER not in parents:
        problems.append(f"layer {NODE_LAYER} is missing")
        return []
    chain: list[str] = []
    layer = parents[NODE_LAYER]
    while layer != ROOT_LAYER:
        if layer not in parents or layer in chain:
            what = "is its own ancestor" if layer in chain else "is not listed"
            problems.append(f"parent layer {shapes.shown(layer)} {what}")
            return []
        chain.append(layer)
        layer = parents[layer]
    beside = sorted(parents.keys() - {*chain, NODE_LAYER})
    if beside:
        problems.append(f"layer {shapes.shown(beside[0])} is not above {NODE_LAYER}")
    return chain[::-1]
