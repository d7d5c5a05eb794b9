"""All objects of one cluster, and which pods are where."""

from __future__ import annotations

from tests.oracle.objects import Body, labels, name, namespace, selects


class World:
    """The nodes in their order, each with its pods."""

    def __init__(self, bodies: list[Body], now: float = 0.0) -> None:
        self.now = now
        self.nodes = [body for body in bodies if body["kind"] == "Node"]
        self._of = {
            kind: {name(body): body for body in bodies if body["kind"] == kind}
            for kind in ("PersistentVolume", "StorageClass", "NodeMetric", "NodeResourceTopology")
        }
        self.volumes, self.kinds, self.metrics, self.topologies = self._of.values()
        claims = [body for body in bodies if body["kind"] == "PersistentVolumeClaim"]
        self.claims = {(namespace(claim), name(claim)): claim for claim in claims}
        self.limits = {
            name(body): {d["name"]: d["allocatable"]["count"] for d in body["spec"]["drivers"]}
            for body in bodies
            if body["kind"] == "CSINode"
        }
        #: Volume to the claim that is to have it; pod to what it was given of NUMA nodes.
        self.promised: dict[str, str] = {}
        self.parts: dict[str, dict[int, dict[str, int]]] = {}
        self.on: dict[str, list[Body]] = {name(node): [] for node in self.nodes}
        self.services = [body for body in bodies if body["kind"] == "Service"]
        self.budgets = [body for body in bodies if body["kind"] == "PodDisruptionBudget"]
        self.spaces = {name(body): labels(body) for body in bodies if body["kind"] == "Namespace"}
        self.pending: list[Body] = []
        for pod in (body for body in bodies if body["kind"] == "Pod"):
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
        for service in self.services:
            selector = service["spec"].get("selector", {})
            same = namespace(service) == namespace(pod)
            if same and selector and selects({"matchLabels": selector}, labels(pod)):
                pairs |= selector
        return {"matchLabels": pairs}
