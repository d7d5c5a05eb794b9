"""kube-scheduler, asked about one pod at a time: its verdict, message, totals and victims.

Rules:
1. A pod that it refused is deleted before the next one comes, so that no event wakes it later.
2. Nothing drives a volume of the fleet's driver but this: whoever waits for a volume gets one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.fleet import DRIVER
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

_TOTAL = re.compile(
    rb'"Calculated node\'s final score for pod" pod="([^"]+)" node="([^"]+)" score=(\d+)'
)
_SELECTED = "volume.kubernetes.io/selected-node"
_CLAIMS = "/api/v1/namespaces/d/persistentvolumeclaims"
_VOLUMES = "/api/v1/persistentvolumes"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one pod."""

    pod: Body
    node: str = ""
    message: str = ""
    #: Of each feasible node; empty where there was no choice.
    totals: dict[str, int] = field(default_factory=dict)
    #: Who was deleted for it.
    victims: frozenset[str] = frozenset()


def configuration(folder: Path) -> list[str]:
    """Flags: every node is scored, and every score is told."""
    file = folder / "scheduler.json"
    client = {"kubeconfig": str(folder / "kube-scheduler.kubeconfig"), "qps": 500, "burst": 500}
    body = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "leaderElection": {"leaderElect": False},
        "clientConnection": client,
    }
    file.write_text(json.dumps(body))
    return ["-v=10", f"--config={file}"]


class KubeScheduler:
    """The one of a lab's cluster."""

    def __init__(self, lab: Any) -> None:
        self.admin = k8s_lab.Admin(lab)
        self._log = Path(lab.folder, "log", "kube-scheduler.log")
        self._read = self._started = 0
        #: Every pod that is bound, by namespace and name.
        self.bound: dict[str, Body] = {}

    def decide(self, pod: Body) -> Verdict | None:
        """Its verdict; nothing where the server does not take the pod."""
        space = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        status, created = self.admin.ask("POST", space, pod)
        if status >= 400:
            return None
        path = f"{space}/{pod['metadata']['name']}"
        first = deadline.until(lambda: self._answered(path), f"a verdict about {path}")
        last = first
        if first.get("status", {}).get("nominatedNodeName"):
            last = deadline.until(lambda: self._is_bound(path), f"{path} is bound")
        totals = self._totals(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
        node = last["spec"].get("nodeName", "")
        victims: frozenset[str] = frozenset()
        if node:
            # As a kubelet would: of equal pods the one that started last goes first.
            self._started += 1
            moment = f"2026-01-01T00:{self._started // 60:02}:{self._started % 60:02}Z"
            patch = {"status": {"phase": "Running", "startTime": moment}}
            self.admin.need("PATCH", f"{path}/status", patch, "application/merge-patch+json")
            now = {_key(body): body for body in self._pods() if body["spec"].get("nodeName")}
            victims = frozenset(self.bound.keys() - now.keys())
            self.bound = now
            return Verdict(created, node, "", totals, victims)
        self.admin.need("DELETE", path)
        (condition,) = last["status"]["conditions"]
        return Verdict(created, "", condition["message"], totals)

    def world(self) -> list[Body]:
        """Every object that decides, as the server has it."""
        paths = (
            "/api/v1/nodes",
            "/api/v1/namespaces",
            "/api/v1/services",
            "/apis/policy/v1/poddisruptionbudgets",
            "/apis/storage.k8s.io/v1/storageclasses",
            "/apis/storage.k8s.io/v1/csinodes",
            _VOLUMES,
            "/api/v1/persistentvolumeclaims",
        )
        return [body for path in paths for body in self.admin.items(path)]

    def _pods(self) -> list[Body]:
        return self.admin.items("/api/v1/pods")

    def _answered(self, path: str) -> Body | None:
        pod: Body = self.admin.need("GET", path)
        if pod["spec"].get("nodeName") or pod.get("status", {}).get("conditions"):
            return pod
        self._provision()
        return None

    def _is_bound(self, path: str) -> Body | None:
        self._provision()
        pod: Body = self.admin.need("GET", path)
        return pod if pod["spec"].get("nodeName") else None

    def _provision(self) -> None:
        for claim in self.admin.items(_CLAIMS):
            selected = claim["metadata"].get("annotations", {}).get(_SELECTED)
            if not selected or claim["spec"].get("volumeName"):
                continue
            meta, spec = claim["metadata"], claim["spec"]
            name = f"made-for-{meta['name']}"
            volume = {
                "metadata": {"name": name},
                "spec": {
                    "accessModes": spec["accessModes"],
                    "capacity": spec["resources"]["requests"],
                    "storageClassName": spec["storageClassName"],
                    "csi": {"driver": DRIVER, "volumeHandle": name},
                    "claimRef": {"namespace": "d", "name": meta["name"], "uid": meta["uid"]},
                },
            }
            self.admin.ask("POST", _VOLUMES, volume)

    def _totals(self, pod: str) -> dict[str, int]:
        with self._log.open("rb") as file:
            file.seek(self._read)
            text = file.read()
            self._read = file.tell()
        return {
            node.decode(): int(total)
            for name, node, total in _TOTAL.findall(text)
            if name.decode() == pod
        }


def _key(body: Body) -> str:
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"
