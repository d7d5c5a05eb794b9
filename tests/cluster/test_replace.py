"""koordlet beside Koordinator's agent on a real node, in its place, and the way back.

Covers: the steps of docs/replace.md, each seen at the node's files; ``migrate-check`` of a real
server. Koordinator's agent is a program with the names, port, socket and flags of theirs, and
writes as it does: again and again, and nothing back at its end.
Does not cover: each finding (``tests.cli``), Koordinator's manager and scheduler.
"""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from tests.cluster import test_node_life
from tests.deploy.documents import DEPLOY
from tests.kit import deadline, installed, kubelet_node, live, needs
from tests.kit.kubelet_node import settled

#: A node, and four agents' pods after each other on it.
pytestmark = [pytest.mark.cluster, pytest.mark.soak]

OVERLAYS = DEPLOY / "overlays"
#: Nothing here depends on what this machine is doing.
CONFIG = """
policies:
  reserved_cpus: {mode: enforce, cpus: '0'}
  shared_pools: {mode: enforce}
  adaptive: {mode: 'off'}
"""
LABEL = "koordlet.io/agent"
SPACE = "/api/v1/namespaces/koordinator-system"
#: As the component has it, and Koordinator's chart.
OURS, THEIRS = 9416, 9316
#: In the node's /run, which both agents see.
OUR_SOCKET, THEIR_SOCKET = "koordlet-beside/koordlet.sock", "koordlet/koordlet.sock"
#: Best-effort work on one CPU and with a quota, which are not what koordlet would choose.
QUOTA = "150000"
PEER = f"""
import contextlib, glob, os, socket, sys, time
group = sys.argv[1]
path = "/host-run/koordlet.sock"
if os.path.exists(path):
    os.unlink(path)
hooks, web = socket.socket(socket.AF_UNIX), socket.create_server(("127.0.0.1", {THEIRS}))
hooks.bind(path)
hooks.listen()
while True:
    for server in (hooks, web):
        server.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                server.accept()[0].close()
    tier = f"{{group}}/kubepods/besteffort"
    values = dict.fromkeys(glob.glob(f"/sys/fs/cgroup/cpuset/{{tier}}/pod*/*/cpuset.cpus"), "0")
    values[f"/sys/fs/cgroup/cpu/{{tier}}/cpu.cfs_quota_us"] = "{QUOTA}"
    for file, value in values.items():
        # A pod may have gone, or have fewer CPUs while koordlet's agent ends.
        with contextlib.suppress(OSError), open(file, "w") as opened:
            opened.write(value)
    time.sleep(0.2)
"""


