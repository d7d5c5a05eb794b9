"""Random clusters that a real API server takes: the oracle's, fitted to what a server checks.

Covers: nodes, pods, priority classes, claims and volumes. Does not cover: deciding about them.
"""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.clusters import APPS, BATCH, SPACES, Maker
from tests.oracle.objects import Body
from tests.oracle.spreading import ZONE

PRIORITIES = {-3: "low", 0: "usual", 5: "middle", 10: "high"}
NEVER, PREEMPTS = "Never", "PreemptLowerPriority"
#: Of what a node has in whole units: requested and limited alike, says the server.
_COUNTED = ("example.com/gpu", BATCH)
_CLASSES = ("local", "made", "zoned")
DRIVER = "csi.example"
_BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"


class Fleet(Maker):
    """Nodes, and pods one after the other, from one seed."""

    def __init__(self, seed: int, *, calm: bool) -> None:
        super().__init__(seed)
        self._calm = calm
        self._roll = random.Random(~seed)

    def objects(self) -> dict[str, list[Body]]:
        """What is there before the nodes, by the path that makes it."""
        budgets: dict[str, list[Body]] = {_BUDGETS.format(space): [] for space in SPACES}
        for budget in self._protections():
            budgets[_BUDGETS.format(budget["metadata"]["namespace"])].append(budget)
        return {"/api/v1/namespaces/d/services": self._selecting(), **self._storage(), **budgets}

    def _selecting(self) -> list[Body]:
        """What the default spreading goes by."""
        port = [{"port": 80}]
        return [{**body, "spec": {**body["spec"], "ports": port}} for body in self._services()]

    def nodes(self, count: int) -> list[Body]:
        """Nodes with taints that the server takes and that drive nobody away."""
        several = [self._node(f"n{at}") for at in range(count)]
        for node in several:
            taints = {
                (taint["key"], taint["effect"]): taint
                for taint in node["spec"]["taints"]
                if taint["effect"] != "NoExecute"
            }
            node["spec"]["taints"] = list(taints.values())
            # What is set aside by annotation is Koordinator's rule: kube-scheduler has none.
            del node["metadata"]["annotations"]
            node["metadata"]["labels"].setdefault("kubernetes.io/os", "linux")
        return several

    def pod(self) -> Body:
        """The next pod."""
        pod = self._pod()
        spec, meta = pod["spec"], pod["metadata"]
        del meta["uid"], meta["creationTimestamp"]
        # A RuntimeClass would have to say it, and there is none.
        spec.pop("overhead", None)
        # A gate is opened by its owner, and there is none.
        spec.pop("schedulingGates", None)
        policy = spec.pop("preemptionPolicy", PREEMPTS)
        spec["priorityClassName"] = f"{PRIORITIES[spec.pop('priority')]}-{policy.lower()}"
        spec["terminationGracePeriodSeconds"] = 0
        taken: set[str] = set()
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            _fit(container, taken)
        if self._roll.random() < 0.1:
            claim = {"claimName": f"claim-{self._roll.randrange(40)}"}
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def _storage(self) -> dict[str, list[Body]]:
        """Classes, volumes and claims, by the path that makes them; all wait for their consumer."""
        roll = self._roll
        zones = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}]
        makers = ("kubernetes.io/no-provisioner", DRIVER, DRIVER)
        classes = [
            {
                "metadata": {"name": name},
                "provisioner": maker,
                "volumeBindingMode": "WaitForFirstConsumer",
                **({"allowedTopologies": zones} if name == "zoned" else {}),
            }
            for name, maker in zip(_CLASSES, makers, strict=True)
        ]
        volumes = [
            {
                "metadata": {"name": f"volume-{at}"},
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": {"storage": roll.choice(("1Gi", "2Gi", "4Gi"))},
                    "storageClassName": "local",
                    "local": {"path": f"/disk{at}"},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [_in_zone(roll)]}},
                },
            }
            for at in range(8)
        ]
        claims = [
            {
                "metadata": {"name": f"claim-{at}"},
                "spec": {
                    "accessModes": [roll.choice(("ReadWriteOnce", "ReadWriteOncePod"))],
                    "resources": {"requests": {"storage": roll.choice(("1Gi", "2Gi", "3Gi"))}},
                    "storageClassName": roll.choice(_CLASSES),
                },
            }
            for at in range(30)
        ]
        return {
            "/apis/storage.k8s.io/v1/storageclasses": classes,
            "/api/v1/persistentvolumes": volumes,
            "/api/v1/namespaces/d/persistentvolumeclaims": claims,
        }

    def _protections(self) -> list[Body]:
        """Budgets that allow nothing: hollow pods are never ready."""
        return [
            {
                "metadata": {"name": app, "namespace": space},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
            }
            for app in APPS
            for space in SPACES
            if self._roll.random() < 0.3
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


def _in_zone(roll: random.Random) -> Body:
    values = [f"z{roll.randint(1, 3)}"]
    return {"matchExpressions": [{"key": ZONE, "operator": "In", "values": values}]}
