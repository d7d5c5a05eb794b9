"""The scheduler as it is deployed: two replicas beside kube-scheduler, and a server that fails.

Covers: its own service account and role, leaders that die or stand still, pods of other profiles,
a reservation and its owner, an API server that is killed. Does not cover: verdicts
(``test_differential``).
"""

from __future__ import annotations

import collections
import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.documents import DEPLOY, rules
from tests.deploy.test_overlays import built
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

SPACE, ACCOUNT = "koordlet-system", "koordlet-scheduler"
USER = f"system:serviceaccount:{SPACE}:{ACCOUNT}"
PODS = "/api/v1/namespaces/default/pods"
RESERVATIONS = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
_CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 4s, renewDeadline: 3s, retryPeriod: 1s}
profiles: [{schedulerName: koordlet-scheduler}]
"""


class Deployed:
    """A control plane with hollow nodes, kube-scheduler, and replicas of ours."""

    def __init__(self, lab: Any, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.admin = k8s_lab.Admin(lab)
        self.replicas: dict[str, subprocess.Popen[bytes]] = {}
        self._pods = self.starts = 0

    def install(self) -> None:
        """What ``deploy/`` says, but for what runs pods."""
        documents = [*built(DEPLOY), *built(DEPLOY / "scheduler")]
        apart = ("Deployment", "DaemonSet", "ValidatingAdmissionPolicy")
        for document in sorted(documents, key=lambda one: one["kind"] != "Namespace"):
            if not document["kind"].startswith(apart):
                status, answer = k8s_lab.strict(self.admin, document, dry="")
                assert status in (200, 201), answer
        self.admin.hollow_nodes([k8s_lab.hollow(f"n{at}") for at in range(8)])
        (self.folder / "scheduler.yaml").write_text(_CONFIG)
        self.kubeconfig = self.lab.service_account(SPACE, ACCOUNT)

    def start(self, name: str) -> None:
        """One replica."""
        self.starts += 1
        state = self.folder / f"{name}.state"
        words = ["--config", str(self.folder / "scheduler.yaml"), "--state-dir", str(state)]
        words += ["--kubeconfig", str(self.kubeconfig), "--http", "127.0.0.1:0"]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.replicas[name] = subprocess.Popen(
                [sys.executable, "-m", "koordlet", "scheduler", *words], stderr=log
            )

    def leader(self) -> str:
        """Which replica is ready: it holds the lease."""

        def ready() -> str:
            return next((name for name in self.replicas if self._is_ready(name)), "")

        return deadline.until(ready, "somebody leads", seconds=60)

    def _is_ready(self, name: str) -> bool:
        match = re.search(r"http://([^/]+)/", (self.folder / f"{name}.log").read_text())
        if match is None:
            return False
        connection = http.client.HTTPConnection(match[1], timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    def create(self, count: int, scheduler: str, **more: object) -> list[str]:
        """Pods; their paths."""
        paths = []
        for _ in range(count):
            self._pods += 1
            name = f"p{self._pods}"
            body = pod(name, scheduler, **more)
            self.admin.need("POST", PODS, body)
            paths.append(f"{PODS}/{name}")
        return paths

    def bound(self, paths: list[str]) -> list[str]:
        """Their nodes, when each has one."""

        def nodes() -> list[str]:
            self._restart()
            names = [self.admin.need("GET", path)["spec"].get("nodeName", "") for path in paths]
            return names if all(names) else []

        return deadline.until(nodes, f"{len(paths)} pods are bound", seconds=60)

    def _restart(self) -> None:
        """As a kubelet would: who loses the lease ends."""
        for name, replica in self.replicas.items():
            if replica.poll() is not None:
                self.start(name)

    def audit(self) -> Iterator[Body]:
        """Every request of our account, a watch also when it begins."""
        for line in Path(self.lab.folder, "log", "audit.log").read_text().splitlines():
            event = json.loads(line)
            if event["user"].get("username") == USER:
                yield event

    def close(self) -> None:
        """End the replicas."""
        self.admin.close()
        for replica in self.replicas.values():
            replica.send_signal(signal.SIGCONT)
            replica.kill()
            replica.wait()


def pod(name: str, scheduler: str, **more: object) -> Body:
    """A small pod."""
    requests = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    spec = {"containers": [{"name": "main", "image": "app", "resources": requests}], **more}
    return {
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {**spec, "schedulerName": scheduler},
    }


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two replicas, one of which leads."""
    folder = tmp_path_factory.mktemp("deployed")
    with k8s_lab.cluster(folder / "k8s", scheduler=True, nodes=1, audit=True) as lab:
        cluster = Deployed(lab, folder)
        try:
            cluster.install()
            for name in ("first", "second"):
                cluster.start(name)
            yield cluster
        finally:
            cluster.close()


