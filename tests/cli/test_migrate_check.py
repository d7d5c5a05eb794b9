"""``koordlet migrate-check``: what differs is named with its users, and nothing else is."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.cli import migrate_check
from tests.kit import schedulers

QOS = "koordinator.sh/qosClass"
STATUS = "scheduling.koordinator.sh/resource-status"


def node(name: str, **labels: str) -> dict[str, Any]:
    """A node by its labels."""
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


def pod(name: str, on: str, labels: dict[str, str], **notes: str) -> dict[str, Any]:
    """A pod by what it says."""
    meta = {"name": name, "namespace": "d", "labels": labels, "annotations": notes}
    return {"kind": "Pod", "metadata": meta, "spec": {"nodeName": on}}


def agent(*args: str) -> dict[str, Any]:
    """Koordinator's DaemonSet."""
    containers = [{"name": "koordlet", "command": ["/koordlet"], "args": list(args)}]
    meta = {"name": "koordlet", "namespace": "koordinator-system"}
    spec = {"template": {"spec": {"containers": containers}}}
    return {"kind": "DaemonSet", "metadata": meta, "spec": spec}


def config_map(**data: Any) -> dict[str, Any]:
    """``slo-controller-config``."""
    meta = {"name": "slo-controller-config", "namespace": "koordinator-system"}
    texts = {key.replace("_", "-"): json.dumps(value) for key, value in data.items()}
    return {"kind": "ConfigMap", "metadata": meta, "data": texts}


