"""The descheduler on a real API server, with the account and the role of its manifests.

Covers: what the role allows, a budget that is kept, the lease, a NodeMetric that is too old. Does
not cover: what is chosen (``tests.scheduler.descheduling``).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.model import moment
from tests.cluster.deployed import PODS, SPACE, Deployed, pod
from tests.kit import deadline, descheduling, k8s_lab
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

SETS = "/apis/apps/v1/namespaces/default/replicasets"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
METRICS = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/koordlet-descheduler"
MERGE = "application/merge-patch+json"
AVOIDANCES = "/apis/scheduling.koordlet.io/v1alpha1/nodeavoidances"
POLICY = descheduling.policy(
    {"RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5},
     "PoorService": {"dryRun": False}}
)  # fmt: skip
LOAD = descheduling.policy({"LowNodeLoad": {
    "lowThresholds": {"cpu": 20}, "highThresholds": {"cpu": 50},
    "anomalyCondition": {"consecutiveAbnormalities": 1},
}})  # fmt: skip


class Machine:
    """The cluster, and one round of the descheduler."""

    def __init__(self, deployed: Deployed, kubeconfig: Path, folder: Path) -> None:
        self.admin = deployed.admin
        self._policy = folder / "policy.json"
        self._words = [sys.executable, "-m", "koordlet", "descheduler", "--once", "-o", "json"]
        self._words += ["--kubeconfig", str(kubeconfig), "--config", str(self._policy)]

    def workload(self, name: str, restarts: int) -> None:
        """A ReplicaSet of one pod that is up; nothing replaces it where nothing runs pods."""
        (pod,) = self.replicas(name, 1)
        container = {"name": "c", "restartCount": restarts, "image": "i", "imageID": "",
                     "ready": True}  # fmt: skip
        status = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [container],
        }
        self.become(pod, status)

    def become(self, pod: str, status: Body) -> None:
        """Say of a pod what its kubelet would."""
        self.admin.need("PATCH", f"{PODS}/{pod}/status", {"status": status}, MERGE)

    def replicas(self, name: str, count: int) -> list[str]:
        """The pods of a new ReplicaSet, on a node where nothing runs them."""
        spec: Body = {
            "replicas": count,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "c", "image": "i"}], "nodeName": "n0"},
            },
        }
        self.admin.need("POST", SETS, {"metadata": {"name": name}, "spec": spec})
        deadline.until(lambda: len(self.pods(name)) == count, f"{name} has its pods", seconds=60)
        return self.pods(name)

    def pods(self, name: str) -> list[str]:
        """The living pods of a workload."""
        listing = self.admin.need("GET", f"{PODS}?labelSelector=app%3D{name}")
        return [body["metadata"]["name"] for body in listing["items"]
                if "deletionTimestamp" not in body["metadata"]]  # fmt: skip

    def measure(self, node: str, *pods: str, system: str, at: float) -> None:
        """Say of a node what its agent would have at that time: each pod uses 1.5 CPUs."""
        usage = {"resources": {"cpu": "1500m", "memory": "1Gi"}}
        rest = {"resources": {"cpu": system, "memory": "1Gi"}}
        metrics = [{"namespace": "default", "name": name, "podUsage": usage} for name in pods]
        status = {"updateTime": moment.spell(at), "podsMetric": metrics,
                  "nodeMetric": {"nodeUsage": rest, "systemUsage": rest}}  # fmt: skip
        body = {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric",
                "metadata": {"name": node}, "spec": {}}  # fmt: skip
        self.admin.ask("POST", METRICS, body)  # refused where it is there
        self.admin.need("PATCH", f"{METRICS}/{node}/status", {"status": status}, MERGE)

    def entries(self, name: str) -> list[Body]:
        """What says that a workload avoids node n0."""
        several = self.admin.need("GET", f"{AVOIDANCES}/n0")["spec"]["entries"]
        signature = {"kind": "ReplicaSet", "namespace": "default", "name": name}
        return [entry for entry in several if entry["signature"] == signature]

    def round(self, *words: str, policy: Body = POLICY) -> tuple[dict[str, Any], str]:
        """One round: its result, and the log."""
        self._policy.write_text(json.dumps(policy))
        done = subprocess.run(
            [*self._words, *words], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return document, done.stderr


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The manifests, two hollow nodes, and the account of the descheduler."""
    folder = tmp_path_factory.mktemp("descheduler")
    with k8s_lab.cluster(folder / "k8s", nodes=2, audit=True) as lab:
        cluster = Deployed(lab, folder)
        try:
            cluster.install(nodes=2)
            cluster.install_descheduler()
            account = lab.service_account(SPACE, "koordlet-descheduler")
            yield Machine(cluster, cluster.credentials("own", account), folder)
        finally:
            cluster.close()


