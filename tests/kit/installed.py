"""The agent as its DaemonSet runs it on the lab's real node: ``deploy/``, its own pod and account.

The image is this machine: its interpreter, libraries and this checkout are mounted into a busybox.
Nothing else of the pod differs from the manifest: privileges, mounts, probes, priority.

Covers: installing, the running pod, its log and its HTTP server, the end that the manual describes.
Does not cover: the node and its workloads (``kubelet_node``).
"""

from __future__ import annotations

import contextlib
import copy
import http.client
import json
import os
import socket
import subprocess
import sys
import sysconfig
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.deploy import overlays
from tests.deploy.documents import DEPLOY
from tests.kit import agents, deadline, k8s_lab, kubelet_node

SPACE = "koordlet-system"
ACCOUNT = f"system:serviceaccount:{SPACE}:koordlet"
_PROJECT = Path(__file__).parents[2]
_DAEMONSET = f"/apis/apps/v1/namespaces/{SPACE}/daemonsets/koordlet"
_CONFIG = f"/api/v1/namespaces/{SPACE}/configmaps/koordlet"
_PODS = f"/api/v1/namespaces/{SPACE}/pods"
_STRATEGIC = "application/strategic-merge-patch+json"
#: What an agent reports of its node beside the Node.
_OBJECTS = (
    "slo.koordinator.sh/v1alpha1/nodemetrics",
    "topology.node.k8s.io/v1alpha2/noderesourcetopologies",
    "scheduling.koordinator.sh/v1alpha1/devices",
)
#: Seconds for some commands that each wait for the cluster.
_MANUAL_PATIENCE = 300.0
#: Of the machine, at the same place in the container.
_MACHINE = ("/usr", "/lib", "/lib64")


