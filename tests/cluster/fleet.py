"""Random clusters that a real API server takes: the oracle's, fitted to what a server checks.

Covers: nodes, pods, budgets, controllers, priority classes. Does not cover: claims and volumes
(``fleet_storage``), devices (``fleet_devices``), what only few nodes and pods say (``fleet_nodes``,
``rare_fields``), deciding about them.
"""

from __future__ import annotations

import random
from typing import Any

from tests.cluster.fleet_devices import devices
from tests.cluster.fleet_nodes import vary_node
from tests.cluster.fleet_storage import node_drivers, storage
from tests.cluster.rare_fields import RUNTIMES, claim_devices, makes_claims, vary
from tests.oracle.clusters import APPS, BATCH, SPACES, Maker
from tests.oracle.objects import Body

PRIORITIES = {-3: "low", 0: "usual", 5: "middle", 10: "high"}
#: Of classes at the border of what a user may say, and of the system's own.
_BORDER = {-(2**31): "lowest", 10**9: "highest"}
_SYSTEM = ("system-cluster-critical", "system-node-critical")
NEVER, PREEMPTS = "Never", "PreemptLowerPriority"
#: Of what a node has in whole units: requested and limited alike, says the server.
_COUNTED = ("example.com/gpu", BATCH)
_BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"
_REPLICA_SETS = "/apis/apps/v1/namespaces/{}/replicasets"
#: Pods that are there before the first one is decided about: bound by hand, nominated.
_PLACED, _PROMISED = 20, 6


