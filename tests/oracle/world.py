"""All objects of one cluster, and which pods are where."""

from __future__ import annotations

from tests.oracle.objects import Body, labels, name, namespace, selects


class World:
    """The nodes in their order, each with its pods."""

    def __init__(self, bodies: list[Body], now: float = 0.0) -> None:
        self.now = now
        self.nodes = [one for one in bodies if one["kind"] == "Node"]
        self._of = {
            kind: {name(one): one for one in bodies if one["kind"] == kind}
            for kind in ("PersistentVolume", "StorageClass", "NodeMetric", "NodeResourceTopology")
        }
        self.volumes, self.kinds, self.metrics, self.topologies = self._of.values()
        several = [one for one in bodies if one["kind"] == "PersistentVolumeClaim"]
        self.claims = {(namespace(one), name(one)): one for one in several}
        self.limits = {
            name(one): {d["name"]: d["allocatable"]["count"] for d in one["spec"]["drivers"]}
            for one in bodies
            if one["kind"] == "CSINode"
        }
        #: Volume to the claim that is to have it; pod to what it was given of NUMA nodes.
        self.promised: dict[str, str] = {}
        self.parts: dict[str, dict[int, dict[str, int]]] = {}
        self.on: dict[str, list[Body]] = {name(one): [] for one in self.nodes}
        self.services = [one for one in bodies if one["kind"] == "Service"]
        self.budgets = [one for one in bodies if one["kind"] == "PodDisruptionBudget"]
        self.spaces = {name(one): labels(one) for one in bodies if one["kind"] == "Namespace"}
        self.pending: list[Body] = []
        for pod in (one for one in bodies if one["kind"] == "Pod"):
            if pod["status"].get("phase") in {"Succeeded", "Failed"}:
                continue
            place = pod["spec"].get("nodeName")
            (self.on[place] if place else self.pending).append(pod)

    def placed(self) -> list[tuple[Body, Body]]:
        """Every pod with its node."""
        return [(pod, node) for node in self.nodes for pod in self.on[name(node)]]

    def default_selector(self, pod: Body) -> Body:
        """What the Services that mean a pod select, together."""
        pairs: dict[str, str] = {}
        for one in self.services:
            selector = one["spec"].get("selector", {})
            same = namespace(one) == namespace(pod)
            if same and selector and selects({"matchLabels": selector}, labels(pod)):
                pairs |= selector
        return {"matchLabels": pairs}