def judge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *bodies: dict[str, Any]
) -> dict[str, Any]:
    """Run the command over these objects; its document."""
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"kind": "List", "items": list(bodies)}))
    assert cli.main(["migrate-check", str(path), "-o", "json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document.pop("version") == "v1"
    return document


def subjects(document: dict[str, Any], state: str) -> list[str]:
    """The subjects of the findings of a state."""
    return [finding["subject"] for finding in document["findings"] if finding["state"] == state]


def test_a_cluster_that_uses_what_is_the_same_has_no_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gates that are off count no more than keys of others; the table says it in words."""
    bodies = (
        node("n1"),
        pod("a", "n1", {QOS: "LS", "app": "x"}),
        agent("-addr=:19316", "--feature-gates=BECPUSuppress=true,BECPUEvict=false"),
    )
    document = judge(tmp_path, capsys, *bodies)
    # Where its agent listens is set by another key here, whatever the port.
    assert [f["subject"].rpartition(": ")[2] for f in document["findings"]] == ["flag addr"]
    assert document["nodes"][0]["pods"] == {"LS": 1}

    assert judge(tmp_path, capsys, node("n1"))["findings"] == []
    assert cli.main(["migrate-check", str(tmp_path / "all.json")]) == 0
    assert "nothing differs" in capsys.readouterr().out


def test_gates_flags_and_the_port_of_its_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is on and means something else here, with the key that means it."""
    gates = "--feature-gates=AllAlpha=false,BECPUEvict=true,PodResourcesProxy=true,Unheard=true"
    document = judge(tmp_path, capsys, agent(gates, "-cgroup-root-dir=/host-cgroup/"))

    port, evict, *_ = document["findings"]
    assert "port 9316" in port["message"]
    assert evict["fix"] == "policies.cpu_evict"
    assert evict["subject"].endswith("gate BECPUEvict")
    assert [s.rpartition(" ")[2] for s in subjects(document, "differs")[1:]] == [
        "BECPUEvict",
        "cgroup-root-dir",
    ]
    assert [s.rpartition(" ")[2] for s in subjects(document, "absent")] == [
        "PodResourcesProxy",
        "Unheard",
    ]


def test_each_node_has_the_strategies_that_its_agent_would_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the map by its labels, or of its own NodeSLO; what cannot be read names the nodes."""
    threshold = {
        "clusterStrategy": {"enable": True, "cpuSuppressThresholdPercent": 60, "cpuSupress": 1},
        "nodeStrategies": [{"nodeSelector": {"matchLabels": {"pool": "a"}}, "enable": False}],
    }
    slo = {
        "kind": "NodeSLO",
        "metadata": {"name": "n3"},
        "spec": {"resourceUsedThresholdWithBE": {"enable": True}},
    }
    document = judge(
        *(tmp_path, capsys, node("n1", pool="a"), node("n2"), node("n3"), slo),
        config_map(resource_threshold_config=threshold, cpu_normalization_config={}),
    )

    percent, enable = (
        f"resourceUsedThresholdWithBE.{name}" for name in ("cpuSuppressThresholdPercent", "enable")
    )
    assert [row["strategies"] for row in document["nodes"]] == [
        {percent: 60},
        {enable: True, percent: 60},
        {enable: True},
    ]
    assert subjects(document, "broken") == ["node n1, node n2"]
    assert subjects(document, "differs") == [
        "configmap slo-controller-config: cpu-normalization-config"
    ]


def test_texts_that_cannot_be_read_are_named_with_their_node_or_pod(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the agent would complain of them; the table lists each strategy with its nodes."""
    burst = {"koordinator.sh/cpuBurst": "{bad"}
    bad = node("n1")
    bad["metadata"]["annotations"] = {"node.koordinator.sh/colocation-strategy": "[]"}
    bodies = (bad, pod("p", "n1", {}, **burst), pod("", "n1", {}))
    strategy = config_map(resource_threshold_config={"clusterStrategy": {"enable": True}})
    document = judge(tmp_path, capsys, *bodies, strategy)

    assert subjects(document, "broken") == ["node n1", "pod d/p", "pod d/"]
    assert cli.main(["migrate-check", str(tmp_path / "all.json")]) == 0
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["resourceUsedThresholdWithBE.enable", "true", "n1"] in words


def test_objects_that_say_nothing_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty list, or one of other kinds, is no cluster in which nothing differs."""
    path = tmp_path / "all.json"
    path.write_text(json.dumps({"kind": "List", "items": [pod("p", "n1", {})]}))
    assert cli.main(["migrate-check", str(path)]) == 2
    assert f"{path}: has no Node" in capsys.readouterr().err


def test_keys_are_named_once_with_their_users(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three by name, the others by number."""
    replaced = {"pod.koordinator.sh/replace-resources": "true"}
    pods = [pod(f"p{n}", "n1", {QOS: "BE"}, **replaced) for n in range(5)]
    document = judge(tmp_path, capsys, *pods, pod("x", "n1", {QOS: "LSR"}, **{STATUS: "{}"}))

    assert subjects(document, "absent") == [
        "pod key pod.koordinator.sh/replace-resources: d/p0, d/p1, d/p2 and 2 more"
    ]
    assert subjects(document, "differs") == [f"pod key {STATUS}: d/x"]


def test_a_cluster_is_asked_over_its_kubeconfig(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same objects of an API server that lacks one of the kinds."""

    async def body() -> None:
        async with schedulers.world(ram, over_http=True) as world:
            await world.node("n1", cpu="2")
            await world.pod("x", cpu="1", meta={"annotations": {STATUS: "{}"}})
            words = ["migrate-check", "--kubeconfig", str(ram / "kubeconfig"), "-o", "json"]
            assert await asyncio.to_thread(cli.main, words) == 0

    asyncio.run(body())
    document = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in document["nodes"]] == ["n1"]
    assert subjects(document, "differs") == [f"pod key {STATUS}: d/x"]


def test_neither_or_both_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Two clusters at once are nobody's."""
    assert cli.main(["migrate-check"]) == 2
    assert cli.main(["migrate-check", "a.json", "--kubeconfig", "b"]) == 2
    assert "one --kubeconfig" in capsys.readouterr().err


class CountedPod(dict[str, Any]):
    """A pod that counts how often somebody looks at its specification."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.looks += key == "spec"
        return super().get(key, default)


@pytest.mark.parametrize("nodes", [2, 40])
def test_pods_are_looked_at_once_however_many_nodes_there_are(nodes: int) -> None:
    """Of a thousand nodes, not each looks at the pods of all others."""
    counted = CountedPod(pod("a", "n1", {QOS: "BE"}))
    views, _ = migrate_check.judge([*(node(f"n{place}") for place in range(nodes)), counted])

    assert counted.looks == 1
    assert {view.name: dict(view.pods) for view in views}["n1"] == {"BE": 1}
