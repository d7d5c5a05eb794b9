"""Runs in the machine: limits of every class on containers of crun, which nests a group in a scope.

    python3 -m tests.vm.probes.limits

A kubelet is played on loopback; its pods are a real runtime's, under systemd. One has CPUs of its
own, one may burst and is promised memory, one is best-effort with batch amounts, and one like that
begins while the agent is there, is adjusted through NRI, and listed with its id some passes later.

Prints JSON: the files of each container's group and of the scope around it, before the agent, under
it, under its successor after a kill, after the end; its log.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import pathlib
import subprocess
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

from tests.kit import deadline
from tests.kit.containerd import cri, runtime, wire
from tests.vm.probes import playing

GROUPS = pathlib.Path("/sys/fs/cgroup")
WORK = pathlib.Path("/run/limits-probe")
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {grpc: {enabled: false}}
nri: {mode: "on", socket: %s, deadlineMilliseconds: 1400}
kubelet: {mode: "on", address: "127.0.0.1:10255", readOnlyPort: true, intervalSeconds: 1}
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
  batch_limits: {mode: enforce}
  bound_quota: {mode: enforce}
  cpu_burst: {mode: enforce, policy: cpuBurstOnly, cpuBurstPercent: 100}
  memory_qos:
    mode: enforce
    lsClass: {enable: true, minLimitPercent: 50}
"""
FILES: tuple[str, ...] = (
    "cpuset.cpus.effective",
    "cpu.max",
    "cpu.max.burst",
    "cpu.weight",
    "memory.max",
)
FILES += ("memory.min",)
MIB = 1 << 20
BATCH = {"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": str(64 * MIB)}
OWN = {"cpu": "2", "memory": "64Mi"}
#: Name to class of Kubernetes, label, resources as the kubelet lists them, as it tells the runtime:
#: 1 is the period, 2 the quota, 3 shares, 4 memory.
PODS: dict[str, tuple[str, str, dict[str, dict[str, str]], wire.Message]] = {
    "own": (
        "Guaranteed",
        "LSR",
        {"requests": OWN, "limits": OWN},
        {1: 100_000, 2: 200_000, 3: 2048, 4: 64 * MIB},
    ),
    "web": (
        "Burstable",
        "LS",
        {"requests": {"cpu": "1", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "64Mi"}},
        {1: 100_000, 2: 100_000, 3: 1024, 4: 64 * MIB},
    ),
    "job": ("BestEffort", "BE", {"requests": BATCH, "limits": BATCH}, {3: 2}),
    "late": ("BestEffort", "BE", {"requests": BATCH, "limits": BATCH}, {3: 2}),
}


class Kubelet(http.server.BaseHTTPRequestHandler):
    """Lists the pods."""

    boxes: ClassVar[dict[str, str]] = {}
    #: The containers of which it knows ids.
    known: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        """The list, and nothing else."""
        body = json.dumps({"kind": "PodList", "items": [listed(name) for name in PODS]}).encode()
        self.send_response(200 if self.path.startswith("/pods") else 404)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def listed(name: str) -> dict[str, object]:
    """A pod as the kubelet has it; its container's id once it is known."""
    kube, label, asked, _ = PODS[name]
    box = Kubelet.boxes.get(name) if name in Kubelet.known else None
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    status = {"name": "main", "containerID": f"containerd://{box}", "state": state}
    return {
        "metadata": {
            "name": name,
            "namespace": "t",
            "uid": name,
            "labels": {"koordinator.sh/qosClass": label},
        },
        "spec": {"nodeName": "n", "containers": [{"name": "main", "resources": asked}]},
        "status": {
            "phase": "Running",
            "qosClass": kube,
            "containerStatuses": [status] if box else [],
        },
    }


def pod_slice(name: str) -> str:
    """The unit of a pod."""
    tier = PODS[name][0].lower()
    return f"kubepods-{'' if tier == 'guaranteed' else f'{tier}-'}pod{name}.slice"


def start(client: cri.Client, name: str) -> None:
    """A pod and its container."""
    sandbox = client.run_pod(name, pod_slice(name))
    Kubelet.boxes[name] = client.run(sandbox, "main", resources=PODS[name][3])


def files() -> dict[str, dict[str, str]]:
    """What each container's scope and the group nested in it say."""
    values: dict[str, dict[str, str]] = {}
    for name, box in Kubelet.boxes.items():
        (scope,) = GROUPS.glob(f"kubepods.slice/**/{pod_slice(name)}/cri-containerd-{box}.scope")
        for what, group in ((f"{name} scope", scope), (name, scope / "container")):
            values[what] = {name: (group / name).read_text().strip() for name in FILES}
    return values


@contextlib.contextmanager
def agent(containerd: runtime.Runtime) -> Iterator[subprocess.Popen[bytes]]:
    """The agent as a process, connected."""
    before = containerd.log.count('-koordlet\\" connected')
    with playing.agent(WORK, CONFIG % containerd.nri_socket) as who:
        deadline.until(lambda: containerd.log.count('-koordlet\\" connected') > before, "connected")
        yield who


def limited(name: str) -> bool:
    """Whether a batch amount is in force."""
    return files()[name]["memory.max"] == str(64 * MIB)


def settled() -> dict[str, dict[str, str]]:
    """The files, once every policy has done its part; as they are where one never does."""

    def done() -> bool:
        now = files()
        return (
            now["own"]["cpu.max"].startswith("max")
            and "0" not in (now["web"]["cpu.max.burst"], now["web"]["memory.min"])
            and all(limited(name) for name in now if name.startswith(("job", "late")))
        )

    with contextlib.suppress(AssertionError):
        deadline.until(done, "limits of every class", seconds=60)
    return files()


def play(containerd: runtime.Runtime, facts: dict[str, Any]) -> None:
    """The agent comes, is killed, comes again, and goes."""
    for name in ("own", "web", "job"):
        start(containerd.client, name)
        Kubelet.known.add(name)
    facts["before"] = files()
    with agent(containerd) as who:
        settled()
        start(containerd.client, "late")
        facts["born"] = files()
        with contextlib.suppress(AssertionError):
            deadline.until(lambda: limited("late scope"), "a pass over it", seconds=60)
        facts["unlisted"] = files()
        Kubelet.known.add("late")
        facts["under"] = settled()
        who.kill()
        who.wait()
    with agent(containerd) as who:
        facts["again"] = settled()
        who.terminate()
        facts["status"] = who.wait(deadline.PATIENCE)
    facts["after"] = files()


def main() -> None:
    """One life of a runtime with two agents."""
    WORK.mkdir(parents=True)
    # A sandbox gets a copy of it.
    pathlib.Path("/etc/resolv.conf").touch()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 10255), Kubelet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    containerd = runtime.running(WORK / "containerd", nri=True, bare=True, systemd=True, oci="crun")
    with containerd as engine, playing.told(WORK) as facts:
        play(engine, facts)


if __name__ == "__main__":
    main()
