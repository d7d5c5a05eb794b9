"""kube-scheduler, asked about one pod at a time: its verdict, message, totals and victims.

Rules:
1. A pod that it refused is deleted before the next one comes, so that no event wakes it later.
2. Nothing drives a volume of the fleet's driver but this: whoever waits for a volume gets one.
3. Controllers make the claims of a pod before anybody decides about it: a gate holds it.
4. Of a pod whose ResourceClaim is not there kube-scheduler says nothing: it is looked at again once
   the next pod has its verdict.
5. A pod sleeps on whose victim had an anti-affinity to it by a namespaceSelector: kube-scheduler's
   hint does not resolve that. The nominated node is the verdict then.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.fleet import Fleet
from tests.cluster.fleet_devices import CARD
from tests.cluster.fleet_nodes import HELD
from tests.cluster.fleet_storage import DRIVER
from tests.cluster.fleet_store import (
    CLAIMS,
    MERGE,
    REFUSED,
    VOLUMES,
    FleetStore,
    key_of,
    misses_claim,
)
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

_TOTAL = re.compile(
    rb'"Calculated node\'s final score for pod" pod="([^"]+)" node="([^"]+)" score=(\d+)'
)
_SELECTED = "volume.kubernetes.io/selected-node"
_PODS = "/api/v1/pods"
#: What nobody runs: a controller would make pods of its own, and delete those of the fleet.
CONTROLLERS = "--controllers=*,-replicaset-controller"
#: Of so many pods that were started, one is about to go; one was given other amounts than it says.
_ENDING, _RESIZED = 23, 7
#: Where no plugin of claims has seen the pod, kube-scheduler's own error stands in the place of
#: what preemption would say. Ours says what preemption says.
_QUIRK = ". not found"
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
    #: Every other object, as it was before.
    world: list[Body] = field(default_factory=list)
    #: Nothing is said about the pod, and it has no node.
    silent: bool = False


def same_words(theirs: str, ours: str) -> bool:
    """Whether both say the same of a pod that no node takes."""
    if theirs.endswith(_QUIRK):
        theirs, ours = theirs.removesuffix(_QUIRK), ours.partition(". no new claims")[0]
    return theirs == ours


def configuration(folder: Path, **more: object) -> list[str]:
    """Flags: every node is scored, and every score is told; ``more`` fields of its file."""
    file = folder / "scheduler.json"
    client = {"kubeconfig": str(folder / "kube-scheduler.kubeconfig"), "qps": 500, "burst": 500}
    body = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": 100,
        "leaderElection": {"leaderElect": False},
        "clientConnection": client,
        **more,
    }
    file.write_text(json.dumps(body))
    # Only what the scheduling of a pod says: all else at this verbosity is nine tenths of the time.
    return ["--vmodule=schedule_one=10", f"--config={file}"]


class KubeScheduler:
    """The one of a lab's cluster, for one fleet: what the fleet before left is deleted first."""

    def __init__(self, lab: Any) -> None:
        self.admin = k8s_lab.Admin(lab)
        self._store = FleetStore(self.admin)
        self._log = Path(lab.folder, "log", "kube-scheduler.log")
        self._read, self._started = self._log.stat().st_size, 0
        self._changes = k8s_lab.Changes(lab, _PODS, CLAIMS)
        #: Every pod that is bound, by namespace and name; every one that waits nominated.
        self.bound: dict[str, Body] = {}
        self._promised: dict[str, Body] = {}
        #: The path of the pod that nothing was said about.
        self._silent: list[str] = []

    def close(self) -> None:
        """Hang up."""
        self._changes.close()
        self.admin.close()

    def furnish(self, fleet: Fleet, count: int) -> None:
        """Everything of the fleet that is there before its first pod is decided about."""
        self._store.create(fleet.objects(count))
        self._store.hollow_nodes(fleet.nodes(count))
        for pod in fleet.placed(count):
            space = self._store.own(pod)
            status, created = self.admin.ask("POST", space, pod)
            if status < REFUSED:
                self._start(f"{space}/{pod['metadata']['name']}", created)
        for node, pods in fleet.promised(count).items():
            for pod in pods:
                self._promise(pod, node)
        self._store.count(self.bound.values())

    def decide(self, pod: Body) -> Verdict | None:
        """Its verdict; nothing where the server does not take the pod."""
        space = self._store.own(pod)
        world = self._known()
        status, created = self.admin.ask("POST", space, pod)
        if status >= REFUSED:
            return None
        path = f"{space}/{pod['metadata']['name']}"
        if pod["spec"].keys() & {"volumes", "resourceClaims"} or CARD in json.dumps(pod):
            self._store.forget_claims()
        if "schedulingGates" in pod["spec"]:
            is_complete = functools.partial(self._store.is_complete, path)
            deadline.until(is_complete, f"the claims of {path}")
            world = self._known()
            self._store.forget_claims()
            created = self._admit(path)
        if misses_claim(created, world):
            self._silent.append(path)
            return Verdict(created, world=world, silent=True)
        before = self.bound.keys() | ()
        decided = self._decided(created["metadata"]["uid"], path)
        totals = self._totals(key_of(created))
        node = decided["spec"].get("nodeName", "")
        nominated = decided["status"].get("nominatedNodeName", "")
        while self._silent:
            silent = self.admin.need("DELETE", self._silent.pop())
            assert "nodeName" not in silent["spec"], silent
            assert _is_undecided(silent), silent
        if node:
            self._start(path, decided)
            self._store.count(self.bound.values())
            victims = frozenset(before - self.bound.keys())
            return Verdict(created, node, "", totals, victims, world)
        self.admin.need("DELETE", path)
        if nominated:
            victims = frozenset(before - self.bound.keys())
            return Verdict(created, nominated, "", {}, victims, world)
        (condition,) = decided["status"]["conditions"]
        return Verdict(created, "", condition["message"], totals, world=world)

    def _known(self) -> list[Body]:
        return [*self._store.world(), *self.bound.values(), *self._promised.values()]

    def _promise(self, pod: Body, node: str) -> None:
        """A pod that nothing takes, nominated for a node."""
        space, path = self._store.own(pod), f"{self._store.own(pod)}/{pod['metadata']['name']}"
        pod["spec"]["schedulingGates"] = [{"name": HELD}]
        status, _ = self.admin.ask("POST", space, pod)
        if status < REFUSED:
            nominated = {"status": {"nominatedNodeName": node}}
            self.admin.need("PATCH", f"{path}/status", nominated, MERGE)
            created = self._admit(path)
            self._promised[key_of(created)] = created
            self._decided(created["metadata"]["uid"], path, promised=True)

    def _admit(self, path: str) -> Any:
        return self.admin.need("PATCH", path, {"spec": {"schedulingGates": None}}, MERGE)

    def _start(self, path: str, pod: Body) -> None:
        """As a kubelet: of equal pods the one that started last goes first; most get ready."""
        self._started += 1
        moment = f"2026-01-01T00:{self._started // 60:02}:{self._started % 60:02}Z"
        ready = {"type": "Ready", "status": str(self._started % 3 > 0)}
        conditions = [*pod["status"].get("conditions", ()), ready]
        status = {"phase": "Running", "startTime": moment, "conditions": conditions}
        if self._started % _RESIZED == 0:
            status["containerStatuses"] = [_resized(pod["spec"]["containers"][0])]
        started = self.admin.need("PATCH", f"{path}/status", {"status": status}, MERGE)
        if self._started % _ENDING == 0:
            started = self.admin.need("DELETE", path, {"gracePeriodSeconds": 86400})
        self.bound[key_of(pod)] = started

    def _decided(self, uid: str, path: str, *, promised: bool = False) -> Body:
        """The pod as it is once it is bound, or refused without anybody who leaves for it.

        One that was nominated before needs no room made: its refusal is waited for. One whose
        victims are gone may sleep on: rule 5.
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
            waits = _is_undecided(body)
            if body["status"].get("nominatedNodeName") and not promised:
                nominated, waits = body, True
            if body["spec"].get("nodeName") or not waits:
                answer: Body = body
                return answer

    def _note(self, change: str, body: Body) -> None:
        if body["kind"] == "PersistentVolumeClaim":
            self._provision(body)
        elif key_of(body) in self._promised:
            self._promised[key_of(body)] = body
        elif change == "DELETED":
            self.bound.pop(key_of(body), None)
        elif body["spec"].get("nodeName"):
            self.bound[key_of(body)] = body

    def _provision(self, claim: Body) -> None:
        selected = claim["metadata"].get("annotations", {}).get(_SELECTED)
        if not selected or claim["spec"].get("volumeName"):
            return
        meta, spec = claim["metadata"], claim["spec"]
        name, space = f"made-for-{meta['name']}", meta["namespace"]
        volume = {
            "metadata": {"name": name},
            "spec": {
                "accessModes": spec["accessModes"],
                "capacity": spec["resources"]["requests"],
                "storageClassName": spec["storageClassName"],
                "csi": {"driver": DRIVER, "volumeHandle": name},
                "claimRef": {"namespace": space, "name": meta["name"], "uid": meta["uid"]},
            },
        }
        self.admin.ask("POST", VOLUMES, volume)

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


def _is_undecided(pod: Body) -> bool:
    """Whether nobody has said anything of a pod but that it was held back."""
    reasons = [own.get("reason", "") for own in pod["status"].get("conditions", ())]
    return reasons in ([], ["SchedulingGated"])


def _resized(container: Body) -> Body:
    """The state of a container that runs with other amounts than are wanted now."""
    amounts = {"cpu": "1700m", "memory": "700Mi"}
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "allocatedResources": amounts,
        "resources": {"requests": {**amounts, "cpu": "900m"}},
    }
