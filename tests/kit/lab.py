"""A real Kubernetes on this machine, where one lies beside the checkout: a node, and its pods.

Covers: finding it, a node with a runtime, pods by name, their containers' CPUs.
Does not cover: how it starts and ends (its own README).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[2]
#: The folder of the lab; else it lies beside the checkout.
VARIABLE = "KOORDLET_TEST_LAB"
_PODS = "/api/v1/namespaces/default/pods"
_ROLES = "/apis/rbac.authorization.k8s.io/v1"
_ACCOUNT = ("koordlet-system", "koordlet")
_QOS = "koordinator.sh/qosClass"
_ACT = "trap 'exit 0' TERM; while :; do sleep 0.2; done"


def folder() -> Path:
    """Where the lab is, or would be."""
    return Path(os.environ.get(VARIABLE) or PROJECT.parent / "shared/lab/k8s")


def why_not() -> str:
    """Why there is no node; empty where there can be one."""
    if not (folder() / "cluster.py").exists():
        return f"no real Kubernetes beside the checkout; {VARIABLE} may name its folder"
    if Path("/var/lib/kubelet").exists():
        return "this machine has a kubelet already"
    return ""


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
        found = {}
        for pod in self.cluster.request("GET", _PODS)["items"]:
            [box] = pod["status"].get("containerStatuses") or [{}]
            runs = "running" in box.get("state", {})
            identity = str(box.get("containerID", "")).rpartition("/")[2]
            restarts = int(box.get("restartCount", 0))
            found[str(pod["metadata"]["name"])] = (identity if runs else "", restarts)
        return found

    def cpus(self) -> dict[str, str]:
        """Pods to the cpusets of their running containers."""
        found = {}
        groups = Path("/sys/fs/cgroup/cpuset", self.group)
        for name, (identity, _) in self.boxes().items():
            # Groups of a pod that ends vanish during the search.
            with contextlib.suppress(OSError):
                for path in groups.glob(f"kubepods/**/*{identity}/cpuset.cpus") if identity else ():
                    found[name] = path.read_text().strip()
        return found


@contextlib.contextmanager
def node(place: Path, runtime: str, kubelet: Mapping[str, object]) -> Iterator[Node]:
    """A node with this runtime and these settings of its kubelet; the agent's role is there."""
    sys.path.insert(0, str(folder()))
    try:
        lab = importlib.import_module("cluster")
    finally:
        sys.path.remove(str(folder()))
    settings = place / "kubelet.yaml"
    header = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    settings.write_text(yaml.safe_dump({**header, **kubelet}))
    with lab.Cluster(place / "k8s") as cluster:
        cluster.node(runtime=runtime, kubelet_config=settings)
        for body in yaml.safe_load_all((PROJECT / "deploy/daemonset.yaml").read_text()):
            if body["kind"] in {"ClusterRole", "ClusterRoleBinding"}:
                cluster.request("POST", f"{_ROLES}/{body['kind'].lower()}s", body)
        yield Node(cluster, place)
