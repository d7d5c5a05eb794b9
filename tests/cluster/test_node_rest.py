"""An agent on a real node where nothing happens: what it reports, and what it still asks.

Covers: the deployed agent with a kubelet, a runtime and running pods.
Does not cover: zones and devices (``test_node_life``), an agent without a kubelet (``test_agent``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.model import quantity
from tests.cluster.test_agent import rests
from tests.deploy.documents import DEPLOY
from tests.kit import deadline, installed, kubelet_node, live, needs

#: The node's use is known after two and a half minutes; then come four reports.
pytestmark = [pytest.mark.cluster, pytest.mark.soak]

PODS = {"ls": "LS", "be": "BE", "plain": ""}


def test_at_rest_it_reports_and_asks_little(tmp_path: Path) -> None:
    """Four requests a minute at most and no zones; the use of the node and of every pod."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    with kubelet_node.node(tmp_path, "containerd", {}, audit=True, scheduler=True) as node:
        for name, qos in PODS.items():
            node.start(name, qos)
        deadline.until(lambda: len(node.cpus()) == len(PODS), "all run")
        agent = installed.install(node, "report: {objects: {device: true}}\n", DEPLOY)
        rests(node.cluster, until=4)
        path = f"/apis/slo.koordinator.sh/v1alpha1/nodemetrics/{node.name}"
        status = node.admin.need("GET", path)["status"]
        used = quantity.milli(status["nodeMetric"]["nodeUsage"]["resources"]["memory"])
        whole = node.admin.need("GET", f"/api/v1/nodes/{node.name}")["status"]["capacity"]["memory"]

        assert 0 < used < quantity.milli(whole)
        assert PODS.keys() <= {row["name"] for row in status["podsMetric"]}
        agent.uninstall()
        assert node.admin.ask("GET", path)[0] == 404
