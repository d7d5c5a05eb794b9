"""Runs in the guest: pods of every class as a kubelet reports them, and where they really run.

Covers: a kubelet's answer on loopback, groups as the kubelet and a runtime make them, a process in
each container, an agent that is killed, comes back, loses a CPU and gets it again.
Does not cover: what must be seen (``tests.vm.test_classes``).

Prints JSON: for each moment the allowed CPUs of every process as ``/proc/PID/status`` has them.
"""

from __future__ import annotations

import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path("/sys/fs/cgroup")
STATE = pathlib.Path("/tmp/state")
DEADLINE = 60.0
TIERS = {"Guaranteed": "", "Burstable": "burstable", "BestEffort": "besteffort"}
CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
kubelet: {mode: "on", address: "127.0.0.1:10255", readOnlyPort: true, intervalSeconds: 1}
node: {annotations: {node.koordinator.sh/cpu-normalization-ratio: "1.25"}}
policies:
  reserved_cpus: {cpus: "0-1"}
  cpu_burst: {policy: cpuBurstOnly}
  cpu_normalization: {mode: enforce}
"""
LABEL = "koordinator.sh/qosClass"
STATUS = "scheduling.koordinator.sh/resource-status"
SPEC = "scheduling.koordinator.sh/resource-spec"


def status(cpus: str = "", node: int | None = None) -> dict[str, str]:
    """A scheduler's decision as the pod carries it."""
    body: dict[str, Any] = {"cpuset": cpus} if cpus else {}
    if node is not None:
        body["numaNodeResources"] = [{"node": node, "resources": {"cpu": "1"}}]
    return {STATUS: json.dumps(body)}


#: Name to class of Kubernetes, label, annotations, CPUs asked for.
PODS: dict[str, tuple[str, str, dict[str, str], str]] = {
    "lse": ("Guaranteed", "LSE", status("2-3"), "2"),
    "lsr": ("Guaranteed", "LSR", status("4-5"), "2"),
    "chosen": ("Guaranteed", "LSR", {}, "2"),
    "spread": ("Guaranteed", "LSR", {SPEC: '{"requiredCPUBindPolicy": "SpreadByPCPUs"}'}, "2"),
    "late": ("Guaranteed", "LSR", status("3,6"), "2"),
    "gone": ("Guaranteed", "LSE", status("40-41"), "2"),
    "ls": ("Burstable", "LS", {}, "1"),
    "near": ("Burstable", "LS", status(node=3), "1"),
    "plain": ("Burstable", "", {}, "1"),
    "be": ("BestEffort", "BE", {}, ""),
    "system": ("Burstable", "SYSTEM", {}, "1"),
}
#: These have a limit of one CPU. Another agent has let the second save up as much.
LIMITED = ("ls", "plain")
PERIOD = 100_000


def identity(name: str) -> str:
    """The pod's UID."""
    return f"{name}-0000-0000"


