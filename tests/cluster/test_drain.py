"""``koordlet drain`` on a real API server, with real controllers, beside the deployed scheduler.

Covers: a disruption budget that is kept, room first, kill -9 half-way, the way back. Does not
cover: the steps of a move (``tests.scheduler.migration``).
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.deployed import PODS, Deployed
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

SETS = "/apis/apps/v1/namespaces/default/replicasets"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
RESERVATIONS = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
JOBS = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs"
MERGE = "application/merge-patch+json"
REPLICAS = 3


class Kubelets:
    """What the kubelets of hollow nodes would do: pods start, and end when they shall."""

    def __init__(self, lab: Any) -> None:
        self._admin = k8s_lab.Admin(lab)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        #: Fewest pods that were up, since somebody wrote a high number here.
        self.fewest = 0
        self._thread.start()

    def _work(self) -> None:
        while not self._over.wait(0.1):
            try:
                self._look()
            except (OSError, http.client.HTTPException):
                self._admin.close()  # a busy server hangs up

    def _look(self) -> None:
        status, listing = self._admin.ask("GET", PODS)
        pods = listing["items"] if status == http.HTTPStatus.OK else []
        up = [each for each in pods if _is_up(each)]
        self.fewest = min(self.fewest, len(up)) if pods else self.fewest
        for body in pods:
            path = f"{PODS}/{body['metadata']['name']}"
            if "deletionTimestamp" in body["metadata"]:
                self._admin.ask("DELETE", path, {"gracePeriodSeconds": 0})
            elif body["spec"].get("nodeName") and not _is_up(body):
                conditions = [{"type": "Ready", "status": "True"}]
                made = {"phase": "Running", "conditions": conditions}
                self._admin.ask("PATCH", f"{path}/status", {"status": made}, MERGE)

    def watch(self) -> None:
        """Count anew."""
        self.fewest = REPLICAS

    def close(self) -> None:
        """End."""
        self._over.set()
        self._thread.join()
        self._admin.close()


def _is_up(body: Body) -> bool:
    return "deletionTimestamp" not in body["metadata"] and any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in body["status"].get("conditions", ())
    )


class Cluster:
    """Three nodes, a ReplicaSet on the first, a budget that lets one pod go at a time."""

    def __init__(self, deployed: Deployed, kubelets: Kubelets) -> None:
        self.admin, self.kubelets = deployed.admin, kubelets
        self._words = [sys.executable, "-u", "-m", "koordlet", "drain"]
        self._cluster = ["--kubeconfig", str(deployed.lab.kubeconfig)]

    def cordon(self, node: str, *, cordoned: bool) -> None:
        """Keep pods away, or not."""
        body = {"spec": {"unschedulable": cordoned or None}}
        self.admin.need("PATCH", f"/api/v1/nodes/{node}", body, MERGE)

    def fill(self) -> None:
        """All pods on n0."""
        for node in ("n1", "n2"):
            self.cordon(node, cordoned=True)
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec: Body = {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container], "schedulerName": "koordlet-scheduler"},
            },
        }
        self.admin.need("POST", SETS, {"metadata": {"name": "web"}, "spec": spec})
        selector = {"matchLabels": {"app": "web"}}
        budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": selector}}
        self.admin.need("POST", BUDGETS, budget)
        deadline.until(lambda: self.on("n0") == REPLICAS, "all pods are on n0", seconds=120)
        for node in ("n1", "n2"):
            self.cordon(node, cordoned=False)

    def on(self, node: str) -> int:
        """How many pods are up on a node."""
        pods = self.admin.need("GET", PODS)["items"]
        return sum(_is_up(each) and each["spec"].get("nodeName") == node for each in pods)

    def drain(self, node: str, *words: str) -> tuple[int, dict[str, Any]]:
        """Exit status and document."""
        command = [*self._words, node, *self._cluster, *words, "-o", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.stdout, done.stderr
        document: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, document

    def begin(self, node: str, state: str) -> subprocess.Popen[str]:
        """A drain, once it says that a pod is in a state."""
        command = [*self._words, node, *self._cluster]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(state):
                return process
        raise AssertionError(state)

    def left(self) -> tuple[int, int]:
        """Jobs that are not over, reservations that hold room."""
        jobs = self.admin.need("GET", JOBS)["items"]
        over = {"Succeeded", "Failed", "Aborted"}
        rooms = self.admin.need("GET", RESERVATIONS)["items"]
        held = [each for each in rooms if each.get("status", {}).get("phase") == "Available"]
        active = [each for each in jobs if each.get("status", {}).get("phase") not in over]
        return len(active), len(held)

    def is_cordoned(self, node: str) -> bool:
        """Whether no pod comes."""
        spec = self.admin.need("GET", f"/api/v1/nodes/{node}")["spec"]
        return spec.get("unschedulable") is True


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The manifests, the scheduler at work, pods on n0."""
    folder = tmp_path_factory.mktemp("drain")
    with k8s_lab.cluster(folder / "k8s", nodes=3, audit=True) as lab:
        deployed = Deployed(lab, folder)
        kubelets = Kubelets(lab)
        try:
            deployed.install(nodes=3)
            deployed.start("one")
            deployed.leader()
            made = Cluster(deployed, kubelets)
            made.fill()
            yield made
        finally:
            kubelets.close()
            deployed.close()


def test_a_node_is_emptied_as_the_budget_allows_and_given_back(cluster: Cluster) -> None:
    """First the calendar, which changes nothing; never fewer than two pods up."""
    status, calendar = cluster.drain("n0", "--dry-run")
    assert (status, calendar["empty"], len(calendar["departures"])) == (0, True, REPLICAS)
    assert not cluster.is_cordoned("n0")

    cluster.kubelets.watch()
    status, document = cluster.drain("n0")
    assert (status, document["done"]) == (0, True)
    assert [each["state"] for each in document["pods"]] == ["Moved"] * REPLICAS
    assert cluster.on("n0") == 0
    assert cluster.on("n1") + cluster.on("n2") == REPLICAS
    assert cluster.kubelets.fewest >= 2
    assert cluster.left() == (0, 0)
    assert cluster.is_cordoned("n0")
    assert cluster.drain("n0", "--undo") == (0, {"version": "v1", "node": "n0", "ended": 0})
    assert not cluster.is_cordoned("n0")


@pytest.mark.parametrize("state", ["Waiting", "Reserved", "Evicting", "Moved"])
def test_a_drain_that_is_killed_is_taken_up_again(cluster: Cluster, state: str) -> None:
    """With kill -9 in each state: no pod is moved twice, no room is left behind."""
    node = max(("n0", "n1", "n2"), key=cluster.on)
    others = REPLICAS - cluster.on(node)
    cluster.kubelets.watch()
    process = cluster.begin(node, state)
    process.kill()
    process.wait()
    status, document = cluster.drain(node)
    assert (status, document["done"]) == (0, True)
    assert cluster.on(node) == 0
    assert cluster.kubelets.fewest >= 2
    assert cluster.left() == (0, 0)
    assert others + sum(each["state"] == "Moved" for each in document["pods"]) >= others
    cluster.drain(node, "--undo")