class Fleet(Maker):
    """Nodes, and pods one after the other, from one seed."""

    def __init__(self, seed: int, *, calm: bool) -> None:
        super().__init__(seed)
        self._calm = calm
        self._roll = random.Random(~seed)

    def objects(self, count: int) -> dict[str, list[Body]]:
        """What is there besides so many nodes, by the path that makes it."""
        budgets: dict[str, list[Body]] = {_BUDGETS.format(space): [] for space in SPACES}
        for budget in self._protections():
            budgets[_BUDGETS.format(budget["metadata"]["namespace"])].append(budget)
        services = {"/api/v1/namespaces/d/services": self._selecting()}
        stored = {**storage(self._roll), **node_drivers(count, self._roll)}
        furnished = devices(count, self._roll) if self._calm else {}
        sets = {
            _REPLICA_SETS.format(space): [_replica_set(app) for app in APPS] for space in SPACES
        }
        return {**services, **sets, **stored, **furnished, **budgets}

    def _selecting(self) -> list[Body]:
        """What the default spreading goes by."""
        port = [{"port": 80}]
        return [{**body, "spec": {**body["spec"], "ports": port}} for body in self._services()]

    def nodes(self, count: int) -> list[Body]:
        """Nodes with taints that the server takes."""
        several = [self._node(f"n{at}") for at in range(count)]
        for node in several:
            # What is set aside by annotation is Koordinator's rule: kube-scheduler has none.
            del node["metadata"]["annotations"]
            node["metadata"]["labels"].setdefault("kubernetes.io/os", "linux")
            vary_node(node, self._roll)
            taints = {(taint["key"], taint["effect"]): taint for taint in node["spec"]["taints"]}
            node["spec"]["taints"] = list(taints.values())
        return several

    def pod(self) -> Body:
        """The next pod."""
        pod = self._plain_pod()
        spec, meta = pod["spec"], pod["metadata"]
        vary(spec, self._roll)
        if self._calm and meta["namespace"] == "d":
            claim_devices(spec, self._roll)
        if makes_claims(spec) or self._roll.random() < 0.03:
            spec["schedulingGates"] = [{"name": "example.com/held"}]
        return pod

    def placed(self, count: int) -> list[Body]:
        """Pods that somebody bound by hand, whether they fit there or not.

        None has a port of its node: kube-scheduler takes one that two pods have for free as soon as
        one of them leaves.
        """
        several = [self._plain_pod() for _ in range(_PLACED)]
        for pod in several:
            for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
                container.pop("ports", None)
            # Whoever does not tolerate it is sent away by a controller.
            stays = {"operator": "Exists", "effect": "NoExecute"}
            pod["spec"].setdefault("tolerations", []).append(stays)
            pod["spec"]["nodeName"] = f"n{self._roll.randrange(count)}"
        return several

    def promised(self, count: int) -> dict[str, list[Body]]:
        """Pods that no node will take, by the node that each is nominated for."""
        several: dict[str, list[Body]] = {}
        for _ in range(_PROMISED):
            pod = self._plain_pod()
            spec = pod["spec"]
            spec["nodeSelector"] = {"nowhere": "x"}
            spec["priorityClassName"] = f"{self._roll.choice(('low', 'usual', 'high'))}-never"
            # Where no pod that runs keeps another off by anti-affinity, kube-scheduler 1.36 does
            # not look at the anti-affinity of those who are nominated.
            spec["affinity"] = {}
            several.setdefault(f"n{self._roll.randrange(count)}", []).append(pod)
        return several

    def _plain_pod(self) -> Body:
        """A pod of the oracle's, as a server takes it."""
        pod = self._pod()
        spec, meta = pod["spec"], pod["metadata"]
        del meta["uid"], meta["creationTimestamp"]
        # A RuntimeClass has to say it.
        spec.pop("overhead", None)
        # Of a gate the server itself says that it is there.
        spec.pop("schedulingGates", None)
        policy = spec.pop("preemptionPolicy", PREEMPTS)
        spec["priorityClassName"] = f"{PRIORITIES[spec.pop('priority')]}-{policy.lower()}"
        if self._roll.random() < 0.04:
            border = [f"{name}-{policy.lower()}" for name in _BORDER.values()]
            spec["priorityClassName"] = self._roll.choice((*border, *_SYSTEM))
        spec["terminationGracePeriodSeconds"] = 0
        taken: set[str] = set()
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            _fit(container, taken)
        app = meta["labels"].get("app")
        if app and self._roll.random() < 0.5:
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "controller": True}
            meta["ownerReferences"] = [owner]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def _protections(self) -> list[Body]:
        """Budgets that allow some or nothing; a pod may have several."""
        return [
            {
                "metadata": {"name": f"{app}-{kind}", "namespace": space},
                "spec": {**self._protection(), "selector": selector},
            }
            for app in APPS
            for space in SPACES
            for kind, selector in (
                ("of-app", {"matchLabels": {"app": app}}),
                ("any", self._selector()),
            )
            if self._roll.random() < 0.15
        ]

    def _protection(self) -> Body:
        """A number of pods, or a part of what their controllers want."""
        field = self._roll.choice(("minAvailable", "minAvailable", "maxUnavailable"))
        part = self._roll.choice(("0%", "30%", "75%", "100%"))
        return {field: part if self._roll.random() < 0.4 else self._roll.randint(0, 4)}


def shared() -> dict[str, list[Body]]:
    """What every fleet needs, by the path that makes it.

    Namespaces have the labels that selectors name. Priority classes are what pods name as their
    priority: a pod may not say itself that it preempts nobody.
    """
    spaces = [{"metadata": {"name": name, "labels": labels}} for name, labels in SPACES.items()]
    classes = [
        {"metadata": {"name": f"{name}-{policy.lower()}"}, "value": value}
        | {"preemptionPolicy": policy}
        for value, name in (PRIORITIES | _BORDER).items()
        for policy in (NEVER, PREEMPTS)
    ]
    return {
        "/api/v1/namespaces": spaces,
        "/apis/node.k8s.io/v1/runtimeclasses": list(RUNTIMES),
        "/apis/scheduling.k8s.io/v1/priorityclasses": classes,
    }


def _replica_set(app: str) -> Body:
    """What owns pods; its controller is not there."""
    labels = {"app": app}
    container = {"name": "c", "image": "none:3"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 8, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": app}, "spec": spec}


def _fit(container: Body, taken: set[str]) -> None:
    resources: dict[str, Any] = container["resources"]
    requests = resources["requests"]
    limits = resources.setdefault("limits", {})
    for name in _COUNTED:
        if name in requests:
            limits[name] = requests[name]
    ports = [port for port in container.pop("ports", ()) if str(port) not in taken]
    if ports:
        taken |= set(map(str, ports))
        container["ports"] = ports
