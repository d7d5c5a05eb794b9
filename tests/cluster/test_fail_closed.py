"""A runtime that requires the agent's plugin creates no container while the agent is away.

Covers: containerd's ``required_plugins`` with ``deploy/overlays/fail-closed``: ordinary pods wait,
the agent's own pod, static and node-critical pods start; a node that starts anew comes back.
Does not cover: the agent's answers (``test_node_life``), CRI-O's spelling of the same settings.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.documents import DEPLOY
from tests.kit import deadline, installed, kubelet_node, live, needs

#: More than a minute of waiting for the kubelet's next attempts.
pytestmark = [pytest.mark.cluster, pytest.mark.soak]

MARK = {"koordlet.io/starts-without-agent": "true"}
LITTLE = {"memory": "8Mi"}
SYSTEM = "/api/v1/namespaces/kube-system/pods"
BOX = {"name": "main", "image": "lab.local/busybox:1", "command": ["sleep", "1000000"]}
SELECTOR = {"koordlet.io/away": "true"}


def manual() -> str:
    """The section of containerd's configuration, as the manual has it."""
    page = (DEPLOY.parent / "docs/nri.md").read_text().partition("## Fail closed")[2]
    return page.partition("```toml")[2].partition("```")[0]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kubelet_node.Node]:
    """A node whose runtime requires the plugin, and whose kubelet has a static pod."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    needs.two_cpus()
    folder = tmp_path_factory.mktemp("closed")
    static = folder / "static"
    static.mkdir()
    settings = {"staticPodPath": str(static)}
    with kubelet_node.node(folder, "containerd", settings, scheduler=True) as made:
        programs = made.cluster.processes
        programs.stop("containerd")
        with (made.cluster.folder / "node/runtime.toml").open("a") as config:
            config.write(manual())
        programs.start("containerd")
        meta = {"name": "static", "namespace": "kube-system", "annotations": MARK}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [BOX]}}
        (static / "static.json").write_text(json.dumps(pod))
        yield made


def critical(node: kubelet_node.Node) -> None:
    """A node-critical pod of the cluster's own."""
    meta = {"name": "critical", "annotations": MARK}
    spec = {
        "nodeName": node.name,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "containers": [BOX],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
    }
    node.admin.need("POST", SYSTEM, {"metadata": meta, "spec": spec})


def system(node: kubelet_node.Node) -> dict[str, int]:
    """Running pods of kube-system, with their restarts."""
    boxes = {
        pod["metadata"]["name"]: pod["status"].get("containerStatuses", [{}])[0]
        for pod in node.admin.need("GET", SYSTEM)["items"]
    }
    return {
        name: box["restartCount"]
        for name, box in boxes.items()
        if box.get("state", {}).get("running")
    }


def refusal(node: kubelet_node.Node, name: str) -> str:
    """Why a pod's container waits."""
    status = node.pod(name).get("status", {}).get("containerStatuses", [{}])[0]
    return str(status.get("state", {}).get("waiting", {}).get("message", ""))


def runs(node: kubelet_node.Node, *names: str) -> None:
    """Wait until these pods run; the kubelet tries again after up to a minute and a half."""
    state: list[Any] = []

    def asked() -> bool:
        state[:] = [node.boxes()]
        return all(state[0].get(name, ("", 0))[0] for name in names)

    try:
        deadline.until(asked, f"{names} run", seconds=150)
    except AssertionError as error:
        error.add_note(f"{state}, {[refusal(node, name) for name in names]}")
        raise


def anew(node: kubelet_node.Node) -> None:
    """End kubelet, runtime and every container, as a node that loses power does; start it."""
    programs = node.cluster.processes
    for name in ("kubelet", "containerd"):
        programs.stop(name, signal.SIGKILL)
    top = Path("/sys/fs/cgroup/cpuset", node.group.lstrip("/"), "kubepods")
    for file in top.rglob("cgroup.procs"):
        for pid in file.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    programs.start("containerd")
    deadline.until(node.cluster.the_node()._serves, "containerd serves")
    programs.start("kubelet")


def test_without_the_agent_only_marked_pods_start(node: kubelet_node.Node) -> None:
    """The refusal names the plugin. The agent's return, and a node that starts anew, end it."""
    critical(node)
    node.start("plain", requests=LITTLE)
    deadline.until(
        lambda: {"critical", f"static-{node.name}"} <= system(node).keys(), "marked pods"
    )
    deadline.until(lambda: "koordlet" in refusal(node, "plain"), "the reason of the refusal")

    agent = installed.install(node, "policies: {}\n", DEPLOY / "overlays/fail-closed")
    runs(node, "plain")
    agent.selects(SELECTOR)
    deadline.until(agent.gone, "the agent is gone")
    node.start("late", requests=LITTLE)
    deadline.until(lambda: "koordlet" in refusal(node, "late"), "the reason of the refusal")
    assert node.boxes()["plain"][0]

    agent.selects({"koordlet.io/away": None})
    agent.ready()
    runs(node, "late")
    anew(node)
    again = lambda: agent.pod() and agent.restarts() >= 1  # noqa: E731
    deadline.until(again, "the agent's container is created again", seconds=150)
    runs(node, "plain", "late")
    marked = deadline.until(lambda: s if len(s := system(node)) == 2 else None, "marked pods")
    assert min(marked.values()) >= 1
    path = "/api/v1/namespaces/default/pods"
    body = {"metadata": {"name": "sly", "annotations": MARK}, "spec": {"containers": [BOX]}}
    status, answer = node.admin.ask("POST", path, body)
    assert (status, "koordlet.io/starts-without-agent" in answer["message"]) == (403, True)