def test_leaders_that_die_or_stand_still_are_followed(deployed: Deployed) -> None:
    """Every pod of ours is bound once, whoever leads; pods of other profiles are never touched."""
    theirs = deployed.create(10, "default-scheduler")
    nobodys = deployed.create(2, "nobody")
    ours = deployed.create(10, ACCOUNT)
    deployed.bound([*ours, *theirs])

    first = deployed.leader()
    killed = deployed.replicas.pop(first)
    killed.kill()
    killed.wait()
    ours += (second := deployed.create(10, ACCOUNT))
    deployed.bound(second)

    deployed.start("third")
    still = deployed.leader()
    deployed.replicas[still].send_signal(signal.SIGSTOP)
    ours += (third := deployed.create(10, ACCOUNT))
    deployed.bound(third)
    deployed.replicas[still].send_signal(signal.SIGCONT)
    ours += (fourth := deployed.create(10, ACCOUNT))
    deployed.bound(fourth)

    posts = [
        event for event in deployed.audit() if event["objectRef"].get("subresource") == "binding"
    ]
    done = collections.Counter(
        f"{PODS}/{event['objectRef']['name']}"
        for event in posts
        if event["responseStatus"]["code"] == http.HTTPStatus.CREATED
    )
    assert done == dict.fromkeys(ours, 1)
    assert all("nodeName" not in deployed.admin.need("GET", path)["spec"] for path in nobodys)


def test_a_reservation_is_held_and_drawn(deployed: Deployed) -> None:
    """Made by an administrator, it becomes Available, and its owner's pod is bound to its node."""
    reservation = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "held"},
        "spec": {
            "template": {"spec": pod("", "koordlet-scheduler")["spec"]},
            "owners": [{"labelSelector": {"matchLabels": {"app": "x"}}}],
            "ttl": "1h",
        },
    }
    deployed.admin.need("POST", RESERVATIONS, reservation)
    path = f"{RESERVATIONS}/held"

    def phase(wanted: str) -> Body | None:
        status: Body = deployed.admin.need("GET", path).get("status", {})
        return status if status.get("phase") == wanted else None

    available = deadline.until(lambda: phase("Available"), "the reservation is available")
    nodes = deployed.bound(deployed.create(1, ACCOUNT))

    assert nodes == [available["nodeName"]]
    deadline.until(lambda: phase("Succeeded"), "it is drawn once")


def test_the_role_is_what_it_needs(deployed: Deployed) -> None:
    """Nothing that it asked for was forbidden, and it may read nothing in ways it never does."""
    events = list(deployed.audit())
    codes = {event["responseStatus"]["code"] for event in events}
    assert http.HTTPStatus.FORBIDDEN not in codes
    asked = {(event["verb"], event["objectRef"]["resource"]) for event in events}
    granted = {
        (verb, resource)
        for rule in rules("scheduler/scheduler.yaml")
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb in ("get", "list", "watch")
    }
    # Of kinds that are not defined here; and of a pod whose binding had no answer.
    assert granted - asked <= {
        ("watch", "elasticquotas"),
        ("watch", "podgroups"),
        ("get", "pods"),
    }


def test_a_killed_server_costs_one_list_of_each_kind(deployed: Deployed) -> None:
    """After kill -9 of the API server pods are bound again, and nobody lists in a loop."""
    deployed.leader()
    running = len(deployed.replicas) - deployed.starts
    before = collections.Counter(map(_listed, deployed.audit()))
    deployed.lab.processes.stop("kube-apiserver", signal.SIGKILL)
    deployed.lab.processes.start("kube-apiserver")
    deadline.until(lambda: deployed.lab._answers("/readyz"), "the API server is back", seconds=90)
    deployed.admin.close()
    deployed.bound(deployed.create(5, ACCOUNT))
    lists = collections.Counter(map(_listed, deployed.audit())) - before

    several = {kind: count for kind, count in lists.items() if count > running + deployed.starts}
    several.pop("", None)
    # Those that are not defined here are asked for again and again, at their leisure.
    for undefined in ("elasticquotas", "podgroups"):
        several.pop(undefined, None)
    assert several == {}


def _listed(event: Body) -> str:
    return event["objectRef"]["resource"] if event["verb"] == "list" else ""
