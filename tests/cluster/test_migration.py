"""Migration jobs on a real API server, with the accounts and roles of the manifests.

Covers: a whole life beside ReplicaSets of a real controller, a budget that refuses, kill -9 of the
descheduler at many moments, plans of several moves, a drain. Does not cover: each step
(``tests.scheduler``).
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.model import resources
from koordlet.scheduler.migration import job
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.rescheduling import move_plan
from tests.cluster import write_gate
from tests.cluster.deployed import ACCOUNT, PODS, SPACE, Deployed
from tests.deploy.documents import DEPLOY
from tests.deploy.test_overlays import built
from tests.kit import deadline, descheduling, k8s_lab
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

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
        policy = folder / "policy.json"
        policy.write_text(json.dumps({
            **descheduling.policy(leaderElection={"leaderElect": False}),
            "kind": "DeschedulerConfiguration",
        }))  # fmt: skip
        self.words = ["--kubeconfig", str(kubeconfig)]
        self._command = [sys.executable, "-m", "koordlet", "descheduler", *self.words]
        self._command += ["--config", str(policy), "--http", "127.0.0.1:0"]
        self._log = folder / "descheduler.log"
        self._process: subprocess.Popen[bytes] | None = None
        #: The fewest pods that were up at once, by workload.
        self.fewest: dict[str, int] = {}

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

    def killed_between(self, *, writes: tuple[int, ...], folder: Path) -> Iterator[None]:
        """Lives of the descheduler: each makes so many writes, and is killed at its next."""
        account, probe = (
            ":koordlet-descheduler",
            (JOBS, job.request(job.PodRef("default", "probe"))),
        )
        with write_gate.serving(self.admin, folder, account, probe) as gate:
            for landed in writes:
                self.start(functools.partial(gate.arm, landed))
                self.until(gate.closed.is_set, "it is killed at the next write")
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

    def workload(self, name: str) -> str:
        """A ReplicaSet whose pods are up; one of them."""
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "schedulerName": ACCOUNT,
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
                ],
            },
        }
        spec = {
            "replicas": REPLICAS, "selector": {"matchLabels": {"app": name}}, "template": template,
        }  # fmt: skip
        self.admin.need("POST", SETS, {"metadata": {"name": name}, "spec": spec})

        def up() -> list[str]:
            listing = self.admin.items(f"{PODS}?labelSelector=app%3D{name}")
            several = [b["metadata"]["name"] for b in listing if b["status"]["phase"] == "Running"]
            return several if len(several) == REPLICAS else []

        first = self.until(up, f"{name} is up")[0]
        self.fewest[name] = REPLICAS
        return str(first)

    def move(self, pod: str) -> str:
        """A job of a pod, as a person creates it; its name."""
        body = job.request(job.PodRef("default", pod), ttl_seconds=300, reason="a test")
        return str(self.admin.need("POST", JOBS, body)["metadata"]["name"])

    def job(self, name: str) -> Body:
        """The status of a job."""
        status: Body = self.admin.need("GET", f"{JOBS}/{name}").get("status", {})
        return status

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


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The manifests, three hollow nodes, a scheduler and the account of the descheduler."""
    folder = tmp_path_factory.mktemp("migration")
    with k8s_lab.cluster(folder / "k8s", nodes=3, audit=True) as lab:
        cluster = Deployed(lab, folder)
        made: Machine | None = None
        try:
            cluster.install(nodes=3)
            for document in built(DEPLOY / "descheduler"):
                if document["kind"] not in {"Deployment", "Namespace"}:
                    status, answer = k8s_lab.strict(cluster.admin, document, dry="")
                    assert status in (200, 201), answer
            cluster.start("scheduler")
            cluster.leader()
            account = lab.service_account(SPACE, "koordlet-descheduler")
            made = Machine(cluster, cluster.credentials("own", account), folder)
            yield made
        finally:
            if made is not None:
                made.kill()
            cluster.close()


