"""Random clusters that a real API server takes: the oracle's, fitted to what a server checks.

Covers: nodes, pods, budgets, priority classes. Does not cover: claims and volumes
(``fleet_storage``), devices (``fleet_devices``), what only few pods say (``rare_fields``), deciding
about them.
"""

from __future__ import annotations

import random
from typing import Any

from tests.cluster.fleet_devices import devices
from tests.cluster.fleet_storage import node_drivers, storage
from tests.cluster.rare_fields import RUNTIMES, claim_devices, vary
from tests.oracle.clusters import APPS, BATCH, SPACES, Maker
from tests.oracle.objects import Body

PRIORITIES = {-3: "low", 0: "usual", 5: "middle", 10: "high"}
NEVER, PREEMPTS = "Never", "PreemptLowerPriority"
#: Of what a node has in whole units: requested and limited alike, says the server.
_COUNTED = ("example.com/gpu", BATCH)
_BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"


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
        return {**services, **stored, **furnished, **budgets}

    def _selecting(self) -> list[Body]:
        """What the default spreading goes by."""
        port = [{"port": 80}]
        return [{**body, "spec": {**body["spec"], "ports": port}} for body in self._services()]

    def nodes(self, count: int) -> list[Body]:
        """Nodes with taints that the server takes."""
        several = [self._node(f"n{at}") for at in range(count)]
        for node in several:
            taints = {(taint["key"], taint["effect"]): taint for taint in node["spec"]["taints"]}
            node["spec"]["taints"] = list(taints.values())
            # What is set aside by annotation is Koordinator's rule: kube-scheduler has none.
            del node["metadata"]["annotations"]
            node["metadata"]["labels"].setdefault("kubernetes.io/os", "linux")
            room = node["status"]["allocatable"]
            room |= {"hugepages-2Mi": "128Mi"} if self._roll.random() < 0.3 else {}
            room |= {"pods": "0"} if self._roll.random() < 0.03 else {}
        return several

    def pod(self) -> Body:
        """The next pod."""
        pod = self._pod()
        spec, meta = pod["spec"], pod["metadata"]
        del meta["uid"], meta["creationTimestamp"]
        # A RuntimeClass has to say it.
        spec.pop("overhead", None)
        # Of a gate the server itself says that it is there.
        spec.pop("schedulingGates", None)
        policy = spec.pop("preemptionPolicy", PREEMPTS)
        spec["priorityClassName"] = f"{PRIORITIES[spec.pop('priority')]}-{policy.lower()}"
        spec["terminationGracePeriodSeconds"] = 0
        taken: set[str] = set()
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            _fit(container, taken)
        vary(spec, self._roll)
        if self._calm and meta["namespace"] == "d":
            claim_devices(spec, self._roll)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def _protections(self) -> list[Body]:
        """Budgets that allow some or nothing; a pod may have several."""
        return [
            {
                "metadata": {"name": f"{app}-{kind}", "namespace": space},
                "spec": {"minAvailable": self._roll.randint(0, 4), "selector": selector},
            }
            for app in APPS
            for space in SPACES
            for kind, selector in (
                ("of-app", {"matchLabels": {"app": app}}),
                ("any", self._selector()),
            )
            if self._roll.random() < 0.15
        ]


def shared() -> dict[str, list[Body]]:
    """What every fleet needs, by the path that makes it.

    Namespaces have the labels that selectors name. Priority classes are what pods name as their
    priority: a pod may not say itself that it preempts nobody.
    """
    spaces = [{"metadata": {"name": name, "labels": labels}} for name, labels in SPACES.items()]
    classes = [
        {"metadata": {"name": f"{name}-{policy.lower()}"}, "value": value}
        | {"preemptionPolicy": policy}
        for value, name in PRIORITIES.items()
        for policy in (NEVER, PREEMPTS)
    ]
    return {
        "/api/v1/namespaces": spaces,
        "/apis/node.k8s.io/v1/runtimeclasses": list(RUNTIMES),
        "/apis/scheduling.k8s.io/v1/priorityclasses": classes,
    }


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
