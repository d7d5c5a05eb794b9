"""All objects of one cluster, and which pods are where."""

from __future__ import annotations

from tests.oracle.objects import Body, labels, name, namespace, selects


class World:
    """The nodes in their order, each with its pods."""

    def __init__(self, bodies: list[Body]) -> None:
        self.nodes = [one for one in bodies if one["kind"] == "Node"]
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
