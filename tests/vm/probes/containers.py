"""Runs in the machine: pods of a real runtime on cgroup v2, and the agent at work on them.

    python3 -m tests.vm.probes.containers (cgroupfs|systemd) (runc|crun)

Prints JSON: how the runtime named its groups and what we took them for; the sets before, under the
agent, after others rewrote them, and after the agent's end; what the audit log says of the others.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

from koordlet.host.cgroup import hierarchies, tree
from koordlet.host.fs import live_host
from koordlet.model import pod, qos
from koordlet.workloads import containers, declared
from tests.kit import deadline
from tests.kit.containerd import cri, runtime
from tests.vm.probes import playing

GROUPS = pathlib.Path("/sys/fs/cgroup")
OCI = sys.argv[2]
WORK = pathlib.Path("/run/containers-probe", *sys.argv[1:])
CONFIG = """apiVersion: koordlet.io/v1
kind: Config
report: {http: {enabled: false}, grpc: {enabled: false}}
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
workloads:
  - {name: batch, qos: BE, match: {cgroup: "%s"}}
"""


class Driver:
    """How a kubelet with this driver names a best-effort pod, for the runtime and in the tree."""

    def __init__(self, name: str, uid: str) -> None:
        self.systemd = name == "systemd"
        slice_ = f"kubepods-besteffort-pod{uid.replace('-', '_')}.slice"
        self.parent = slice_ if self.systemd else f"/kubepods/besteffort/pod{uid}"
        self.group = (
            f"kubepods.slice/kubepods-besteffort.slice/{slice_}"
            if self.systemd
            else self.parent.strip("/")
        )

    def box(self, container: str) -> str:
        """Below the pod's group, where its processes are."""
        nested = "/container" if OCI == "crun" else ""
        return f"cri-containerd-{container}.scope{nested}" if self.systemd else container


class Scene:
    """A pod and its containers."""

    def __init__(self, driver: Driver, client: cri.Client, sandbox: cri.Sandbox) -> None:
        self.driver, self.client, self.sandbox = driver, client, sandbox

    def path(self, container: str = "") -> pathlib.Path:
        """The group of the pod, or of a container."""
        top = GROUPS / self.driver.group
        return top / self.driver.box(container) if container else top

    def effective(self, container: str = "") -> str:
        """The CPUs that count; where the controller is not handed down those of above."""
        where = self.path(container)
        while not (where / "cpuset.cpus.effective").exists():
            where = where.parent
        return (where / "cpuset.cpus.effective").read_text().strip()

    def wanted(self, container: str = "") -> str | None:
        """What is written; ``None`` without the file."""
        file = self.path(container) / "cpuset.cpus"
        return file.read_text().strip() if file.exists() else None

    def allowed(self, container: str) -> str:
        """Of its first process, as the scheduler sees it."""
        return playing.allowed(self.path(container))


def understood(scene: Scene, box: str) -> dict[str, Any]:
    """What we take the runtime's groups for."""
    host = live_host.LiveHost()
    reader = tree.CgroupReader(host, hierarchies.discover(host))
    seen = containers.find(containers.walk(reader.children)).pods[scene.sandbox.uid]
    wanted = pod.Pod(
        uid=scene.sandbox.uid,
        name="batch",
        namespace="default",
        match=f"pod={scene.sandbox.uid}",
        kube_qos=qos.KubeQos.BEST_EFFORT,
        qos=qos.Qos.BE,
        source="test",
        containers=(pod.Container(name="main", id=box),),
    )
    (placed,) = declared.Declared(reader.layout, reader).find([wanted], search=True)
    reader.close()
    return {
        "group": seen.group == scene.driver.group == placed.group,
        "class": seen.kube_qos.value,
        "ids": {container.id for container in seen.containers} == {box, scene.sandbox.id},
        "container": placed.containers[0].group == f"{scene.driver.group}/{scene.driver.box(box)}",
    }


def contested() -> list[str]:
    """The files of which the audit log says that somebody else wrote them."""
    (file,) = (WORK / "state").rglob("audit.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    return sorted({record["target"] for record in records if record.get("contested")})


def rewritten(scene: Scene, box: str, ours: str) -> Iterator[tuple[str, Any]]:
    """Others write what is ours: the runtime, systemd's operator, systemd itself, a kubelet."""
    every = f"0-{(os.cpu_count() or 1) - 1}"
    # LinuxContainerResources: 6 is cpuset_cpus. What counts is cut to the pod's set by the kernel.
    scene.client.update(box, {6: every})
    yield "updated", scene.allowed(box)
    if scene.driver.systemd:
        unit = scene.path().name
        subprocess.run(
            ["systemctl", "set-property", "--runtime", unit, f"AllowedCPUs={every}"], check=True
        )
        # It is systemd that writes, in its next turn: until then nothing is to be seen.
        deadline.until(contested, "contention is in the audit log")
        deadline.until(lambda: scene.effective() == ours, "the set after set-property")
        yield "others", scene.allowed(box)
        subprocess.run(["systemctl", "daemon-reload"], check=True)
        yield "reloaded", [scene.effective(), scene.effective(box)]
    yield "kubelet", [again(scene, "cpuset.cpus", every), again(scene, "cpu.weight", "79")]


def again(scene: Scene, name: str, text: str) -> bool:
    """A kubelet writes a file of the pod; whether what we had there comes back."""
    file = scene.path() / name
    ours = file.read_text()
    file.write_text(text)
    deadline.until(lambda: str(file) in contested(), f"contention of {name}")
    return deadline.until(lambda: file.read_text() == ours, f"{name} after the kubelet's write")


def play(scene: Scene, facts: dict[str, Any]) -> None:
    """The agent comes, works and goes."""
    old = scene.client.run(scene.sandbox, "old")
    facts["understood"] = understood(scene, old)
    facts["before"] = [scene.effective(box) for box in ("", old)]
    facts["written"] = [scene.wanted(box) for box in ("", old)]
    with playing.agent(WORK, CONFIG % scene.driver.group) as who:
        deadline.until(lambda: scene.effective() != facts["before"][0], "a set of the pod")
        ours = scene.effective()
        deadline.until(lambda: scene.effective(old) == ours, "the container's set")
        new = scene.client.run(scene.sandbox, "new")
        deadline.until(lambda: scene.allowed(new) == ours, "the new container's set")
        facts["ours"] = [ours, scene.allowed(old), scene.allowed(new)]
        facts |= rewritten(scene, old, ours)
        deadline.until(contested, "contention is in the audit log")
        facts["contested"] = [path.removeprefix(f"{scene.path()}/") for path in contested()]
        who.terminate()
        facts["status"] = who.wait(deadline.PATIENCE)
    facts["after"] = [scene.effective(box) for box in ("", old, new)]
    facts["names"] = [scene.driver.box(box) for box in (old, new)]


def main() -> None:
    """One life of a runtime with an agent."""
    WORK.mkdir(parents=True)
    # A sandbox gets a copy of it.
    pathlib.Path("/etc/resolv.conf").touch()
    uid = str(uuid.uuid4())
    driver = Driver(sys.argv[1], uid)
    containerd = runtime.running(WORK / "containerd", bare=True, systemd=driver.systemd, oci=OCI)
    with containerd as engine, playing.told(WORK) as facts:
        play(Scene(driver, engine.client, engine.client.run_pod(uid, driver.parent)), facts)


if __name__ == "__main__":
    main()
