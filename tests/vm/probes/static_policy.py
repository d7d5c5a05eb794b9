"""Runs in the machine: NRI beside a kubelet with the static CPU policy, on cgroup v2.

    python3 tests/vm/probes/static_policy.py

A kubelet's part is played from its checkpoint and its calls to the runtime: one container has CPUs
that ``cpu_manager_state`` names, the others are given the default set, at birth and again later.

Prints JSON: the CPUs of each first act, what the kubelet's update left, the kubelet's own set at
each moment, what was there after the agent's end.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from tests.kit import deadline
from tests.kit.containerd import cri, runtime

GROUPS = pathlib.Path("/sys/fs/cgroup")
WORK = pathlib.Path("/run/static-policy")
#: What the kubelet's policy gave away, and what is left for the others.
HELD, DEFAULT = "2-3", "0-1,4-7"
ASK = ("/bin/busybox", "sh", "-c", "grep Cpus_allowed_list /proc/self/status; exec sleep 86400")
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {http: {enabled: false}, grpc: {enabled: false}}
nri: {mode: "on", socket: %s, deadlineMilliseconds: 1400}
kubelet: {mode: "on", directory: %s, address: "127.0.0.1:1", intervalSeconds: 300}
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
"""
#: LinuxContainerResources: cpuset_cpus.
CPUS = 6


class Scene:
    """A runtime, and pods of a kubelet."""

    def __init__(self, containerd: runtime.Runtime) -> None:
        self.client = containerd.client
        self.runtime = containerd
        self.boxes: dict[str, str] = {}

    def pod(self, tier: str, uid: str) -> cri.Sandbox:
        """A pod where a kubelet with this driver has it."""
        path = "/".join(part for part in ("/kubepods", tier, f"pod{uid}") if part)
        return self.client.run_pod(uid, path, logs=str(WORK / uid))

    def start(self, name: str, pod: cri.Sandbox, cpus: str) -> str:
        """A container that the kubelet wants on these; the CPUs that its first act found."""
        self.boxes[name] = self.client.run(pod, name, ASK, {CPUS: cpus})
        path = WORK / pod.uid / f"{name}.log"

        def said() -> str:
            text = path.read_text() if path.exists() else ""
            allowed = re.search(r"Cpus_allowed_list:\s*(\S+)\n", text)
            return allowed[1] if allowed is not None else ""

        return deadline.until(said, f"{name} has printed")

    def cpus(self, name: str) -> str:
        """The set in effect."""
        file = next(GROUPS.glob(f"kubepods*/**/*{self.boxes[name]}*/cpuset.cpus.effective"))
        return file.read_text().strip()


def checkpoint(entries: Mapping[str, Mapping[str, str]]) -> pathlib.Path:
    """The kubelet's directory with its state."""
    folder = WORK / "kubelet"
    folder.mkdir(exist_ok=True)
    state = {
        "policyName": "static",
        "defaultCpuSet": DEFAULT,
        "entries": entries,
        "checksum": 0,
    }
    (folder / "cpu_manager_state").write_text(json.dumps(state))
    return folder


@contextlib.contextmanager
def agent(scene: Scene, kubelet: pathlib.Path) -> Iterator[subprocess.Popen[bytes]]:
    """The agent as a process, connected."""
    config = WORK / "koordlet.yaml"
    config.write_text(CONFIG % (scene.runtime.nri_socket, kubelet))
    words = [sys.executable, "-m", "koordlet", "run", "--config", str(config)]
    with (WORK / "agent.log").open("ab") as log:
        process = subprocess.Popen([*words, "--state-dir", str(WORK / "state")], stderr=log)
        try:
            deadline.until(
                lambda: '-koordlet\\" connected' in scene.runtime.log, "the agent is connected"
            )
            yield process
        finally:
            process.kill()
            process.wait()


def play(scene: Scene, facts: dict[str, Any]) -> None:
    """First acts, the kubelet's reconciliation, the end."""
    own, plain = str(uuid.uuid4()), str(uuid.uuid4())
    folder = checkpoint({own: {"own": HELD}})
    with agent(scene, folder) as who:
        facts["own"] = scene.start("own", scene.pod("", own), HELD)
        facts["plain"] = scene.start("plain", scene.pod("burstable", plain), DEFAULT)
        scene.client.update(scene.boxes["plain"], {CPUS: DEFAULT})
        scene.client.update(scene.boxes["own"], {CPUS: HELD})
        facts["updated"] = [scene.cpus(name) for name in ("own", "plain")]
        who.terminate()
        facts["status"] = who.wait(deadline.PATIENCE)
    facts["after"] = [scene.cpus(name) for name in ("own", "plain")]


def main() -> None:
    """One life of a runtime with an agent."""
    WORK.mkdir(parents=True)
    # A sandbox gets a copy of it.
    pathlib.Path("/etc/resolv.conf").touch()
    facts: dict[str, Any] = {}
    with runtime.running(WORK / "containerd", nri=True, bare=True, systemd=False) as containerd:
        try:
            play(Scene(containerd), facts)
        finally:
            facts["log"] = (WORK / "agent.log").read_text()[-6000:]
            print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
