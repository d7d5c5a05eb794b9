"""Pods and PodGroups of gangs, as kubectl would print them."""

from __future__ import annotations

import json
from typing import Any

from koordlet.kubeapi import kinds, pod_groups
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters

Body = dict[str, Any]


def member(name: str, gang: str, minimum: int | str | None = None, **more: Any) -> Body:
    """A pod of a gang without an object, ``gang`` in its annotation; ``notes`` adds others."""
    notes = {pod_groups.GANG_NAME: gang, **more.pop("notes", {})}
    if minimum is not None:
        notes[pod_groups.GANG_MINIMUM] = str(minimum)
    return clusters.pod(
        name, meta={"annotations": notes, "uid": name, **more.pop("meta", {})}, **more
    )


def labelled(name: str, gang: str, **more: Any) -> Body:
    """A pod of a gang that has a PodGroup of the peers' kind."""
    labels = {pod_groups.POD_GROUP: gang, **more.pop("labels", {})}
    return clusters.pod(name, labels=labels, meta={"uid": name}, **more)


def own(name: str, gang: str, **more: Any) -> Body:
    """A pod of a gang of Kubernetes' own kind."""
    meta = {"uid": name}
    return clusters.pod(name, meta=meta, schedulingGroup={"podGroupName": gang}, **more)


def pod_group(name: str, minimum: object, **notes: Any) -> Body:
    """A PodGroup of the peers' kind; ``notes``: mode, groups, policy by their short names."""
    namespace = notes.pop("namespace", "d")
    keys = {
        "mode": pod_groups.MODE,
        "groups": pod_groups.GROUPS,
        "policy": pod_groups.MATCH_POLICY,
        "gather": pod_groups.TOPOLOGY_SPEC,
    }
    texts = {
        keys[key]: note if isinstance(note, str) else json.dumps(note)
        for key, note in notes.items()
    }
    return {
        "apiVersion": kinds.POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"g-{name}",
            "annotations": texts,
        },
        "spec": {"minMember": minimum},
    }


def own_group(name: str, minimum: int | None, **spec: Any) -> Body:
    """A PodGroup of Kubernetes' own kind; without a minimum it is ``basic``."""
    policy: Body = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    return {
        "apiVersion": kinds.NATIVE_POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "d", "uid": f"k-{name}", "generation": 1},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def network(*layers: str, name: str = "default") -> Body:
    """A network of layers, the highest first; nodes name their places by labels ``net/<layer>``."""
    chain = [*layers, "NodeTopologyLayer"]
    spec = [
        {
            "topologyLayer": layer,
            **({"parentTopologyLayer": chain[place - 1]} if place else {}),
            **({"labelKey": [f"net/{layer}"]} if layer in layers else {}),
        }
        for place, layer in enumerate(chain)
    ]
    return {
        "apiVersion": kinds.CLUSTER_NETWORK_TOPOLOGIES.api_version,
        "kind": "ClusterNetworkTopology",
        "metadata": {"name": name},
        "spec": {"networkTopologySpec": spec},
    }


def gather(**layers: str) -> Body:
    """How a gang is gathered, by layer: ``Must``, ``Prefer``, with a multiple ``Prefer*4``."""
    strategies = []
    for layer, spelled in layers.items():
        word, _, multiple = spelled.partition("*")
        more = {"podCountMultiple": int(multiple)} if multiple else {}
        strategies.append({"layer": layer, "strategy": f"{word}Gather", **more})
    return {"gatherStrategy": strategies}


def decoded(body: Body, position: int = 0) -> Pod:
    """A pod as the scheduler sees it."""
    return Decoder({}).decode(body, position)
