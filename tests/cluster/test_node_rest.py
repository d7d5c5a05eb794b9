"""An agent on a real node where nothing happens: what it reports, and what it still asks.

Covers: the deployed agent with a kubelet, a runtime and running pods; pods that it rejects.
Does not cover: zones and devices (``test_node_life``), an agent without a kubelet (``test_agent``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.model import quantity
from tests.cluster.deployed import PODS
from tests.cluster.test_agent import rests
from tests.cluster.test_descheduler import MERGE, SETS
from tests.deploy.documents import DEPLOY
from tests.kit import deadline, descheduling, installed, kubelet_node, live, needs

#: The node's use is known after two and a half minutes; then come four reports.
pytestmark = [pytest.mark.cluster, pytest.mark.soak]

WORKLOADS = {"ls": "LS", "be": "BE", "plain": ""}
LATE = "late-0", "late-1"
NODES = "/api/v1/nodes"


def rejected(node: kubelet_node.Node, folder: Path) -> list[list[str]]:
    """What a round would remove once the kubelet has rejected two pods of a ReplicaSet for good."""
    labels = {"matchLabels": {"app": "late"}}
    template = {
        "metadata": {"labels": {"app": "late"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": 0, "selector": labels, "template": template}
    made = node.admin.need("POST", SETS, {"metadata": {"name": "late"}, "spec": spec})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "late", "controller": True}
    owners = [{**owner, "uid": made["metadata"]["uid"]}]
    for name in LATE:
        node.start(name, requests={"cpu": "1000"})
    deadline.until(
        lambda: all(node.pod(name)["status"].get("reason") == "OutOfcpu" for name in LATE),
        "both are rejected",
    )
    for name in LATE:  # not before: the ReplicaSet wants none
        node.admin.need("PATCH", f"{PODS}/{name}", {"metadata": {"ownerReferences": owners}}, MERGE)
    items = [
        {**body, "kind": kind}
        for kind, path in (("Node", NODES), ("Pod", PODS), ("ReplicaSet", SETS))
        for body in node.admin.need("GET", path)["items"]
    ]
    for name in LATE:
        node.delete(name)
    dump, policy = folder / "all.json", folder / "policy.json"
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    # Of the peers' two dialects the one that looks at a cluster of one node.
    dialect = {"kind": "DeschedulerConfiguration"}
    policy.write_text(json.dumps({**descheduling.policy({"PoorService": {}}), **dialect}))
    words = [sys.executable, "-m", "koordlet", "sim", str(dump), "--deschedule", str(policy)]
    done = subprocess.run([*words, "-o", "json"], capture_output=True, text=True, check=True)
    return [each["removes"] for each in json.loads(done.stdout)["avoided"]]


def test_at_rest_it_reports_and_asks_little(tmp_path: Path) -> None:
    """Four requests a minute at most and no zones; the use of the node and of every pod."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    with kubelet_node.node(tmp_path, "containerd", {}, audit=True, scheduler=True) as node:
        for name, qos in WORKLOADS.items():
            node.start(name, qos)
        deadline.until(lambda: len(node.cpus()) == len(WORKLOADS), "all run")
        assert rejected(node, tmp_path) == [["default/late-0", "default/late-1"]]
        agent = installed.install(node, "report: {objects: {device: true}}\n", DEPLOY)
        rests(node.cluster, until=4)
        path = f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{node.name}"
        status = node.admin.need("GET", path)["status"]
        used = quantity.milli(status["nodeMetric"]["nodeUsage"]["resources"]["memory"])
        whole = node.admin.need("GET", f"/api/v1/nodes/{node.name}")["status"]["capacity"]["memory"]

        assert 0 < used < quantity.milli(whole)
        assert WORKLOADS.keys() <= {row["name"] for row in status["podsMetric"]}
        agent.uninstall()
        assert node.admin.ask("GET", path)[0] == 404
