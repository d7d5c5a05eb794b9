"""Random clusters with volumes, NUMA nodes and what nodes use, on top of the small ones."""

from __future__ import annotations

import json
import random

from tests.oracle import numa, volumes
from tests.oracle.clusters import Maker
from tests.oracle.objects import Body, name
from tests.oracle.spreading import HOST, ZONE

#: When all of it is looked at: 2026-01-01T00:10:00Z.
NOW = 1_767_226_200.0
THRESHOLDS = "scheduling.koordinator.sh/usage-thresholds"
DRIVER = "csi.example"
CLAIMS = ("a", "b", "c", "e", "f")
POLICIES = ("BestEffort", "Restricted", "SingleNUMANode")


class Furnisher:
    """One cluster from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._bodies = Maker(seed).bodies()

    def bodies(self) -> list[Body]:
        """The small cluster, and more."""
        nodes = [body for body in self._bodies if body["kind"] == "Node"]
        pods = [body for body in self._bodies if body["kind"] == "Pod"]
        more: list[Body] = []
        if self._chance(0.7):
            more += self._storage(nodes, pods)
        if self._chance(0.5):
            more += [self._metric(node, pods) for node in nodes if self._chance(0.8)]
        if self._chance(0.5):
            more += self._topologies(nodes, pods)
        return [*self._bodies, *more]

    def _chance(self, part: float) -> bool:
        return self._random.random() < part

    def _storage(self, nodes: list[Body], pods: list[Body]) -> list[Body]:
        roll = self._random
        late = {"volumeBindingMode": volumes.LATE}
        zones = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z2"]}]}]
        kinds: list[Body] = [
            {"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner", **late},
            {"metadata": {"name": "made"}, "provisioner": DRIVER, **late},
            {"metadata": {"name": "zoned"}, "provisioner": DRIVER, "allowedTopologies": zones}
            | late,
            {"metadata": {"name": "now"}, "provisioner": DRIVER},
        ]
        claims = [self._claim(claim_name) for claim_name in CLAIMS if self._chance(0.9)]
        for pod in pods:
            # The claims are those of one namespace; what runs has what it needs.
            there = [name(claim) for claim in claims] if "nodeName" in pod["spec"] else CLAIMS
            if there and pod["metadata"]["namespace"] == "d" and self._chance(0.8):
                chosen = roll.sample(there, min(len(there), roll.choice((1, 1, 2))))
                pod["spec"]["volumes"] = [
                    {"name": claim_name, "persistentVolumeClaim": {"claimName": claim_name}}
                    for claim_name in chosen
                ]
        drivers = [
            {
                "kind": "CSINode",
                "metadata": {"name": name(node)},
                "spec": {
                    "drivers": [{"name": DRIVER, "allocatable": {"count": roll.randint(1, 3)}}]
                },
            }
            for node in nodes
            if self._chance(0.5)
        ]
        classes = [{"kind": "StorageClass", **storage_class} for storage_class in kinds]
        return [*classes, *claims, *(self._volume(f"v{n}", nodes) for n in range(6)), *drivers]

    def _claim(self, claim_name: str) -> Body:
        roll = self._random
        modes = ["ReadWriteOncePod" if self._chance(0.2) else "ReadWriteOnce"]
        spec: Body = {
            "accessModes": modes,
            "resources": {"requests": {"storage": roll.choice(("1Gi", "2Gi", "3Gi"))}},
            "storageClassName": roll.choice(("local", "local", "made", "zoned", "now")),
        }
        meta: Body = {"name": claim_name, "namespace": "d", "uid": f"uid-{claim_name}"}
        if self._chance(0.4):
            # One of them is not there.
            spec["volumeName"] = f"v{roll.randint(0, 6)}"
        elif self._chance(0.15):
            meta["annotations"] = {volumes.SELECTED: f"n{roll.randint(0, 3)}"}
        if self._chance(0.1):
            spec["selector"] = {"matchLabels": {"tier": "gold"}}
        return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}

    def _volume(self, volume_name: str, nodes: list[Body]) -> Body:
        roll = self._random
        spec: Body = {
            "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
            "capacity": {"storage": roll.choice(("1Gi", "2Gi", "4Gi"))},
            "storageClassName": roll.choice(("local", "local", "made")),
        }
        labels = {"tier": "gold"} if self._chance(0.4) else {}
        if self._chance(0.5):
            labels[roll.choice((volumes.ZONE, volumes.OLD_ZONE))] = roll.choice(("z1", "z2__z3"))
        if self._chance(0.5):
            spec["csi"] = {"driver": DRIVER, "volumeHandle": f"h{roll.randint(0, 9)}"}
        if self._chance(0.5):
            hosts = [name(node) for node in roll.sample(nodes, max(1, len(nodes) // 2))]
            expression = {"key": HOST, "operator": "In", "values": hosts}
            terms = [{"matchExpressions": [expression]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        if self._chance(0.15):
            spec["claimRef"] = {"namespace": "d", "name": roll.choice(CLAIMS)}
        phase = "Available" if self._chance(0.7) else "Failed"
        meta = {"name": volume_name, "labels": labels}
        return {
            "kind": "PersistentVolume",
            "metadata": meta,
            "spec": spec,
            "status": {"phase": phase},
        }

    def _metric(self, node: Body, pods: list[Body]) -> Body:
        roll = self._random
        if self._chance(0.2):
            own = {"usageThresholds": {"cpu": roll.choice((0, 30, 90)), "memory": 80}}
            node["metadata"].setdefault("annotations", {})[THRESHOLDS] = json.dumps(own)
        there = [pod for pod in pods if pod["spec"].get("nodeName") == name(node)]
        for pod in there:
            if self._chance(0.8):
                at = f"2026-01-01T00:0{roll.randint(6, 9)}:30Z"
                condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
                pod["status"]["conditions"] = [condition]
        reported = [
            {
                "namespace": pod["metadata"]["namespace"],
                "name": name(pod),
                "podUsage": {"resources": self._use(roll.randint(0, 900))},
            }
            for pod in there
            if self._chance(0.7)
        ]
        status: Body = {"updateTime": f"2026-01-01T00:0{roll.choice('68999')}:00Z"}
        if self._chance(0.9):
            status["nodeMetric"] = {"nodeUsage": {"resources": self._use(roll.randint(0, 4000))}}
            status["podsMetric"] = reported
        return {"kind": "NodeMetric", "metadata": {"name": name(node)}, "status": status}

    def _use(self, cpu: int) -> Body:
        return {"cpu": f"{cpu}m", "memory": f"{self._random.randint(50, 3000)}Mi"}

    def _topologies(self, nodes: list[Body], pods: list[Body]) -> list[Body]:
        roll = self._random
        topologies = []
        for node in nodes:
            if self._chance(0.6):
                node["metadata"]["labels"][numa.POLICY] = roll.choice(POLICIES)
            if self._chance(0.3):
                node["metadata"]["labels"][numa.STRATEGY] = "MostAllocated"
            if self._chance(0.85):
                topologies.append(self._topology(node, roll.randint(1, 4)))
                self._give(node, pods, len(topologies[-1]["zones"]))
        for pod in pods:
            if "nodeName" not in pod["spec"] and self._chance(0.4):
                spec = {"numaTopologyPolicy": roll.choice(POLICIES)}
                if self._chance(0.5):
                    spec["singleNUMANodeExclusive"] = roll.choice(("Required", "Preferred"))
                self._note(pod, numa.SPEC, spec)
        return topologies

    @staticmethod
    def _note(body: Body, key: str, value: Body) -> None:
        body["metadata"].setdefault("annotations", {})[key] = json.dumps(value)

    def _topology(self, node: Body, count: int) -> Body:
        roll = self._random
        detail = [
            {"id": at, "core": at // 2, "socket": at // 4, "node": at // 4}
            for at in range(4 * count)
        ]
        zones = [
            {
                "type": "Node",
                "name": f"node-{number}",
                "resources": [
                    {"name": "cpu", "allocatable": roll.choice(("1", "2", "4"))},
                    {"name": "memory", "allocatable": roll.choice(("2Gi", "4Gi", "8Gi"))},
                ],
            }
            for number in range(count)
        ]
        notes = {"node.koordinator.sh/cpu-topology": json.dumps({"detail": detail})}
        meta = {"name": name(node), "annotations": notes}
        return {"kind": "NodeResourceTopology", "metadata": meta, "zones": zones}

    def _give(self, node: Body, pods: list[Body], count: int) -> None:
        """Some of those that run have their part of NUMA nodes."""
        roll = self._random
        for pod in pods:
            if pod["spec"].get("nodeName") == name(node) and self._chance(0.5):
                chosen = roll.sample(range(count), roll.randint(1, min(2, count)))
                parts = [
                    {"node": n, "resources": {"cpu": "300m", "memory": "256Mi"}} for n in chosen
                ]
                self._note(pod, numa.STATUS, {"numaNodeResources": parts})
