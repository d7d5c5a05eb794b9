"""A real node of the lab's Kubernetes (``k8s_lab``): a runtime, a kubelet, pods by name.

Covers: starting it, pods, the CPUs of their containers.
Does not cover: the control plane, and where the lab is (``k8s_lab``).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.kit import k8s_lab

PROJECT = Path(__file__).parents[2]
_PODS = "/api/v1/namespaces/default/pods"
_ROLES = "/apis/rbac.authorization.k8s.io/v1"
_ACCOUNT = ("koordlet-system", "koordlet")
_QOS = "koordinator.sh/qosClass"
_ACT = "trap 'exit 0' TERM; while :; do sleep 0.2; done"


def why_not() -> str:
    """Why there is no node; empty where there can be one."""
    return "this machine has a kubelet already" if Path("/var/lib/kubelet").exists() else ""


@dataclass(frozen=True, slots=True)
class Node:
    """A control plane and its one node."""

    cluster: Any
    place: Path

    @property
    def group(self) -> str:
        """The kubelet's cgroup root."""
        return str(self.cluster.the_node().group)

    def config(self) -> str:
        """The sections of an agent that speaks to kubelet, API server and runtime of this node."""
        node = self.cluster.the_node()
        port = self.cluster.processes.state["ports"]["kubelet"]
        account = self.cluster.service_account(*_ACCOUNT)
        token = self.place / "token"
        token.write_text(json.loads(account.read_text())["users"][0]["user"]["token"])
        kubelet = {
            "mode": "on",
            "address": f"{node.address}:{port}",
            "caFile": str(self.cluster.pki / "ca.crt"),
            "tokenFile": str(token),
            "directory": str(self.cluster.folder / "node/kubelet"),
        }
        sections = {
            "node": {"name": node.name},
            "kubelet": kubelet,
            "kube": {"mode": "on", "kubeconfig": str(account)},
            "nri": {"mode": "on", "socket": node.outside("/run/nri/nri.sock")},
        }
        return yaml.safe_dump(sections)

    def start(self, name: str, qos: str = "", **resources: Mapping[str, str]) -> None:
        """A pod with one container that runs until told to end."""
        box = {
            "name": "main",
            "image": "lab.local/busybox:1",
            "command": ["sh", "-c", _ACT],
            "resources": resources,
        }
        spec = {
            "nodeName": self.cluster.the_node().name,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "tolerations": [{"operator": "Exists"}],
            "containers": [box],
        }
        meta = {"name": name, "labels": {_QOS: qos} if qos else {}}
        self.cluster.request("POST", _PODS, {"metadata": meta, "spec": spec})

    def delete(self, name: str) -> None:
        """Let a pod end."""
        self.cluster.request("DELETE", f"{_PODS}/{name}")

    def boxes(self) -> dict[str, tuple[str, int]]:
        """Pods to the ids of their containers, where these run, and to their restarts."""
        running = {}
        for pod in self.cluster.request("GET", _PODS)["items"]:
            [box] = pod["status"].get("containerStatuses") or [{}]
            runs = "running" in box.get("state", {})
            identity = str(box.get("containerID", "")).rpartition("/")[2]
            restarts = int(box.get("restartCount", 0))
            running[str(pod["metadata"]["name"])] = (identity if runs else "", restarts)
        return running

    def cpus(self) -> dict[str, str]:
        """Pods to the cpusets of their running containers."""
        cpus = {}
        groups = Path("/sys/fs/cgroup/cpuset", self.group)
        for name, (identity, _) in self.boxes().items():
            # Groups of a pod that ends vanish during the search.
            with contextlib.suppress(OSError):
                for path in groups.glob(f"kubepods/**/*{identity}/cpuset.cpus") if identity else ():
                    cpus[name] = path.read_text().strip()
        return cpus


@contextlib.contextmanager
def node(place: Path, runtime: str, kubelet: Mapping[str, object]) -> Iterator[Node]:
    """A node with this runtime and these settings of its kubelet; the agent's role is there."""
    settings = place / "kubelet.yaml"
    header = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    settings.write_text(yaml.safe_dump({**header, **kubelet}))
    with k8s_lab.cluster(place / "k8s") as cluster:
        cluster.node(runtime=runtime, kubelet_config=settings)
        for body in yaml.safe_load_all((PROJECT / "deploy/daemonset.yaml").read_text()):
            if body["kind"] in {"ClusterRole", "ClusterRoleBinding"}:
                cluster.request("POST", f"{_ROLES}/{body['kind'].lower()}s", body)
        yield Node(cluster, place)