def test_the_deployed_role_is_enough_for_a_round_and_a_budget_is_kept(machine: Machine) -> None:
    """A dry run sends nothing; then one pod goes, one stays for its budget, nothing is denied."""
    for name, restarts in (("calm", 0), ("often", 9), ("guarded", 9)):
        machine.workload(name, restarts)
    selector = {"matchLabels": {"app": "guarded"}}
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}
    machine.admin.need("POST", BUDGETS, budget)
    (often,) = machine.pods("often")

    document, log = machine.round("--dry-run")
    assert [move["pod"] for move in document["moves"]] == [f"default/{often}"]
    assert machine.pods("often") == [often]

    document, log = machine.round()
    assert [move["pod"] for move in document["moves"]] == [f"default/{often}"]
    assert often not in machine.pods("often")
    (refused,) = document["refused"]
    assert refused["why"].startswith("PDB: ")
    assert len(machine.pods("guarded")) == 1
    assert "forbidden" not in log
    lease = machine.admin.need("GET", LEASE)
    assert lease["spec"]["holderIdentity"] == ""
    events = machine.admin.need("GET", EVENTS)["items"]
    (event,) = (each for each in events if each.get("reason") == "Moved")
    assert "containers restarted 9 times" in event["note"]


def test_a_node_whose_metric_is_an_hour_old_is_left_alone_and_the_round_says_so(
    machine: Machine,
) -> None:
    """However full it was: with 2.5 of 4 CPUs it is too full once the report is new."""
    machine.workload("hot", 0)
    (hot,) = machine.pods("hot")
    for body in machine.admin.items("/api/v1/nodes"):
        machine.measure(body["metadata"]["name"], system="100m", at=time.time())
    machine.measure("n0", hot, system="1", at=time.time() - 3600)
    document, _ = machine.round("--dry-run", policy=LOAD)
    assert document["moves"] == []
    assert [note["message"] for note in document["notes"]] == [
        "pool __default_node_pool__: node n0: left alone without a report that is new enough",
        "pool __default_node_pool__: all nodes are under target utilization",
    ]

    machine.measure("n0", hot, system="1", at=time.time())
    document, _ = machine.round("--dry-run", policy=LOAD)
    assert [move["pod"] for move in document["moves"]] == [f"default/{hot}"]


def test_a_pod_that_nobody_would_create_again_stays(machine: Machine) -> None:
    """Whatever its containers do."""
    body = pod("bare", "default-scheduler", nodeName="n0")
    machine.admin.need("POST", PODS, body)
    containers = [{"name": "c", "restartCount": 9, "image": "i", "imageID": "", "ready": True}]
    status = {"phase": "Running", "containerStatuses": containers}
    machine.become("bare", status)
    document, _ = machine.round()
    moved = [*document["moves"], *document["refused"]]
    assert "default/bare" not in [move["pod"] for move in moved]
    machine.admin.need("GET", f"{PODS}/bare")


def test_a_node_that_rejects_pods_is_avoided_and_they_are_removed(machine: Machine) -> None:
    """Within the deployed role; a second round writes nothing anew."""
    rejected = machine.replicas("thrown", 2)
    for name in rejected:
        machine.become(name, {"phase": "Failed", "reason": "OutOfcpu", "startTime": _now()})
    document, log = machine.round()
    (avoided,) = document["avoided"]
    assert sorted(avoided["removes"]) == sorted(f"default/{name}" for name in rejected)
    (entry,) = machine.entries("thrown")
    assert "rejected by its kubelet" in entry["message"]
    assert not set(rejected) & set(machine.pods("thrown"))
    assert "forbidden" not in log

    document, _ = machine.round()
    assert document["avoided"] == []
    assert machine.entries("thrown") == [entry]


def _now() -> str:
    """This second, as a kubelet spells it."""
    return moment.spell(int(time.time()))
