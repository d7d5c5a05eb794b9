"""Small clusters as kubectl would print them, and what the simulation says about them."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.loop import configuration
from koordlet.scheduler.sim import simulation

Body = dict[str, Any]
HOST = "kubernetes.io/hostname"


def node(name: str, *, labels: Body | None = None, cpu: str = "4", **more: Any) -> Body:
    """A node of 4 CPUs, 8 GiB, 110 pods; ``spec`` and ``allocatable`` add or replace."""
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110", **more.pop("allocatable", {})}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, **(labels or {})}},
        "spec": more.pop("spec", {}),
        "status": {"allocatable": room, **more},
    }


def pod(name: str, *, on: str = "", labels: Body | None = None, **more: Any) -> Body:
    """A pod with one container asking for ``cpu``, ``memory``, ``requests``; the rest is spec."""
    asked = dict(more.pop("requests", {}))
    asked |= {key: more.pop(key) for key in ("cpu", "memory") if key in more}
    container = {"name": "c", "image": "app:1", "resources": {"requests": asked}}
    container |= more.pop("container", {})
    meta = {"name": name, "namespace": more.pop("namespace", "d"), "labels": labels or {}}
    meta |= more.pop("meta", {})
    spec = {"containers": [container], **more}
    if on:
        spec["nodeName"] = on
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": more.pop("status", {})}


def stored(body: Body) -> Body:
    """The same as an API server has taken it, one that lets more pass than ours."""
    return {**body, "metadata": {**body["metadata"], "uid": f"uid-{body['metadata']['name']}"}}


def tried(*bodies: Body, config: Body | None = None) -> Body:
    """The document of a simulation with scores."""
    settings = configuration.read(config, "test") if config is not None else None
    return simulation.Simulation(inventory.load(bodies), settings, scores=True).run().document()


def places(*bodies: Body, config: Body | None = None) -> dict[str, str]:
    """Pod to node, of those that were placed."""
    document = tried(*bodies, config=config)
    return {
        placement["pod"].removeprefix("d/"): placement["node"]
        for placement in document["placements"]
    }


def scores(name: str, *bodies: Body, config: Body | None = None) -> dict[str, int]:
    """The totals of one pod."""
    document = tried(*bodies, config=config)
    [totals] = [
        placement["scores"]
        for placement in document["placements"]
        if placement["pod"] == f"d/{name}"
    ]
    return dict(totals)


def message(name: str, *bodies: Body, config: Body | None = None) -> str:
    """Why a pod is pending, without what preemption says."""
    document = tried(*bodies, config=config)
    [text] = [entry["message"] for entry in document["pending"] if entry["pod"] == f"d/{name}"]
    return str(text).partition(" no new claims")[0]


def spread(key: str, when: str = "DoNotSchedule", **more: Any) -> Body:
    """A constraint on pods with ``app=web``."""
    selector = {"matchLabels": {"app": "web"}}
    return {
        "topologyKey": key,
        "maxSkew": 1,
        "whenUnsatisfiable": when,
        "labelSelector": selector,
        **more,
    }


def affinity(kind: str, key: str, *, weight: int = 0, app: str = "web", **more: Any) -> Body:
    """A pod (anti-)affinity to ``app``: required, or preferred with a weight."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}
    if weight:
        wish = [{"weight": weight, "podAffinityTerm": term}]
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": wish}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