def test_a_replacement_is_up_where_room_was_held_and_the_role_is_enough(machine: Machine) -> None:
    """At no moment are fewer than all pods but one up; nothing that was asked for was denied."""
    pod = machine.workload("life")
    before = machine.admin.need("GET", f"{PODS}/{pod}")["spec"]["nodeName"]
    machine.start()
    try:
        name = machine.move(pod)
        machine.until(lambda: machine.over(name), "the job is over")
    finally:
        machine.kill()
    status = machine.job(name)
    assert (status["phase"], status["status"]) == ("Succeeded", "Complete"), status
    after = machine.admin.need("GET", f"{PODS}/{status['podRef']['name']}")["spec"]["nodeName"]
    assert status["nodeName"] == after != before
    assert machine.fewest["life"] >= REPLICAS - 1
    events = [each for each in machine.deployed.audit() if each["stage"] == "ResponseComplete"]
    denied = [each for each in events if each["responseStatus"]["code"] == 403]
    assert denied == []
    shown = subprocess.run(
        [sys.executable, "-m", "koordlet", "describe", "migration", name, *machine.words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Succeeded" in shown.stdout


def test_a_budget_is_never_broken_and_waited_for_with_the_room_held(machine: Machine) -> None:
    """Nobody may go: the job says so and waits; the budget opens, and it goes on."""
    pod = machine.workload("guarded")
    selector = {"matchLabels": {"app": "guarded"}}
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": REPLICAS, "selector": selector}}
    machine.admin.need("POST", BUDGETS, budget)
    machine.start()
    try:
        name = machine.move(pod)

        def refused() -> bool:
            return machine.job(name).get("reason") == "FailedEvict"

        machine.until(refused, "the eviction is refused")
        assert machine.job(name)["message"].startswith("PDB: ")
        assert len(machine.held()) == 1
        assert machine.fewest["guarded"] == REPLICAS
        machine.admin.need("PATCH", f"{BUDGETS}/b", {"spec": {"minAvailable": REPLICAS - 1}}, MERGE)
        machine.until(lambda: machine.over(name), "the job is over")
    finally:
        machine.kill()
    assert machine.job(name)["phase"] == "Succeeded", machine.job(name)
    assert machine.fewest["guarded"] == REPLICAS - 1
    assert machine.held() == []


def test_killed_again_and_again_it_ends_right(machine: Machine, tmp_path: Path) -> None:
    """Between two writes, at many of them: one eviction, one reservation, nothing left behind."""
    jobs = [machine.move(machine.workload(f"kill-{number}")) for number in range(2)]

    def over() -> bool:
        return all(map(machine.over, jobs))

    # Of sixteen writes at least these land; at each of the next a process ends.
    for _ in machine.killed_between(writes=(3, 4, 1, 3, 2), folder=tmp_path):
        assert not over()
    machine.start()
    try:
        machine.until(over, "the jobs are over")
    finally:
        machine.kill()
    for number, name in enumerate(jobs):
        assert machine.job(name)["phase"] == "Succeeded", machine.job(name)
        assert machine.fewest[f"kill-{number}"] >= REPLICAS - 1
        uid = machine.admin.need("GET", f"{JOBS}/{name}")["metadata"]["uid"]
        made = [b for b in machine.admin.items(RESERVATIONS) if b["metadata"]["name"] == uid]
        assert len(made) == 1
    assert machine.held() == []


@pytest.mark.soak
def test_a_plan_of_three_moves_killed_again_and_again_makes_room_once(
    machine: Machine, tmp_path: Path
) -> None:
    """Room for all before anybody leaves, each leaves once, and the pod has what they freed."""
    node = "n0"
    machine.cordon(node, others=True)
    machine.workload("plan")
    machine.cordon(node, others=False)
    # Each pod has 100m: two of them are not enough.
    machine.waiting("big", node, machine.free(node) + 250)
    body = move_plan.request("p", pod=PodRef("default", "big"), ttl_seconds=600)
    machine.admin.need("POST", PLANS, body)

    def over() -> bool:
        return machine.plan("p").get("phase") in {"Done", "Failed", "Aborted"}

    # Fewer than a plan of three makes: at each of the next a process ends.
    for _ in machine.killed_between(writes=(2, 4, 7, 5, 9), folder=tmp_path):
        assert not over()
    machine.start()
    try:
        machine.until(over, "the plan is over")
        machine.until(lambda: machine.held() == [], "nothing is held")
    finally:
        machine.kill()
    status = machine.plan("p")
    assert (status["phase"], status["message"]) == ("Done", f"default/big has node {node}"), status
    assert [move["phase"] for move in status["moves"]] == ["Done"] * 3
    jobs = {
        each["metadata"]["name"]: each for each in machine.admin.items(JOBS)
        if each["metadata"]["annotations"].get(job.PLAN)
    }  # fmt: skip
    assert sorted(jobs) == sorted(move["job"] for move in status["moves"])
    assert all(each["status"]["phase"] == "Succeeded" for each in jobs.values())
    # One at a time: no workload had fewer than all but one.
    for workload in machine.fewest:
        assert machine.fewest[workload] >= REPLICAS - 1
    denied = [
        each for each in machine.deployed.audit()
        if each["stage"] == "ResponseComplete" and each["responseStatus"]["code"] == 403
        and write_gate.NAME not in each["responseStatus"].get("message", "")
    ]  # fmt: skip
    assert denied == []


def test_a_drain_waits_for_a_budget_empties_the_node_and_its_undo_gives_it_back(
    machine: Machine,
) -> None:
    """Cordoned; room first; the budget's refusal is a line of the progress; no descheduler runs."""
    pod = machine.workload("drained")
    node = machine.admin.need("GET", f"{PODS}/{pod}")["spec"]["nodeName"]
    selector = {"matchLabels": {"app": "drained"}}
    spec = {"minAvailable": REPLICAS, "selector": selector}
    machine.admin.need("POST", BUDGETS, {"metadata": {"name": "drained"}, "spec": spec})
    command = [sys.executable, "-m", "koordlet", "drain", node]
    command += ["--kubeconfig", str(machine.deployed.lab.kubeconfig)]
    progress: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as drain:

        def follow() -> None:
            assert drain.stdout is not None
            for line in drain.stdout:
                progress.append(line)  # noqa: PERF402 -- each is looked at as it comes

        reader = threading.Thread(target=follow)
        reader.start()
        try:

            def refused() -> bool:
                return any(f" default/{pod} " in line and "PDB: " in line for line in progress)

            machine.until(refused, "the budget's refusal is shown")
            assert machine.fewest["drained"] == REPLICAS
            assert machine.admin.need("GET", f"/api/v1/nodes/{node}")["spec"]["unschedulable"]
            opened = {"spec": {"minAvailable": REPLICAS - 1}}
            machine.admin.need("PATCH", f"{BUDGETS}/drained", opened, MERGE)
            machine.until(lambda: drain.poll() is not None, "the drain is over")
        finally:
            drain.kill()
            reader.join()
    assert drain.returncode == 0, progress
    assert [b for b in machine.admin.items(PODS) if b["spec"].get("nodeName") == node] == []
    states = [line.split()[0] for line in progress if f" default/{pod} " in line]
    assert (states[0], states[-1]) == ("Waiting", "Moved")
    assert machine.fewest["drained"] == REPLICAS - 1
    machine.until(lambda: machine.held() == [], "nothing is held")
    subprocess.run([*command, "--undo"], check=True)
    spec = machine.admin.need("GET", f"/api/v1/nodes/{node}")["spec"]
    assert "unschedulable" not in spec
