"""Pressure on a real node: the agent's evictions through the API.

Covers: a disruption budget that protects the first in the order, one eviction for each pod; a disk
that kubelet and agent both watch, and that runs short for one of them or for both.
Does not cover: who is chosen (``tests.oracle``), local evictions (``tests.e2e.test_eviction``).
"""

from __future__ import annotations

import collections
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.documents import DEPLOY
from tests.kit import deadline, installed, kubelet_node, live, needs
from tests.oracle.objects import Body

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

#: Some memory is always in use, so this threshold is always met; the kubelet's is not.
ACTING = """
policies:
  node_pressure: {act: true, evictionHard: {memory.available: 99%}}
"""
#: The kubelet's directory is a file system of this size, with thresholds for it on both sides.
DISK_MIB, KUBELETS_PERCENT, OURS_PERCENT = 64, 30, 60
#: The kubelet counts what is in volumes once a minute, unless told otherwise.
KUBELET = {
    "evictionHard": {"nodefs.available": f"{KUBELETS_PERCENT}%", "memory.available": "50Mi"},
    "evictionPressureTransitionPeriod": "5s",
    "volumeStatsAggPeriod": "2s",
}
EARLIER = f"""
policies:
  node_pressure:
    act: true
    evictionHard: {{nodefs.available: {OURS_PERCENT}%}}
    evictionPressureTransitionPeriod: 5s
"""
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#: More memory than the other pod, so it is the first in the order.
LARGE = """
x=$(head -c 33554432 /dev/zero | tr '\\0' x); trap 'exit 0' TERM; while :; do sleep 0.2; done
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kubelet_node.Node]:
    """A node that records all requests."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    folder = tmp_path_factory.mktemp("pressure")
    with kubelet_node.node(folder, "containerd", {}, audit=True, scheduler=True) as made:
        yield made


@pytest.fixture(scope="module")
def agent(node: kubelet_node.Node) -> installed.Installed:
    """An agent that evicts nobody yet."""
    return installed.install(node, "policies: {}\n", DEPLOY)


def evictions(node: kubelet_node.Node) -> list[Body]:
    """Evictions that the agent asked for."""
    lines = Path(node.cluster.folder, "log/audit.log").read_text().splitlines()
    return [
        event
        for event in map(json.loads, lines)
        if event["user"].get("username") == installed.ACCOUNT
        and event.get("objectRef", {}).get("subresource") == "eviction"
    ]


def outcomes(node: kubelet_node.Node) -> dict[tuple[str, int], int]:
    """How often an eviction of each pod had which status."""
    keys = [(e["objectRef"]["name"], e["responseStatus"]["code"]) for e in evictions(node)]
    return dict(collections.Counter(keys))


def healthy(node: kubelet_node.Node) -> int:
    """Pods that the budget counts."""
    return int(node.admin.need("GET", f"{BUDGETS}/guarded")["status"].get("currentHealthy", 0))


def test_a_disruption_budget_protects_the_first_in_the_order(
    node: kubelet_node.Node, agent: installed.Installed
) -> None:
    """It is refused, and nobody goes in its place; without the budget both go, once each."""
    node.begin("guarded", {"containers": [{"command": ["sh", "-c", LARGE]}]}, {"app": "guarded"})
    node.start("other", "BE")
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    node.admin.need("POST", BUDGETS, {"metadata": {"name": "guarded"}, "spec": budget})
    deadline.until(lambda: healthy(node) == 1, "the budget counts the pod")
    deadline.until(lambda: all(node.boxes()[n][0] for n in ("guarded", "other")), "both run")

    agent.configure(ACTING)
    deadline.until(lambda: ("guarded", 429) in outcomes(node), "a refusal", seconds=120)
    deadline.until(lambda: outcomes(node).get(("guarded", 429), 0) > 1, "the next one", seconds=60)
    assert all(identity for identity, _ in node.boxes().values())
    node.admin.need("DELETE", f"{BUDGETS}/guarded")
    deadline.until(lambda: not node.boxes(), "nobody is left", seconds=180)

    done = {key: count for key, count in outcomes(node).items() if key[1] == 201}
    assert done == {("other", 201): 1, ("guarded", 201): 1}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[kubelet_node.Node]:
    """A node whose kubelet has a small disk, beside an agent with an earlier threshold for it."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    with kubelet_node.node(
        tmp_path, "containerd", KUBELET, disk_mib=DISK_MIB, audit=True, scheduler=True
    ) as made:
        installed.install(made, EARLIER, DEPLOY)
        yield made


def fills(node: kubelet_node.Node, name: str, mib: int) -> None:
    """A pod that writes so much into its volume."""
    act = f"head -c {mib << 20} /dev/zero >/data/x; trap 'exit 0' TERM; while :; do sleep 0.2; done"
    box = {
        "command": ["sh", "-c", act],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    node.begin(name, {"containers": [box], "volumes": [{"name": "data", "emptyDir": {}}]}, {})


def disk_conditions(node: kubelet_node.Node) -> dict[str, str]:
    """The kubelet's and the agent's condition of the disk."""
    status = node.admin.need("GET", f"/api/v1/nodes/{node.name}")["status"]
    return {c["type"]: c["status"] for c in status["conditions"] if "DiskPressure" in c["type"]}


def relieved(node: kubelet_node.Node) -> None:
    """Wait until both conditions of the disk held, and then until neither does."""
    deadline.until(
        lambda: disk_conditions(node).get("koordlet.io/DiskPressure") == "True",
        "the agent has the condition",
    )
    deadline.until(
        lambda: "True" not in disk_conditions(node).values(), "nobody has it", seconds=90
    )


def evicted_by_kubelet(node: kubelet_node.Node) -> list[str]:
    """Pods that the kubelet ended for a resource."""
    pods = node.admin.items("/api/v1/namespaces/default/pods")
    return [
        pod["metadata"]["name"]
        for pod in pods
        for condition in pod["status"].get("conditions", ())
        if condition.get("reason") == "TerminationByKubelet"
    ]


def test_a_disk_that_runs_short_costs_one_pod(small_disk: kubelet_node.Node) -> None:
    """Short for the agent's threshold alone, the agent evicts; for the kubelet's too, it does.

    Each time the pod that fills the disk, and nobody else.
    """
    node = small_disk
    fills(node, "small", 2)
    fills(node, "smaller", 1)
    deadline.until(lambda: len(node.cpus()) == 2, "both run")
    fills(node, "ours", DISK_MIB * (100 - OURS_PERCENT + 10) // 100)
    relieved(node)
    assert outcomes(node) == {("ours", 201): 1}
    assert evicted_by_kubelet(node) == []

    fills(node, "kubelets", DISK_MIB * (100 - KUBELETS_PERCENT + 8) // 100)
    relieved(node)
    assert evicted_by_kubelet(node) == ["kubelets"]
    assert outcomes(node) == {("ours", 201): 1}
    assert {name for name, (identity, _) in node.boxes().items() if identity} == {
        "small",
        "smaller",
    }