@dataclass(frozen=True, slots=True)
class Installed:
    """The DaemonSet of one node."""

    node: kubelet_node.Node
    port: int

    def pod(self) -> dict[str, Any]:
        """The agent's pod; empty while there is none, or while it ends."""
        pods: list[dict[str, Any]] = self.node.cluster.request("GET", _PODS)["items"]
        return next((p for p in pods if "deletionTimestamp" not in p["metadata"]), {})

    def gone(self) -> bool:
        """Whether no pod of an agent is left, not even one that ends."""
        return not self.node.cluster.request("GET", _PODS)["items"]

    def ready(self, *, uid: str = "") -> dict[str, Any]:
        """Wait for a ready agent, another than that one where one is named; its pod."""

        def asked() -> dict[str, Any] | None:
            pod = self.pod()
            status = pod.get("status", {}).get("containerStatuses", [{}])[0]
            return pod if status.get("ready") and pod["metadata"]["uid"] != uid else None

        try:
            return deadline.until(asked, "the agent's pod is ready")
        except AssertionError as error:
            error.add_note(json.dumps(self.pod().get("status", {})))
            error.add_note(self.log()[-3000:])
            raise

    def log(self) -> str:
        """What all agents of this node logged, one after the other."""
        below = self.node.cluster.folder / "node/log/pods"
        files = sorted(below.glob(f"{SPACE}_koordlet-*/koordlet/*.log"))
        return "".join(file.read_text() for file in files)

    def ask(self, path: str) -> Any:
        """What its HTTP server answers."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, 5)) as server:
            server.request("GET", path)
            return json.loads(server.getresponse().read())

    def samples(self, name: str) -> list[str]:
        """A metric's samples, as they are written."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, 5)) as server:
            server.request("GET", "/metrics")
            lines = server.getresponse().read().decode().splitlines()
        return [line for line in lines if line.startswith(name)]

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        return sum(float(line.split()[-1]) for line in self.samples(name))

    def process(self) -> int:
        """Of the running container, as this machine counts."""
        [status] = self.ready()["status"]["containerStatuses"]
        groups = Path("/sys/fs/cgroup/cpuset", self.node.group)
        [group] = groups.glob(f"kubepods/**/*{status['containerID'].rpartition('/')[2]}")
        return int((group / "cgroup.procs").read_text().split()[0])

    def restarts(self) -> int:
        """How often the kubelet has started the container again."""
        return int(self.pod()["status"]["containerStatuses"][0]["restartCount"])

    def configure(self, text: str) -> None:
        """Another configuration, as ``kubectl edit configmap`` stores it."""
        body = {"data": {"config.yaml": agents.HEADER + text}}
        self.node.cluster.request("PATCH", _CONFIG, body, _STRATEGIC)

    def variable(self, name: str, value: str) -> None:
        """A variable of the container, as ``kubectl set env`` sets it: every agent is replaced."""
        box = {"name": "koordlet", "env": [{"name": name, "value": value}]}
        body = {"spec": {"template": {"spec": {"containers": [box]}}}}
        self.node.cluster.request("PATCH", _DAEMONSET, body, _STRATEGIC)

    def selects(self, labels: Mapping[str, str | None]) -> None:
        """Run only on nodes with these labels, beside those of the manifest."""
        body = {"spec": {"template": {"spec": {"nodeSelector": labels}}}}
        self.node.cluster.request("PATCH", _DAEMONSET, body, _STRATEGIC)

    def reported(self) -> dict[str, dict[str, Any]]:
        """Objects about the node, by their kind."""
        name, ask = self.node.name, self.node.admin.ask
        answers = [ask("GET", f"/apis/{path}/{name}") for path in _OBJECTS]
        return {body["kind"]: body for status, body in answers if status == http.client.OK}

    def forbidden(self) -> list[str]:
        """Requests of the agents that the server refused for their role or a policy."""
        lines = Path(self.node.cluster.folder, "log/audit.log").read_text().splitlines()
        events = [e for e in map(json.loads, lines) if e["user"].get("username") == ACCOUNT]
        assert events, "the audit log has no request of an agent"
        codes = [(e, e["responseStatus"]["code"]) for e in events]
        return [f"{e['verb']} {e['requestURI']}" for e, code in codes if code == 403]

    def uninstall(self) -> None:
        """Every command of the manual, as it stands there."""
        self.follow("## Uninstall")

    def follow(self, heading: str, programs: str = "") -> None:
        """Run the first commands below a heading of the manual; a folder may have more programs."""
        page = (_PROJECT / "docs/operate-kubernetes.md").read_text().partition(f"\n{heading}\n")[2]
        commands = page.partition("```sh")[2].partition("```")[0]
        path = os.pathsep.join(filter(None, (programs, os.environ["PATH"])))
        done = subprocess.run(
            ["sh", "-ec", commands],
            cwd=_PROJECT,
            env={**os.environ, "KUBECONFIG": str(self.node.cluster.kubeconfig), "PATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=_MANUAL_PATIENCE,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)


def install(node: kubelet_node.Node, config: str, folder: Path = DEPLOY) -> Installed:
    """Apply the manifests of ``deploy/`` and of a folder there; the agent, ready."""
    share_mounts(node)
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        agent = Installed(node, chosen.getsockname()[1])
    apply(agent, config, folder)
    agent.ready()
    return agent


def apply(
    agent: Installed, config: str, folder: Path, nodes: Mapping[str, str] | None = None
) -> None:
    """Apply the manifests of ``deploy/`` and of a folder there, also over those of another one.

    ``nodes``: labels of those where agents run, beside what the manifests say.
    """
    node = agent.node
    documents = {
        (o["kind"], o["metadata"]["name"]): o for f in (DEPLOY, folder) for o in overlays.built(f)
    }
    for document in sorted(documents.values(), key=lambda d: str(d["kind"] != "Namespace")):
        body = copy.deepcopy(document)
        if body["kind"] == "DaemonSet":
            _onto_this_node(body["spec"]["template"], node, agent.port)
            body["spec"]["template"]["spec"].setdefault("nodeSelector", {}).update(nodes or {})
            of_this_machine(body["spec"]["template"])
        if body["kind"] == "ConfigMap":
            body["data"] = {"config.yaml": agents.HEADER + config}
        status, answer = k8s_lab.strict(node.admin, body, dry="")
        assert status < http.client.BAD_REQUEST, answer


def share_mounts(node: kubelet_node.Node) -> None:
    """As systemd has them on every machine: the pod's mount of the cgroups receives later ones."""
    shared = [*node.cluster.the_node().enter(), "mount", "--make-rshared", "/"]
    subprocess.run(shared, check=True, timeout=deadline.PATIENCE)


def _onto_this_node(template: dict[str, Any], node: kubelet_node.Node, port: int) -> None:
    spec = template["spec"]
    [box] = spec["containers"]
    server = urllib.parse.urlsplit(node.cluster.server)
    kubelet = (
        f"{node.cluster.the_node().address}:{node.cluster.processes.state['ports']['kubelet']}"
    )
    variables = {
        # No address of a Service leads anywhere here.
        "KUBERNETES_SERVICE_HOST": server.hostname,
        "KUBERNETES_SERVICE_PORT": str(server.port),
        "KOORDLET_KUBELET__ADDRESS": kubelet,
        "KOORDLET_CGROUPS__ROOT": node.group,
        "KOORDLET_REPORT__HTTP__ADDRESS": f"127.0.0.1:{port}",
    }
    box["env"] = [row for row in box["env"] if row["name"] not in variables]
    box["env"] += [{"name": name, "value": value} for name, value in variables.items()]
    for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
        box[kind]["httpGet"]["port"] = port
    # The machine's own directory is not the node's.
    [lib] = (volume for volume in spec["volumes"] if volume["name"] == "lib")
    lib["hostPath"]["path"] = str(node.place / "lib")


def of_this_machine(template: dict[str, Any]) -> None:
    """Give a pod the machine's interpreter and libraries, and this checkout."""
    spec = template["spec"]
    [box] = spec["containers"]
    packages = sysconfig.get_paths()["purelib"]
    box["image"] = "lab.local/busybox:1"
    box["command"] = [sys._base_executable, "-m", "koordlet"]  # type: ignore[attr-defined]
    box["env"] += [
        {"name": "PYTHONPATH", "value": f"{_PROJECT}:{packages}"},
        {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
    ]
    for number, path in enumerate((*_MACHINE, str(_PROJECT), packages)):
        source = {"path": os.path.realpath(path)}
        spec["volumes"].append({"name": f"machine-{number}", "hostPath": source})
        mount = {"name": f"machine-{number}", "mountPath": path, "readOnly": True}
        box["volumeMounts"].append(mount)
