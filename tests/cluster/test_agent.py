"""An agent with its own service account on a real server: what it writes, and how little it asks.

Covers: objects, the role with its admission policies, requests at rest. Does not cover: a kubelet
and containers (``tests/e2e`` has the runtime).
"""

from __future__ import annotations

import collections
import contextlib
import datetime as dt
import http
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.model import node_ratios
from tests.cluster.deployed import AuditLog
from tests.deploy import overlays
from tests.deploy.documents import DEPLOY
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

NODE, SPACE = "n0", "koordlet-system"
NODE_METRIC = f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{NODE}"
TOPOLOGY = f"/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies/{NODE}"
#: Requests a minute, of watches that begin anew as well.
AT_REST = 4


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A control plane with one node, and an agent that reports it."""
    folder = tmp_path_factory.mktemp("agent")
    with k8s_lab.cluster(folder / "k8s", nodes=1, audit=True) as cluster:
        with contextlib.closing(k8s_lab.Admin(cluster)) as admin:
            documents = [*overlays.built(DEPLOY)]
            for document in sorted(documents, key=lambda body: body["kind"] != "Namespace"):
                if document["kind"] not in ("Deployment", "DaemonSet"):
                    status, answer = k8s_lab.strict(admin, document, dry="")
                    assert status in (200, 201), answer
            admin.hollow_nodes([k8s_lab.hollow(NODE)])
            kubeconfig = as_its_pod(cluster, admin)
        with agent(folder, kubeconfig):
            yield cluster


def as_its_pod(cluster: Any, admin: k8s_lab.Admin) -> Path:
    """A kubeconfig with the token that the DaemonSet's pod has on the node."""
    box = {"name": "koordlet", "image": "koordlet"}
    spec = {"nodeName": NODE, "serviceAccountName": "koordlet", "containers": [box]}
    body = {"metadata": {"name": "agent", "namespace": SPACE}, "spec": spec}
    admin.need("POST", f"/api/v1/namespaces/{SPACE}/pods", body)
    return Path(cluster._kubeconfig("agent", {"token": token(admin, 3600)}))


def token(admin: k8s_lab.Admin, seconds: int) -> str:
    """A token of that pod, which exists; the server gives none for less than ten minutes."""
    pod = admin.need("GET", f"/api/v1/namespaces/{SPACE}/pods/agent")
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "agent", "uid": pod["metadata"]["uid"]}
    asked = {"spec": {"boundObjectRef": bound, "expirationSeconds": seconds}}
    path = f"/api/v1/namespaces/{SPACE}/serviceaccounts/koordlet/token"
    return str(admin.need("POST", path, asked)["status"]["token"])


@contextlib.contextmanager
def agent(folder: Path, kubeconfig: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It observes this machine, and reports it as the node."""
    sections = {
        "apiVersion": "koordlet.io/v1",
        "kind": "Config",
        "node": {
            "name": NODE,
            "cpuNormalization": {"other": 1.2},
            "amplification": {"cpu": 1.5},
        },
        "kubelet": {"mode": "off"},
        "kube": {"kubeconfig": str(kubeconfig)},
        "report": {"http": {"enabled": False}, "objects": {"mode": "on"}},
    }
    (folder / "agent.yaml").write_text(yaml.safe_dump(sections))
    words = ["--config", str(folder / "agent.yaml"), "--state-dir", str(folder / "state")]
    # The agent refuses variables of ours that it does not know, such as where the lab is.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KOORDLET_")}
    command = [sys.executable, "-m", "koordlet", "run", "--observe", *words]
    with (folder / "agent.log").open("wb") as log:
        running = subprocess.Popen(command, stderr=log, env=environment)
    try:
        yield running
        assert running.poll() is None, (folder / "agent.log").read_text()
    finally:
        running.terminate()
        running.wait(60)


def asked(log: AuditLog) -> list[Body]:
    """Every request of the agent that has begun, a watch once."""
    return list({event["auditID"]: event for event in log.read()}.values())


def reports(log: AuditLog) -> list[Body]:
    """Its updates of the NodeMetric's status."""
    return [e for e in asked(log) if e["verb"] == "patch" and "nodemetrics" in e["requestURI"]]


def test_it_reports_with_its_own_role(lab: Any) -> None:
    """NodeMetric and NodeResourceTopology are made, and no request of its was forbidden."""
    with contextlib.closing(k8s_lab.Admin(lab)) as admin:
        for path in (NODE_METRIC, TOPOLOGY):
            deadline.until(lambda: admin.ask("GET", path)[0] == http.HTTPStatus.OK, path)  # noqa: B023
        metric, topology = admin.need("GET", NODE_METRIC), admin.need("GET", TOPOLOGY)

    assert [zone["type"] for zone in topology["zones"]].count("Node") >= 1
    assert metric["metadata"]["ownerReferences"][0]["name"] == NODE
    codes = collections.Counter(
        event["responseStatus"]["code"] for event in asked(AuditLog(lab, SPACE))
    )
    assert codes[http.HTTPStatus.FORBIDDEN] == 0, codes


def test_ratios_of_its_cpus_are_the_nodes_unless_somebody_else_writes_them(lab: Any) -> None:
    """It learns of the other writer by the server's refusal, and writes the rest all the same."""
    path, other = f"/api/v1/nodes/{NODE}", {node_ratios.AMPLIFICATION: '{"cpu":4}'}

    def patch(part: str, texts: dict[str, str]) -> None:
        admin.need("PATCH", path, {"metadata": {part: texts}}, "application/merge-patch+json")

    def ratios() -> list[str | None]:
        annotations = admin.need("GET", path)["metadata"].get("annotations") or {}
        return [annotations.get(key) for key in node_ratios.ANNOTATIONS]

    with contextlib.closing(k8s_lab.Admin(lab)) as admin:
        deadline.until(lambda: ratios() == ["1.20", '{"cpu":1.8}'], "ratios")
        patch("annotations", other)
        patch("labels", {node_ratios.ENABLED: "false"})
        deadline.until(lambda: ratios() == ["1.00", '{"cpu":4}'], "another program's ratio")
        conditions = {row["type"]: row for row in admin.need("GET", path)["status"]["conditions"]}
    contested = conditions["koordlet.io/CPURatiosNotReported"]
    assert contested["status"] == "True"
    assert 'is {"cpu":4}, koordlet computes {"cpu":1.5}' in contested["message"]


@pytest.mark.soak
def test_at_rest_it_asks_little(lab: Any) -> None:
    """At most four requests a minute, and no zones."""
    rests(lab, until=5)


def rests(lab: Any, *, until: int) -> None:
    """Between its second report and this one it asks little, and writes no zones."""
    log = AuditLog(lab, SPACE)
    several = deadline.until(
        lambda: some if len(some := reports(log)) >= until else None, "reports", seconds=400
    )
    moments = [several[number]["requestReceivedTimestamp"] for number in (1, until - 1)]
    first, last = moments
    between = [e for e in asked(log) if first < e["requestReceivedTimestamp"] <= last]
    span = dt.datetime.fromisoformat(last) - dt.datetime.fromisoformat(first)

    counts = collections.Counter(f"{e['verb']} {e['objectRef']['resource']}" for e in between)
    assert len(between) <= AT_REST * span.total_seconds() / 60, (counts, span)
    zones = {verb for verb in counts if verb.endswith("noderesourcetopologies")}
    assert zones <= {"get noderesourcetopologies"}
