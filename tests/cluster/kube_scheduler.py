"""kube-scheduler, asked about one pod at a time: its verdict, message, totals and victims.

Rules:
1. A pod that it refused is deleted before the next one comes, so that no event wakes it later.
2. Nothing drives a volume of the fleet's driver but this: whoever waits for a volume gets one.
3. A pod sleeps on whose victim had an anti-affinity to it by a namespaceSelector: kube-scheduler's
   hint does not resolve that. The nominated node is the verdict then.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.fleet_devices import CARD
from tests.cluster.fleet_storage import DRIVER
from tests.kit import deadline, k8s_lab
from tests.oracle.clusters import SPACES
from tests.oracle.objects import Body, selects

_TOTAL = re.compile(
    rb'"Calculated node\'s final score for pod" pod="([^"]+)" node="([^"]+)" score=(\d+)'
)
_SELECTED = "volume.kubernetes.io/selected-node"
_MERGE = "application/merge-patch+json"
_PODS = "/api/v1/pods"
_CLAIMS = "/api/v1/persistentvolumeclaims"
_DEVICES = "/apis/resource.k8s.io/v1"
_VOLUMES = "/api/v1/persistentvolumes"
#: Lists that no pod changes.
_FIXED = (
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/services",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    f"{_DEVICES}/deviceclasses",
    f"{_DEVICES}/resourceslices",
)
#: Lists that are emptied for the next fleet; pods first, as claims stay while a pod uses them.
_LEFT = (
    *(f"/api/v1/namespaces/{space}/pods" for space in SPACES),
    *(f"/api/v1/namespaces/{space}/services" for space in SPACES),
    *(f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets" for space in SPACES),
    "/api/v1/namespaces/d/persistentvolumeclaims",
    _VOLUMES,
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/namespaces/d/csistoragecapacities",
    *(f"{_DEVICES}/namespaces/{space}/resourceclaims" for space in SPACES),
    f"{_DEVICES}/resourceslices",
    f"{_DEVICES}/deviceclasses",
    "/api/v1/nodes",
)


#: Seconds in which a pod that has made room wakes, or will not.
_PATIENCE = 10.0


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
    # Only what the scheduling of a pod says: all else at this verbosity is nine tenths of the time.
    return ["--vmodule=schedule_one=10", f"--config={file}"]


class KubeScheduler:
    """The one of a lab's cluster, for one fleet: what the fleet before left is deleted first."""

    def __init__(self, lab: Any) -> None:
        self.admin = k8s_lab.Admin(lab)
        for path in _LEFT:
            self.admin.need("DELETE", path)
        deadline.until(self._is_empty, "the objects of the fleet before are gone")
        self._log = Path(lab.folder, "log", "kube-scheduler.log")
        self._read, self._started = self._log.stat().st_size, 0
        self._changes = k8s_lab.Changes(lab, _PODS, _CLAIMS)
        self._fixed: list[Body] = []
        self._claimed: list[Body] = []
        #: By path.
        self._budgets: dict[str, Body] = {}
        self._looks = itertools.count()
        #: Every pod that is bound, by namespace and name.
        self.bound: dict[str, Body] = {}

    def close(self) -> None:
        """Hang up."""
        self._changes.close()
        self.admin.close()

    def decide(self, pod: Body) -> Verdict | None:
        """Its verdict; nothing where the server does not take the pod."""
        space = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        status, created = self.admin.ask("POST", space, pod)
        if status >= 400:
            return None
        if pod["spec"].keys() & {"volumes", "resourceClaims"} or CARD in json.dumps(pod):
            self._claimed = []
        before = self.bound.keys() | ()
        path = f"{space}/{pod['metadata']['name']}"
        decided = self._decided(created["metadata"]["uid"], path)
        totals = self._totals(_key(created))
        node = decided["spec"].get("nodeName", "")
        nominated = decided["status"].get("nominatedNodeName", "")
        if node:
            self._start(path, decided)
            for budget in self._budgets:
                is_counted = functools.partial(self._is_counted, budget)
                deadline.until(is_counted, f"{budget} counts its pods")
            return Verdict(created, node, "", totals, frozenset(before - self.bound.keys()))
        self.admin.need("DELETE", path)
        if nominated:
            return Verdict(created, nominated, "", {}, frozenset(before - self.bound.keys()))
        (condition,) = decided["status"]["conditions"]
        return Verdict(created, "", condition["message"], totals)

    def _start(self, path: str, pod: Body) -> None:
        """As a kubelet: of equal pods the one that started last goes first; most get ready."""
        self._started += 1
        moment = f"2026-01-01T00:{self._started // 60:02}:{self._started % 60:02}Z"
        ready = {"type": "Ready", "status": str(self._started % 3 > 0)}
        conditions = [*pod["status"]["conditions"], ready]
        status = {"phase": "Running", "startTime": moment, "conditions": conditions}
        started = self.admin.need("PATCH", f"{path}/status", {"status": status}, _MERGE)
        self.bound[_key(pod)] = started

    def world(self) -> list[Body]:
        """Every object that decides, as the server has it; read anew where a pod may change it."""
        self._fixed = self._fixed or self._listed(*_FIXED)
        self._claimed = self._claimed or self._listed(
            _VOLUMES, _CLAIMS, f"{_DEVICES}/resourceclaims"
        )
        return [*self._fixed, *self._claimed, *self._budgets.values()]

    def create(self, objects: dict[str, list[Body]]) -> None:
        """Create these, by the path that makes them."""
        for path, bodies in objects.items():
            for body in bodies:
                created = self.admin.need("POST", path, body)
                if created["kind"] == "PodDisruptionBudget":
                    self._budgets[f"{path}/{created['metadata']['name']}"] = created

    def _is_counted(self, path: str) -> bool:
        """Whether the disruption controller knows which of the budget's pods are ready.

        Of several budgets of a pod that changed it looks at one, and at each that was patched.
        """
        patch = {"metadata": {"annotations": {"look": str(next(self._looks))}}}
        budget = self._budgets[path] = self.admin.need("PATCH", path, patch, _MERGE)
        space, selector = budget["metadata"]["namespace"], budget["spec"]["selector"]
        labels = [
            pod["metadata"].get("labels", {})
            for pod in self.bound.values()
            if pod["metadata"]["namespace"] == space and _is_ready(pod)
        ]
        ready = sum(selects(selector, own) for own in labels)
        status: Body = budget.get("status", {})
        return "observedGeneration" in status and bool(status["currentHealthy"] == ready)

    def _is_empty(self) -> bool:
        return not self._listed(*_LEFT)

    def _listed(self, *paths: str) -> list[Body]:
        return [body for path in paths for body in self.admin.items(path)]

    def _decided(self, uid: str, path: str) -> Body:
        """The pod as it is once it is bound, or refused without anybody who leaves for it.

        One whose victims are gone may sleep on: rule 3.
        """
        nominated: Body = {}
        while True:
            what, seconds = f"a verdict about {path}", _PATIENCE if nominated else k8s_lab.PATIENCE
            try:
                change, body = self._changes.next(what, seconds)
            except TimeoutError:
                if nominated:
                    return nominated
                raise
            self._note(change, body)
            if body["metadata"]["uid"] != uid:
                continue
            waits = not body["status"].get("conditions")
            if body["status"].get("nominatedNodeName"):
                nominated, waits = body, True
            if body["spec"].get("nodeName") or not waits:
                answer: Body = body
                return answer

    def _note(self, change: str, body: Body) -> None:
        if body["kind"] == "PersistentVolumeClaim":
            self._provision(body)
        elif change == "DELETED":
            self.bound.pop(_key(body), None)
        elif body["spec"].get("nodeName"):
            self.bound[_key(body)] = body

    def _provision(self, claim: Body) -> None:
        selected = claim["metadata"].get("annotations", {}).get(_SELECTED)
        if not selected or claim["spec"].get("volumeName"):
            return
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


def _is_ready(pod: Body) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any((own["type"], own["status"]) == ("Ready", "True") for own in conditions)
