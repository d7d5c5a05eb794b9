"""A real node of the lab's Kubernetes (``k8s_lab``): a runtime, a kubelet, pods by name.

Covers: starting it, pods, the CPUs of their containers.
Does not cover: the control plane, and where the lab is (``k8s_lab``).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.kit import deadline, k8s_lab

PROJECT = Path(__file__).parents[2]
_PODS = "/api/v1/namespaces/default/pods"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNT = ("koordlet-system", "koordlet")
_QOS = "koordinator.sh/qosClass"
#: The first command says which CPUs it may run on.
_ACT = "grep Cpus_allowed_list: /proc/self/status; trap 'exit 0' TERM; while :; do sleep 0.2; done"


def why_not() -> str:
    """Why there is no node; empty where there can be one."""
    return "this machine has a kubelet already" if Path("/var/lib/kubelet").exists() else ""


@dataclass(frozen=True, slots=True)
class Node:
    """A control plane and its one node."""

    cluster: Any
    place: Path
    admin: k8s_lab.Admin

    @property
    def name(self) -> str:
        """Of the Node object."""
        return str(self.cluster.the_node().name)

    @property
    def runtime(self) -> str:
        """The container runtime's program."""
        return str(self.cluster.the_node().runtime)

    @property
    def group(self) -> str:
        """The kubelet's cgroup root."""
        return str(self.cluster.the_node().group)

    def config(self) -> str:
        """The sections of an agent that speaks to kubelet, API server and runtime of this node."""
        node = self.cluster.the_node()
        port = self.cluster.processes.state["ports"]["kubelet"]
        account = self.cluster.service_account(*ACCOUNT)
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
        self.begin(name, {"containers": [{"resources": resources}]}, {_QOS: qos} if qos else {})

    def begin(
        self,
        name: str,
        spec: Mapping[str, Any],
        labels: Mapping[str, str],
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """A pod of such containers, with more in its spec."""
        usual = {"name": "main", "image": "lab.local/busybox:1", "command": ["sh", "-c", _ACT]}
        body = {
            "nodeName": self.cluster.the_node().name,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "tolerations": [{"operator": "Exists"}],
            **spec,
            "containers": [{**usual, **box} for box in spec["containers"]],
        }
        meta = {"name": name, "labels": labels, "annotations": annotations or {}}
        self.cluster.request("POST", _PODS, {"metadata": meta, "spec": body})

    def pod(self, name: str) -> dict[str, Any]:
        """The object; empty where there is none."""
        status, body = self.admin.ask("GET", f"{_PODS}/{name}")
        return dict(body) if status == http.client.OK else {}

    def first_cpus(self, name: str) -> str:
        """The CPUs that the first command of a pod's container printed; empty before."""
        status, text = self.admin.ask("GET", f"{_PODS}/{name}/log")
        return text.split()[1] if status == http.client.OK and text else ""

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
        several = {
            name: self._container("cpuset.cpus", box) for name, (box, _) in self.boxes().items()
        }
        return {name: texts[0] for name, texts in several.items() if texts}

    def values(self, name: str, file: str) -> list[str]:
        """A file of a pod's running container and of the pod itself."""
        box = self._container(file, self.boxes()[name][0])
        uid = self.pod(name)["metadata"]["uid"]
        groups = Path("/sys/fs/cgroup", file.partition(".")[0], self.group)
        return [
            *box,
            *(path.read_text().strip() for path in groups.glob(f"kubepods/**/pod{uid}/{file}")),
        ]

    def resize(self, name: str, amounts: Mapping[str, str], *, whole: bool) -> None:
        """Ask for other amounts of a running pod: of its container, or of the ``whole`` pod."""
        both = {"requests": amounts, "limits": amounts}
        box = {"name": "main", "resources": both}
        spec = {"resources": both} if whole else {"containers": [box]}
        strategic = "application/strategic-merge-patch+json"
        self.admin.need("PATCH", f"{_PODS}/{name}/resize", {"spec": spec}, strategic)

    def evictions(self) -> list[str]:
        """Events about evicted pods."""
        reasons = ("Evicted", "Preempting", "TaintManagerEviction")
        return [e["message"] for e in self.admin.items("/api/v1/events") if e["reason"] in reasons]

    def policies(self, name: str) -> set[int]:
        """Scheduling policies of the threads of a pod's running container."""
        identity = self.boxes()[name][0]
        groups = Path("/sys/fs/cgroup/cpu", self.group, "kubepods")
        with contextlib.suppress(OSError):
            for listed in groups.glob(f"**/*{identity}*/tasks") if identity else ():
                return {os.sched_getscheduler(int(tid)) for tid in listed.read_text().split()}
        return set()

    def allow_real_time(self) -> None:
        """For the groups above an agent's, where the kernel shares real time out by group."""
        top = Path("/sys/fs/cgroup/cpu")
        inside = Path(self.group).parts
        for depth in range(1, len(inside) + 1):
            runtime = top.joinpath(*inside[:depth], "cpu.rt_runtime_us")
            if runtime.exists():
                runtime.write_text("100000")

    def _container(self, file: str, identity: str) -> list[str]:
        groups = Path("/sys/fs/cgroup", file.partition(".")[0], self.group)
        # Groups of a pod that ends vanish during the search.
        with contextlib.suppress(OSError):
            for path in groups.glob(f"kubepods/**/*{identity}/{file}") if identity else ():
                return [path.read_text().strip()]
        return []


@contextlib.contextmanager
def node(
    place: Path,
    runtime: str,
    kubelet: Mapping[str, object],
    *,
    disk_mib: int = 0,
    **control_plane: Any,
) -> Iterator[Node]:
    """A node with this runtime and these settings of its kubelet; the agent's role is there.

    ``disk_mib``: the kubelet's directory is a file system of its own, and so large.
    """
    settings = place / "kubelet.yaml"
    header = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    settings.write_text(yaml.safe_dump({**header, **kubelet}))
    with contextlib.ExitStack() as stack:
        disk = place / "k8s/node/kubelet"
        stack.callback(_unmount, disk)
        cluster = stack.enter_context(k8s_lab.cluster(place / "k8s", **control_plane))
        if disk_mib:
            disk.mkdir(parents=True)
            mount = ["mount", "-t", "tmpfs", "-o", f"size={disk_mib}m", "disk", str(disk)]
            subprocess.run(mount, check=True)
        cluster.node(runtime=runtime, kubelet_config=settings)
        for body in yaml.safe_load_all((PROJECT / "deploy/daemonset.yaml").read_text()):
            if body["kind"] in {"ClusterRole", "ClusterRoleBinding"}:
                cluster.request("POST", f"{ROLES}/{body['kind'].lower()}s", body)
        with contextlib.closing(k8s_lab.Admin(cluster)) as admin:
            yield Node(cluster, place, admin)


def settled(node: Node, expected: Mapping[str, str]) -> None:
    """Wait until these pods run, each on its CPUs."""
    seen: list[dict[str, str]] = []

    def reached() -> bool:
        seen[:] = [node.cpus()]
        return expected.items() <= seen[0].items()

    try:
        deadline.until(reached, f"CPUs {expected}")
    except AssertionError as error:
        error.add_note(f"CPUs {seen}, pods {node.boxes()}")
        raise


def _unmount(disk: Path) -> None:
    if disk.is_mount():
        subprocess.run(["umount", str(disk)], check=True)