@pytest.fixture
def peer(tmp_path: Path) -> Any:
    """A node where Koordinator's agent acts, but not where koordlet's runs."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    needs.two_cpus()
    with kubelet_node.node(tmp_path, "containerd", {}, audit=True, scheduler=True) as node:
        node.start("ls", "LS", requests=test_node_life.LITTLE)
        node.start("be", "BE")
        settled(node, {"ls": "0-1", "be": "0-1"})
        request = node.cluster.request
        request("POST", "/api/v1/namespaces", {"metadata": {"name": "koordinator-system"}})
        request("POST", "/apis/apps/v1/namespaces/koordinator-system/daemonsets", _daemon_set(node))
        strategy = json.dumps({"clusterStrategy": {"cpuSuppressThresholdPercent": 60}})
        config = {"data": {"resource-threshold-config": strategy}}
        named = {"metadata": {"name": "slo-controller-config"}, **config}
        request("POST", f"{SPACE}/configmaps", named)
        yield node


def _daemon_set(node: kubelet_node.Node) -> dict[str, Any]:
    """With the arguments of Koordinator's chart that matter, behind those of the program."""
    labels = {"koord-app": "koordlet"}
    term = {"key": LABEL, "operator": "NotIn", "values": ["yes"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    paths = {"cgroup": ("/sys/fs/cgroup", "/sys/fs/cgroup"), "run": ("/run/koordlet", "/host-run")}
    spec: dict[str, Any] = {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "volumes": [
            {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
            for name, (path, _) in paths.items()
        ],
    }
    box: dict[str, Any] = {
        "name": "koordlet",
        "args": [f"-addr=:{THEIRS}", "-feature-gates=BECPUEvict=true"],
        "env": [],
        "volumeMounts": [{"name": name, "mountPath": path} for name, (_, path) in paths.items()],
    }
    template = {"metadata": {"labels": labels}, "spec": {**spec, "containers": [box]}}
    installed.of_this_machine(template)
    box["command"] = [box["command"][0], "-c", PEER, node.group]
    selector = {"matchLabels": labels}
    return {"metadata": {"name": "koordlet"}, "spec": {"selector": selector, "template": template}}


def _acts(node: kubelet_node.Node) -> bool:
    """Whether Koordinator's agent has its port, its socket, and its values in the node's files."""
    with socket.socket(socket.AF_UNIX) as hooks, socket.socket() as web:
        if hooks.connect_ex(_run(node, THEIR_SOCKET)) or web.connect_ex(("127.0.0.1", THEIRS)):
            return False
    return node.cpus()["be"] == "0" and _quota(node) == QUOTA


def _run(node: kubelet_node.Node, name: str) -> str:
    """A file in the node's /run, by a path that a socket may have."""
    inside = node.cluster.the_node().enter()[2]
    return f"/proc/{inside}/root/run/{name}"


def _quota(node: kubelet_node.Node) -> str:
    tier = Path("/sys/fs/cgroup/cpu", node.group.lstrip("/"), "kubepods/besteffort")
    return (tier / "cpu.cfs_quota_us").read_text().strip()


def _files(node: kubelet_node.Node) -> dict[str, Any]:
    """Control files of the two pods, and the CPUs of the groups above all pods."""
    uids = [node.pod(name)["metadata"]["uid"] for name in ("ls", "be")]
    return {
        path: text
        for path, text in test_node_life.control_files(node).items()
        if any(uid in path for uid in uids)
        or (path.endswith("cpuset.cpus") and "/pod" not in path.partition("kubepods")[2])
    }


def _as_before(node: kubelet_node.Node, before: dict[str, Any]) -> None:
    def same() -> bool:
        # Groups of an agent's pod that ends vanish during the look.
        with contextlib.suppress(FileNotFoundError):
            return _files(node) == before
        return False

    deadline.until(same, "the files are as before")


def _label(node: kubelet_node.Node, value: str | None) -> None:
    body = {"metadata": {"labels": {LABEL: value}}}
    node.cluster.request(
        "PATCH", f"/api/v1/nodes/{node.name}", body, "application/merge-patch+json"
    )


def test_koordinators_agent_is_watched_replaced_and_put_back(
    peer: kubelet_node.Node, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside it koordlet changes nothing; in its place it decides; afterwards all is as it was."""
    try:
        deadline.until(lambda: _acts(peer), "Koordinator's agent acts")
    except AssertionError as error:
        error.add_note(str([pod["status"] for pod in peer.admin.items(f"{SPACE}/pods")]))
        raise
    before = _files(peer)

    words = ["migrate-check", "--kubeconfig", str(peer.cluster.kubeconfig), "-o", "json"]
    assert cli.main(words) == 0
    document = json.loads(capsys.readouterr().out)
    differ = [finding["subject"].rpartition(": ")[2] for finding in document["findings"]]
    assert differ == ["daemonset koordinator-system/koordlet", "gate BECPUEvict", "flag addr"]
    [view] = document["nodes"]
    assert view["pods"] == {"BE": 1, "LS": 1, "none": 1}
    assert [*view["strategies"].values()] == [60]

    installed.share_mounts(peer)
    agent = installed.Installed(peer, OURS)
    installed.apply(agent, CONFIG, OVERLAYS / "observe-side-by-side")
    uid = agent.ready()["metadata"]["uid"]
    planned = deadline.until(lambda: agent.ask("/api/v1/plan")["writes"], "a plan")
    assert ("cpuset.cpus", "1") in {(w["path"].rpartition("/")[2], w["value"]) for w in planned}
    _restart_theirs(peer)
    deadline.until(lambda: _acts(peer), "Koordinator's agent acts beside koordlet")
    asked = ["get", "node", "--address", f"unix:{_run(peer, OUR_SOCKET)}", "-o", "json"]
    assert (cli.main(asked), peer.name in capsys.readouterr().out) == (0, True)
    _as_before(peer, before)

    agent.selects({LABEL: "yes"})
    deadline.until(agent.gone, "koordlet runs on labelled nodes only")
    installed.apply(agent, CONFIG, OVERLAYS / "beside-koordinator", {LABEL: "yes"})
    _label(peer, "yes")
    agent.ready(uid=uid)
    settled(peer, {"ls": "1", "be": "1"})
    assert (_acts(peer), _quota(peer)) == (False, QUOTA), "what koordlet does not decide stays"

    uid = agent.ready()["metadata"]["uid"]
    agent.variable("KOORDLET_STATE__ON_STOP", "restore")
    agent.ready(uid=uid)
    settled(peer, {"ls": "1", "be": "1"})
    _label(peer, None)
    deadline.until(agent.gone, "koordlet's pod ends")
    deadline.until(lambda: _acts(peer), "Koordinator's agent acts again")
    _as_before(peer, before)
    assert {restarts for _, restarts in peer.boxes().values()} == {0}
    assert agent.forbidden() == []


def _restart_theirs(node: kubelet_node.Node) -> None:
    """Its new pod takes its socket away from whoever has it."""
    [pod] = node.admin.items(f"{SPACE}/pods")
    node.cluster.request("DELETE", f"{SPACE}/pods/{pod['metadata']['name']}")

    def replaced() -> bool:
        uids = [p["metadata"]["uid"] for p in node.admin.items(f"{SPACE}/pods")]
        return bool(uids) and pod["metadata"]["uid"] not in uids

    deadline.until(replaced, "another pod of Koordinator's agent")
