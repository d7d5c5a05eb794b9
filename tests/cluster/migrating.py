"""A cluster in which pods move: a scheduler, a descheduler that can be killed, kubelets' part.

Covers: workloads, jobs, plans, what is left of them. Does not cover: what is claimed of them
(``test_migration``).
"""

from __future__ import annotations

import contextlib
import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from koordlet.model import resources
from koordlet.scheduler.disruption import settings as disruption
from koordlet.scheduler.migration import job
from tests.cluster import write_gate
from tests.cluster.deployed import ACCOUNT, PODS, SPACE, Deployed
from tests.kit import deadline, descheduling, k8s_lab
from tests.oracle.objects import Body

SETS = "/apis/apps/v1/namespaces/default/replicasets"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
GROUP = "/apis/scheduling.koordinator.sh/v1alpha1"
JOBS, RESERVATIONS = f"{GROUP}/podmigrationjobs", f"{GROUP}/reservations"
MERGE = "application/merge-patch+json"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
REPLICAS = 3
PLANS = "/apis/scheduling.koordlet.io/v1alpha1/moveplans"


class Machine:
    """The cluster, a scheduler, a descheduler that can be killed, and what a kubelet would do."""

    def __init__(self, deployed: Deployed, kubeconfig: Path, folder: Path) -> None:
        self.deployed, self.admin = deployed, deployed.admin
        policy, self._limits = folder / "policy.json", folder / "limits.json"
        policy.write_text(json.dumps({
            **descheduling.policy(leaderElection={"leaderElect": False}),
            "kind": "DeschedulerConfiguration",
        }))  # fmt: skip
        self.configure()
        self.words = ["--kubeconfig", str(kubeconfig)]
        self._command = [sys.executable, "-m", "koordlet", "descheduler", *self.words]
        self._command += [
            "--config",
            str(policy),
            "--scheduler-config",
            str(self._limits),
            "--http",
            "127.0.0.1:0",
        ]
        self._log = folder / "descheduler.log"
        self._process: subprocess.Popen[bytes] | None = None
        #: The fewest pods that were up at once, by workload.
        self.fewest: dict[str, int] = {}

    def configure(self, **rescheduling: Any) -> None:
        """What the next descheduler is to do, besides carrying out jobs and plans."""
        limits = {"apiVersion": disruption.API_VERSION, "kind": disruption.KIND, **rescheduling}
        self._limits.write_text(json.dumps(limits))

    def clear(self) -> None:
        """Leave nothing of other tests."""
        for body in self.admin.items(SETS):
            path = f"{SETS}/{body['metadata']['name']}?propagationPolicy=Background"
            self.admin.need("DELETE", path)
        for kind in (PLANS, JOBS, RESERVATIONS, BUDGETS, PODS):
            self.admin.need("DELETE", kind)
        self.fewest.clear()
        self.until(lambda: not self.admin.items(PODS), "no pod is left")

    def start(self, armed: Callable[[Callable[[], None]], None] = lambda _: None) -> None:
        """The descheduler; ``armed`` is given what kills it, before it can write."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        armed(self._process.kill)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def killed_between(
        self,
        *,
        writes: Iterable[int],
        folder: Path,
        counted: str = "",
        over: Callable[[], bool] = lambda: False,
    ) -> Iterator[None]:
        """Lives of the descheduler: each makes so many writes, and is killed at its next.

        ``counted``: the only subresource of which writes count. ``over``: it has no more to write,
        and is alive.
        """
        account, probe = (
            ":koordlet-descheduler",
            (JOBS, job.request(job.PodRef("default", "probe"))),
        )
        with write_gate.serving(self.admin, folder, account, probe) as gate:
            for landed in writes:
                self.start(functools.partial(gate.arm, landed, counted=counted))
                self.until(lambda: gate.closed.is_set() or over(), "it is killed at the next write")
                if not gate.closed.is_set():
                    return
                self.kill()
                yield

    @property
    def log(self) -> str:
        """What it said."""
        return self._log.read_text()

    def tend(self) -> None:
        """What kubelets do: pods that have a node come up, and those that are to go are gone."""
        up: dict[str, int] = {}
        for body in self.admin.items(PODS):
            meta, name = body["metadata"], body["metadata"]["labels"]["app"]
            path = f"{PODS}/{meta['name']}"
            ready = body["status"].get("phase") == "Running"
            if "deletionTimestamp" in meta:
                self.admin.ask("DELETE", f"{path}?gracePeriodSeconds=0")
            elif ready:
                up[name] = up.get(name, 0) + 1
            elif body["spec"].get("nodeName"):
                self.admin.ask("PATCH", f"{path}/status", {"status": READY}, MERGE)
        for name in self.fewest:
            self.fewest[name] = min(self.fewest[name], up.get(name, 0))

    def until(self, good: Callable[[], Any], what: str) -> Any:
        """Tend the pods until something is so."""

        def attempt() -> Any:
            self.tend()
            return good()

        try:
            return deadline.until(attempt, what, seconds=120)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{json.dumps(self.state(), indent=1)}") from error

    def state(self) -> dict[str, Any]:
        """How far everything is, for whoever reads a failure."""
        kinds = {"plans": PLANS, "jobs": JOBS, "reservations": RESERVATIONS}
        known = {
            kind: {body["metadata"]["name"]: body.get("status") for body in self.admin.items(path)}
            for kind, path in kinds.items()
        }
        pods = {
            body["metadata"]["name"]: [
                body["spec"].get("nodeName"),
                body["metadata"].get("annotations"),
                body["status"].get("conditions"),
            ]
            for body in self.admin.items(PODS)
        }
        return {**known, "pods": pods}

    def workload(
        self,
        name: str,
        annotations: dict[str, str] | None = None,
        replicas: int = REPLICAS,
        node: str = "",
    ) -> str:
        """A ReplicaSet whose pods are up; one of them. ``annotations``: of its pods.

        ``node``: all of them are there.
        """
        if node:
            self.cordon(node, others=True)
        template = {
            "metadata": {"labels": {"app": name}, "annotations": annotations or {}},
            "spec": {
                "schedulerName": ACCOUNT,
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
                ],
            },
        }
        spec = {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template,
        }  # fmt: skip
        self.admin.need("POST", SETS, {"metadata": {"name": name}, "spec": spec})

        def up() -> list[str]:
            listing = self.admin.items(f"{PODS}?labelSelector=app%3D{name}")
            several = [b["metadata"]["name"] for b in listing if b["status"]["phase"] == "Running"]
            return several if len(several) == replicas else []

        first = self.until(up, f"{name} is up")[0]
        if node:
            self.cordon(node, others=False)
        self.fewest[name] = replicas
        return str(first)

    def move(self, pod: str, *, gang: bool = False) -> str:
        """A job of a pod, as a person creates it; its name. ``gang``: all of its gang move."""
        ref = job.PodRef("default", pod)
        body = job.request(ref, ttl_seconds=300, reason="a test", gang=gang)
        return str(self.admin.need("POST", JOBS, body)["metadata"]["name"])

    def kubectl(self, *words: str, documents: Sequence[Body] = ()) -> str:
        """What the administrator's kubectl prints."""
        return k8s_lab.kubectl(self.deployed.lab, *words, documents=documents)

    def refused(self, pod: str, name: str) -> None:
        """Apply a job of a pod as a file of the documentation, and wait until it is refused."""
        spec = {"podRef": {"namespace": "default", "name": pod}, "mode": "ReservationFirst"}
        group = GROUP.removeprefix("/apis/")
        body = {"apiVersion": group, "kind": "PodMigrationJob", "metadata": {"name": name}}
        self.kubectl("apply", "-f", "-", documents=[{**body, "spec": spec}])
        self.until(lambda: self.job(name).get("reason") == "FailedEvict", "it is refused")
        assert len(self.held()) == 1

    def job(self, name: str) -> Body:
        """The status of a job."""
        status: Body = self.admin.need("GET", f"{JOBS}/{name}").get("status", {})
        return status

    def jobs(self, leader: str) -> list[str]:
        """The job that moves a gang, and those that it made."""
        names = [body["metadata"]["name"] for body in self.admin.items(JOBS)]
        return [name for name in names if name == leader or name.startswith(f"{leader}.")]

    def nodes(self, name: str) -> dict[str, str]:
        """The nodes of a workload's pods that stay, by pod."""
        return {
            body["metadata"]["name"]: body["spec"].get("nodeName", "")
            for body in self.admin.items(f"{PODS}?labelSelector=app%3D{name}")
            if "deletionTimestamp" not in body["metadata"]
        }

    def cordon(self, node: str, *, others: bool) -> None:
        """Let pods come to one node alone, or to all."""
        for body in self.admin.items("/api/v1/nodes"):
            name = body["metadata"]["name"]
            spec = {"unschedulable": True if others and name != node else None}
            self.admin.need("PATCH", f"/api/v1/nodes/{name}", {"spec": spec}, MERGE)

    def free(self, node: str) -> int:
        """The thousandths of a CPU that nobody has on a node."""
        body = self.admin.need("GET", f"/api/v1/nodes/{node}")
        asked = [
            container["resources"]["requests"]["cpu"]
            for pod in self.admin.items(PODS)
            if pod["spec"].get("nodeName") == node
            for container in pod["spec"]["containers"]
        ]
        whole = resources.amount("cpu", body["status"]["allocatable"]["cpu"])
        return whole - sum(resources.amount("cpu", each) for each in asked)

    def waiting(self, name: str, node: str, milli: int) -> None:
        """A pod that fits nowhere but on one node, and there not now."""
        labels = {"app": name}
        container = {
            "name": "c", "image": "i", "resources": {"requests": {"cpu": f"{milli}m"}},
        }  # fmt: skip
        spec = {
            "schedulerName": ACCOUNT, "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
        }  # fmt: skip
        self.admin.need("POST", PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})

        def refused() -> bool:
            status = self.admin.need("GET", f"{PODS}/{name}")["status"]
            return any(each["reason"] == "Unschedulable" for each in status.get("conditions", ()))

        self.until(refused, f"{name} fits nowhere")

    def plan(self, name: str) -> Body:
        """The status of a plan."""
        status: Body = self.admin.need("GET", f"{PLANS}/{name}").get("status", {})
        return status

    def over(self, name: str) -> bool:
        """Whether a job is over."""
        return self.job(name).get("phase") in {"Succeeded", "Failed", "Aborted"}

    def held(self) -> list[Body]:
        """The reservations that still hold room for a job."""
        return [
            body for body in self.admin.items(RESERVATIONS)
            if body.get("status", {}).get("phase") not in {"Succeeded", "Failed"}
        ]  # fmt: skip


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Machine]:
    """The manifests, three hollow nodes, a scheduler and the account of the descheduler."""
    with k8s_lab.cluster(folder / "k8s", nodes=3, audit=True) as lab:
        deployed = Deployed(lab, folder)
        made: Machine | None = None
        try:
            deployed.install(nodes=3)
            deployed.install_descheduler()
            deployed.start("scheduler")
            deployed.leader()
            account = lab.service_account(SPACE, "koordlet-descheduler")
            made = Machine(deployed, deployed.credentials("own", account), folder)
            yield made
        finally:
            if made is not None:
                made.kill()
            deployed.close()