def pod(name: str) -> dict[str, object]:
    """As the kubelet lists it."""
    kube, label, notes, cpus = PODS[name]
    asked = {"requests": {"cpu": cpus}} if cpus else {}
    if kube == "Guaranteed" or name in LIMITED:
        asked["limits"] = {"cpu": cpus}
    return {
        "metadata": {
            "name": name,
            "namespace": "t",
            "uid": identity(name),
            "labels": {LABEL: label} if label else {},
            "annotations": notes,
        },
        "spec": {"nodeName": "n", "containers": [{"name": "main", "resources": asked}]},
        "status": {
            "phase": "Running",
            "qosClass": kube,
            "containerStatuses": [
                {
                    "name": "main",
                    "containerID": f"containerd://{box(name)}",
                    "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                }
            ],
        },
    }


def box(name: str) -> str:
    """The container's id."""
    return name.encode().hex().ljust(64, "0")


class Kubelet(http.server.BaseHTTPRequestHandler):
    """Lists the pods that are there."""

    listed: tuple[str, ...] = ()

    def do_GET(self) -> None:
        """Every path is the list."""
        body = json.dumps(
            {"kind": "PodList", "items": [pod(name) for name in self.listed]}
        ).encode()
        self.send_response(200 if self.path.startswith("/pods") else 404)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def trees() -> list[pathlib.Path]:
    """The hierarchies in which a runtime makes groups here."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    return [ROOT / controller for controller in ("cpuset", "cpu", "memory")]


def place(kube: str, uid: str, container: str) -> str:
    """The container's group."""
    return "/".join(part for part in ("kubepods", TIERS[kube], f"pod{uid}", container) if part)


def start(kube: str, uid: str, container: str) -> int:
    """A container with a process in it, as a runtime starts one; the process."""
    with subprocess.Popen(["sleep", "infinity"]) as process:
        for tree in trees():
            here = tree
            for step in place(kube, uid, container).split("/"):
                hand_down(here)
                here /= step
                here.mkdir(exist_ok=True)
                inherit(here)
            (here / "cgroup.procs").write_text(str(process.pid))
        process.returncode = 0  # it stays
    return process.pid


def end(name: str, pid: int) -> None:
    """As a runtime ends a pod: its process, then its groups."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    for tree in trees():
        group = tree / place(PODS[name][0], identity(name), box(name))
        group.rmdir()
        group.parent.rmdir()


def hand_down(group: pathlib.Path) -> None:
    """v2: as runc does before it makes a group inside."""
    switches = group / "cgroup.subtree_control"
    if switches.exists():
        switches.write_text("+cpuset +cpu +memory")


def inherit(group: pathlib.Path) -> None:
    """v1: as runc does, since a new set is empty and takes no process."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        file = group / name
        if (group / "cpuset.effective_cpus").exists() and not file.read_text().strip():
            file.write_text((group.parent / name).read_text())


def cpu_files(name: str) -> dict[str, pathlib.Path]:
    """Quota and burst of a pod and of its container."""
    unified = (ROOT / "cgroup.controllers").exists()
    tree = ROOT if unified else ROOT / "cpu"
    pod_group = tree / place(PODS[name][0], identity(name), "")
    quota, burst = (
        ("cpu.max", "cpu.max.burst") if unified else ("cpu.cfs_quota_us", "cpu.cfs_burst_us")
    )
    return {
        "pod quota": pod_group / quota,
        "quota": pod_group / box(name) / quota,
        "burst": pod_group / box(name) / burst,
    }


def limit(name: str) -> None:
    """The limit of a pod, from the top down as the kubelet and the runtime write it."""
    files = cpu_files(name)
    files["pod quota"].write_text(str(PERIOD))
    files["quota"].write_text(str(PERIOD))
    if name == LIMITED[1]:
        files["burst"].write_text(str(PERIOD))


def cpu_time() -> dict[str, dict[str, int]]:
    """Quotas and bursts as they are."""
    return {
        name: {what: int(file.read_text().split()[0]) for what, file in cpu_files(name).items()}
        for name in LIMITED
    }


def allowed(pid: int) -> str:
    """The CPUs that the kernel lets a process run on."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.split()[1]
    return ""


def document(path: str) -> dict[str, Any]:
    """What the agent says."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:9316{path}", timeout=5) as answer:
            parsed = json.load(answer)
    except OSError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def until(done: Callable[[], bool]) -> float | None:
    """Seconds until it holds, ``None`` if it never does."""
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > DEADLINE:
            return None
        time.sleep(0.02)
    return time.monotonic() - began


