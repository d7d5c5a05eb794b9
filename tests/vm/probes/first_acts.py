"""Runs in the machine: containers on cgroup v2 that are right before they begin, by NRI.

    python3 tests/vm/probes/first_acts.py (cgroupfs|systemd) (runc|crun) [FOLDER]

FOLDER has another containerd and its shim.

Prints JSON: the CPUs that a container's first act found, what an update left, whether a silent
connection was made anew and the next container was as right, what was there after the agent's end.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator

from tests.kit import deadline
from tests.kit.containerd import cri, runtime

DRIVER, OCI, *NEWER = sys.argv[1:]
GROUPS = pathlib.Path("/sys/fs/cgroup")
WORK = pathlib.Path("/run/first-acts", DRIVER)
#: The first act, and then it stays.
ASK = ("/bin/busybox", "sh", "-c", "grep Cpus_allowed_list /proc/self/status; exec sleep 86400")
#: No event for ten seconds is silence.
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {http: {enabled: false}, grpc: {enabled: false}}
nri: {mode: "on", socket: %s, deadlineMilliseconds: 1400, quietSeconds: 10}
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
"""


class Scene:
    """A runtime and its pods."""

    def __init__(self, containerd: runtime.Runtime) -> None:
        self.runtime = containerd

    @property
    def connections(self) -> int:
        """How often we have introduced ourselves."""
        return self.runtime.log.count('-koordlet\\" connected')

    def pod(self) -> cri.Sandbox:
        """A best-effort pod, where a kubelet with this driver has it."""
        uid = str(uuid.uuid4())
        path = f"/kubepods/besteffort/pod{uid}"
        unit = f"kubepods-besteffort-pod{uid.replace('-', '_')}.slice"
        parent = unit if DRIVER == "systemd" else path
        return self.runtime.client.run_pod(uid, parent, logs=str(WORK / uid))

    def first(self, pod: cri.Sandbox) -> tuple[str, str]:
        """A container, and the CPUs that its first act found itself on."""
        box = self.runtime.client.run(pod, "main", ASK)
        path = WORK / pod.uid / "main.log"

        def said() -> str:
            text = path.read_text() if path.exists() else ""
            allowed = re.search(r"Cpus_allowed_list:\s*(\S+)\n", text)
            return allowed[1] if allowed is not None else ""

        return box, deadline.until(said, f"the container of {pod.uid} has printed")

    def cpus(self, box: str) -> str:
        """The set in effect of a container."""
        (group,) = GROUPS.glob(f"kubepods*/**/*{box}*")
        nested = group / "container" if (group / "container").is_dir() else group
        return (nested / "cpuset.cpus.effective").read_text().strip()


@contextlib.contextmanager
def agent(scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
    """The agent as a process, connected."""
    config = WORK / "koordlet.yaml"
    config.write_text(CONFIG % scene.runtime.nri_socket)
    words = [sys.executable, "-m", "koordlet", "run", "--config", str(config)]
    before = scene.connections
    with (WORK / "agent.log").open("ab") as log:
        process = subprocess.Popen([*words, "--state-dir", str(WORK / "state")], stderr=log)
        try:
            deadline.until(lambda: scene.connections > before, "the agent is connected")
            yield process
        finally:
            process.kill()
            process.wait()


def main() -> None:
    """One life of a runtime with an agent."""
    WORK.mkdir(parents=True)
    # A sandbox gets a copy of it.
    pathlib.Path("/etc/resolv.conf").touch()
    facts: dict[str, object] = {}
    with runtime.running(
        WORK / "containerd",
        nri=True,
        bare=True,
        systemd=DRIVER == "systemd",
        oci=OCI,
        newer=next(map(pathlib.Path, NEWER), None),
    ) as containerd:
        scene = Scene(containerd)
        try:
            play(scene, facts)
        finally:
            facts["log"] = (WORK / "agent.log").read_text()[-6000:]
            facts["runtime"] = containerd.log[-3000:]
            print(json.dumps(facts), flush=True)


def play(scene: Scene, facts: dict[str, object]) -> None:
    """First acts, an update as the kubelet's CPU manager makes it, silence, the end."""
    with agent(scene) as who:
        box, facts["first"] = scene.first(scene.pod())
        scene.runtime.client.update(box, {6: "0-7", 3: 512})
        facts["updated"] = scene.cpus(box)
        known = scene.connections
        deadline.until(lambda: scene.connections > known, "a silent connection is made anew")
        facts["renewed"] = True
        facts["again"] = scene.first(scene.pod())[1]
        who.terminate()
        facts["status"] = who.wait(deadline.PATIENCE)
    facts["after"] = scene.cpus(box)


if __name__ == "__main__":
    main()
