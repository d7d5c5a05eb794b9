"""Runs in the machine: containers of a real runtime, and the resctrl group that each began in.

Prints JSON: what the first act of each container's program saw, and what was there afterwards.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
import uuid
from collections.abc import Iterator

from tests.kit import deadline
from tests.kit.containerd import cri, runtime

PLACE = pathlib.Path("/sys/fs/resctrl")
WORK = pathlib.Path("/tmp/runtime")
#: The first act is to ask the kernel; then it stays. What a shell starts is where the shell is.
ASK = ("/bin/busybox", "sh", "-c", "cat /proc/self/cpu_resctrl_groups; exec sleep 86400")
KINDS = ("LS", "BE")
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {http: {enabled: false}, grpc: {enabled: false}}
nri: {mode: "on", socket: %(socket)s}
policies:
  reserved_cpus: {mode: "off"}
  shared_pools: {mode: "off"}
  resctrl:
    mode: enforce
    mount: true
    runtimeClasses: true
    beClass: {mbaPercent: 45}
"""


def groups() -> list[str]:
    """What stands below the mount."""
    reserved = {"info", "mon_groups", "mon_data"}
    if not (PLACE / "info").is_dir():
        return []
    return sorted(p.name for p in PLACE.iterdir() if p.is_dir() and p.name not in reserved)


def group_of(pid: int) -> str:
    """The group of a process, as the kernel says; empty for the root group."""
    return parsed(pathlib.Path(f"/proc/{pid}/cpu_resctrl_groups").read_text())


def parsed(text: str) -> str:
    """The control group in ``res:/LS``."""
    return next(x for x in text.splitlines() if x.startswith("res:"))[4:].strip().strip("/")


class Scene:
    """A runtime and its pods."""

    def __init__(self, containerd: runtime.Runtime) -> None:
        self.runtime = containerd

    def pod(self, kind: str) -> cri.Sandbox:
        """A pod of a class, where a kubelet puts it."""
        uid = str(uuid.uuid4())
        tier = "besteffort" if kind == "BE" else "burstable"
        labels = {"koordinator.sh/qosClass": kind}
        parent = f"/kubepods/{tier}/pod{uid}"
        return self.runtime.client.run_pod(uid, parent, labels=labels, logs=str(WORK / uid))

    def first(self, pod: cri.Sandbox) -> str:
        """The group that the first act of a container's program found itself in."""
        path = WORK / pod.uid / "main.log"

        def said() -> str:
            text = path.read_text() if path.exists() else ""
            return text if "mon:" in text else ""

        text = deadline.until(said, f"the container of {pod.uid} has printed")
        lines = (line.split(" ", 3)[-1] for line in text.splitlines())
        return parsed("\n".join(lines))

    def pid(self, pod: cri.Sandbox, box: str) -> int:
        """The process of a container that stays."""
        tier = pathlib.Path("/sys/fs/cgroup")
        procs = next(tier.glob(f"**/pod{pod.uid}/**/{box}*/cgroup.procs"))
        return int(procs.read_text().split()[0])

    def told(self, box: str) -> dict[str, object] | None:
        """What runc was told of resource control."""
        bundle = next(WORK.glob(f"containerd/state/*task/k8s.io/{box}/config.json"))
        schema: dict[str, object] | None = json.loads(bundle.read_text())["linux"].get("intelRdt")
        return schema


@contextlib.contextmanager
def agent(socket: pathlib.Path) -> Iterator[subprocess.Popen[bytes]]:
    """The agent as a process; it ends with the scene."""
    config = WORK / "koordlet.yaml"
    config.write_text(CONFIG % {"socket": socket})
    words = [sys.executable, "-m", "koordlet", "run", "--config", str(config)]
    with (WORK / "agent.log").open("wb") as log:
        process = subprocess.Popen([*words, "--state-dir", str(WORK / "state")], stderr=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def main() -> None:
    """One life of a runtime with an agent."""
    WORK.mkdir()
    # A sandbox gets a copy of it.
    pathlib.Path("/etc/resolv.conf").touch()
    facts: dict[str, object] = {}
    with (
        runtime.running(WORK / "containerd", nri=True, bare=True) as containerd,
        agent(containerd.nri_socket) as who,
    ):
        scene = Scene(containerd)
        try:
            deadline.until(
                lambda: '-koordlet\\" connected' in containerd.log, "the agent is connected"
            )
            deadline.until((PLACE / "info").is_dir, "resctrl is mounted")
            pids = play(scene, facts)
            who.terminate()
            facts["status"] = who.wait(deadline.PATIENCE)
            facts["after"] = {kind: group_of(pid) for kind, pid in pids.items()}
            facts["mounted"] = "resctrl" in pathlib.Path("/proc/mounts").read_text()
        finally:
            facts["log"] = (WORK / "agent.log").read_text()[-6000:]
            facts["runtime"] = containerd.log[-3000:]
            print(json.dumps(facts), flush=True)


def play(scene: Scene, facts: dict[str, object]) -> dict[str, int]:
    """Pods of two classes: their first acts, what the runtime was told, an update."""
    client = scene.runtime.client
    pods = {kind: scene.pod(kind) for kind in KINDS}
    boxes = {kind: client.run(pod, "main", ASK) for kind, pod in pods.items()}
    facts["first"] = {kind: scene.first(pod) for kind, pod in pods.items()}
    facts["told"] = {kind: scene.told(box) for kind, box in boxes.items()}
    pids = {kind: scene.pid(pods[kind], box) for kind, box in boxes.items()}
    for box in boxes.values():
        client.update(box, {3: 512})
    facts["updated"] = {kind: group_of(pid) for kind, pid in pids.items()}
    facts["groups"] = groups()
    return pids


if __name__ == "__main__":
    main()