class Scene:
    """The processes, and what was seen of them."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self.moments: dict[str, dict[str, str]] = {}
        self.cpu_time: dict[str, dict[str, dict[str, int]]] = {}
        self.seconds: dict[str, float | None] = {}
        self.agent: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """An agent."""
        pathlib.Path("/tmp/config.yaml").write_text(CONFIG)
        command = [sys.executable, "-m", "koordlet", "run", "--config", "/tmp/config.yaml"]
        with pathlib.Path("/tmp/agent.log").open("ab") as log:
            self.agent = subprocess.Popen(
                [*command, "--state-dir", str(STATE)], stdout=log, stderr=log
            )

    def see(self, name: str) -> None:
        """Where everybody may run now."""
        self.moments[name] = {who: allowed(pid) for who, pid in self.pids.items()}
        self.cpu_time[name] = cpu_time()

    def settled(self) -> bool:
        """An agent that is ready and has nothing to do."""
        plan = document("/api/v1/plan")
        return bool(plan) and not plan.get("actions") and document("/api/v1/node")["ready"] is True

    def settle(self, name: str, done: Callable[[], bool]) -> None:
        """Wait for it, and look."""
        self.seconds[name] = until(lambda: done() and self.settled())
        self.see(name)


def main() -> None:
    """Everything, in order."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 10255), Kubelet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scene = Scene()
    for name in PODS:
        scene.pids[name] = start(PODS[name][0], identity(name), box(name))
    for name in LIMITED:
        limit(name)
    scene.see("before")
    Kubelet.listed = tuple(PODS)
    scene.begin()

    def held(who: str) -> str:
        return allowed(scene.pids[who])

    scene.settle(
        "placed", lambda: held("lse") == "2-3" and held("be") != scene.moments["before"]["be"]
    )
    conditions = document("/api/v1/node").get("conditions")
    owners = document("/api/v1/cpus").get("owners")
    # A pod that nobody has listed yet: its tier is right already.
    scene.pids["unlisted"] = start("BestEffort", "unlisted-0000-0000", "ab" * 32)
    scene.see("newcomer")
    killed(scene)
    lose_a_cpu(scene)
    end("lse", scene.pids.pop("lse"))
    Kubelet.listed = tuple(name for name in PODS if name != "lse")
    scene.settle("lse left", lambda: "2" in held("ls").split("-")[0].split(","))
    assert scene.agent is not None
    scene.agent.terminate()
    status_ = scene.agent.wait()
    scene.see("restored")
    print(
        json.dumps(
            {
                "moments": scene.moments,
                "cpu_time": scene.cpu_time,
                # A pod may end between a tick's look and its write: "vanished".
                "refused": [
                    line for line in audit_lines() if line["verdict"] not in ("done", "vanished")
                ],
                "seconds": scene.seconds,
                "conditions": conditions,
                "owners": owners,
                "status": status_,
                "log": pathlib.Path("/tmp/agent.log").read_text()[-4000:],
            }
        )
    )


def audit_lines() -> list[dict[str, Any]]:
    """What was written or refused, of CPU time."""
    lines = (STATE / "log/audit.jsonl").read_text().splitlines()
    entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [line for line in entries if "/cpu.c" in line["target"] or "/cpu.max" in line["target"]]


def killed(scene: Scene) -> None:
    """SIGKILL, and another agent."""
    assert scene.agent is not None
    scene.agent.send_signal(signal.SIGKILL)
    scene.agent.wait()
    scene.begin()
    scene.settle("after a kill", lambda: True)


def lose_a_cpu(scene: Scene) -> None:
    """One CPU of the chosen set goes offline and comes back."""
    lost = scene.moments["placed"]["chosen"].replace("-", ",").split(",")[-1]
    switch = pathlib.Path(f"/sys/devices/system/cpu/cpu{lost}/online")
    before = allowed(scene.pids["chosen"])
    switch.write_text("0")
    scene.settle("a CPU lost", lambda: "," in allowed(scene.pids["chosen"]))
    switch.write_text("1")
    scene.settle("the CPU back", lambda: document("/api/v1/topology").get("offline") == "")
    scene.moments["lost"] = {"cpu": lost, "before": before}


if __name__ == "__main__":
    main()
