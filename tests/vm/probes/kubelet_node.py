"""Runs in the machine: a real kubelet with the systemd driver on cgroup v2, beside the agent.

    python3 tests/vm/probes/kubelet_node.py (containerd|crio) FOLDER [PACKAGES LAB]

FOLDER has the kubelet and the runtime; CRI-O needs more of the lab (``tests.kit.crio``). There is
no API server: the pods are files.

The kubelet is killed while the first pods get their groups, and once more when all pods run.

Prints JSON: the CPUs that the first act of a pod of each class found, all those from the moment
that the kubelet was killed until it listed its pods again, those under another agent, and those
after its end; the names of the groups.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tests.kit import crio, deadline
from tests.kit.containerd import image
from tests.kit.containerd import runtime as containerd
from tests.vm.probes import playing

RUNTIME, *FOLDERS = sys.argv[1:]
PROGRAMS, *MORE = map(pathlib.Path, FOLDERS)
WORK = pathlib.Path("/run/kubelet-node")
MANIFESTS, LOGS = WORK / "manifests", WORK / "pods"
PORT = 10255
#: The kubelet's groups, by the driver's naming.
TOP = pathlib.Path("/sys/fs/cgroup/kubepods.slice")
ASK = ["/bin/busybox", "sh", "-c", "grep Cpus_allowed_list /proc/self/status; exec sleep 86401"]
KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "cgroupDriver": "systemd",
    "containerRuntimeEndpoint": f"unix://{WORK}/{RUNTIME}/{RUNTIME}.sock",
    "staticPodPath": str(MANIFESTS),
    "podLogsDir": str(LOGS),
    "readOnlyPort": PORT,
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "evictionHard": {
        "memory.available": "10Mi",
        "nodefs.available": "0%",
        "imagefs.available": "0%",
    },
    "runtimeRequestTimeout": "10m",
    "fileCheckFrequency": "1s",
    "failSwapOn": False,
    "resolvConf": "",
}
CONFIG: dict[str, Any] = {
    "apiVersion": "koordlet.io/v1",
    "kind": "Config",
    "report": {"http": {"enabled": False}, "grpc": {"enabled": False}},
    "kubelet": {"mode": "on", "readOnlyPort": True, "intervalSeconds": 2},
    "nri": {"mode": "on", "socket": f"{WORK}/{RUNTIME}/nri.sock", "deadlineMilliseconds": 1400},
    "policies": {"reserved_cpus": {"cpus": "0"}, "shared_pools": {"enableControllers": True}},
}
#: Pods by name: their class, and what they ask for.
PODS = {
    "own": ("LSR", {"cpu": "2", "memory": "64Mi"}),
    "web": ("LS", {"cpu": "1", "memory": "64Mi"}),
    "batch": ("BE", {}),
}


def begin(name: str) -> None:
    """A pod, as its file."""
    qos, asked = PODS[name]
    box = {
        "name": "main",
        "image": image.NAME,
        "imagePullPolicy": "IfNotPresent",
        "command": ASK,
        "resources": {"requests": asked, "limits": asked} if asked else {},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"koordinator.sh/qosClass": qos}},
        "spec": {"hostNetwork": True, "containers": [box]},
    }
    fresh = MANIFESTS / f".{name}"
    fresh.write_text(yaml.safe_dump(pod))
    fresh.rename(MANIFESTS / f"{name}.yaml")


def first(name: str) -> str:
    """The CPUs that the first act of a pod's first container printed."""

    def printed() -> str:
        for log in sorted(LOGS.glob(f"default_{name}[-_]*/main/*.log")):
            match = re.search(r"Cpus_allowed_list:\s*(\S+)\n", log.read_text())
            if match is not None:
                return match[1]
        return ""

    return deadline.until(printed, f"{name} has printed")


def group(name: str) -> pathlib.Path:
    """Of a pod's container."""
    [uid] = [log.name.split("_")[2] for log in LOGS.glob(f"default_{name}[-_]*")]
    scopes = TOP.glob(f"**/kubepods*-pod{uid.replace('-', '_')}.slice/cri*.scope")
    [scope] = [path for path in scopes if "86401" in command(path)]
    return scope


def command(scope: pathlib.Path) -> str:
    """Of the first process of a group; empty where it has none."""
    pids = (scope / "cgroup.procs").read_text().split()
    return pathlib.Path(f"/proc/{pids[0]}/cmdline").read_text() if pids else ""


@contextlib.contextmanager
def kubelet(settings: Mapping[str, Any] = KUBELET, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """It runs; killed at the end."""
    config = WORK / "kubelet.yaml"
    config.write_text(yaml.safe_dump(settings))
    words = [str(PROGRAMS / "kubelet"), "--config", str(config), f"--cert-dir={WORK}/pki", *more]
    with (WORK / "kubelet.log").open("ab") as log:
        process = subprocess.Popen(words, stderr=log, stdout=log)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def listed(process: subprocess.Popen[bytes]) -> set[str] | None:
    """The pods that the kubelet lists; ``None`` where it does not answer yet."""
    assert process.poll() is None, "the kubelet has ended"
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{PORT}/pods") as a:
        return {pod["metadata"]["name"].partition("-")[0] for pod in json.load(a)["items"] or ()}
    return None


def effective() -> dict[str, str]:
    """The CPUs that count for each pod's container."""
    return {name: (group(name) / "cpuset.cpus.effective").read_text().strip() for name in PODS}


def connections() -> int:
    """How often an agent has introduced itself to the runtime."""
    return (WORK / RUNTIME / "log").read_text().count('-koordlet\\" connected')


@contextlib.contextmanager
def agent() -> Iterator[subprocess.Popen[bytes]]:
    """It is connected to the runtime."""
    before = connections()
    with playing.agent(WORK, yaml.safe_dump(CONFIG)) as who:
        deadline.until(lambda: connections() > before, "the agent is connected")
        yield who


def play(seen: dict[str, Any]) -> None:
    """The kubelet is killed twice and begins anew, then the agent; the last agent goes."""
    starts: dict[str, list[Any]] = {"listed": [], "cpus": []}

    def note(kind: str, now: Any) -> None:
        if now not in starts[kind]:
            starts[kind].append(now)

    def known() -> bool:
        names = listed(process)
        note("listed", None if names is None else sorted(names))
        note("cpus", effective())
        return names == set(PODS)

    def settled() -> bool:
        seen["now"] = effective()
        return bool(seen["now"] == seen["first"])

    with contextlib.ExitStack() as life:
        with agent():
            with kubelet() as process:
                deadline.until(lambda: listed(process) is not None, "the kubelet serves its pods")
                for name in PODS:
                    begin(name)
                deadline.until(lambda: any(TOP.glob("**/kubepods*-pod*.slice")), "a pod's group")
            with kubelet():
                seen["first"] = {name: first(name) for name in PODS}
                seen["groups"] = {name: group(name).relative_to(TOP).parts for name in PODS}
                deadline.until(settled, "the CPUs while all pods run")
            process = life.enter_context(kubelet())
            deadline.until(known, "another kubelet lists its pods")
            seen["starts"] = starts
        with agent() as who:
            deadline.until(settled, "the CPUs under another agent")
            seen["again"] = seen["now"]
            who.terminate()
            seen["status"] = who.wait(deadline.PATIENCE)
            seen["after"] = effective()


def runtime() -> contextlib.AbstractContextManager[object]:
    """It runs with the image, until the end of the scene."""
    folder = WORK / RUNTIME
    if RUNTIME == "containerd":
        return containerd.running(folder, nri=True, bare=True, systemd=True, newer=PROGRAMS)
    return crio.running(folder, crio.Programs(bin=PROGRAMS, root=MORE[0], lab=MORE[1]))


def main() -> None:
    """One life of a node."""
    MANIFESTS.mkdir(parents=True)
    # A sandbox gets a copy of it.
    pathlib.Path("/etc/resolv.conf").touch()
    with playing.told(WORK) as seen:
        try:
            with runtime():
                play(seen)
        finally:
            for log in (WORK / "kubelet.log", WORK / RUNTIME / "log"):
                seen[str(log)] = log.read_text()[-9000:] if log.exists() else ""


if __name__ == "__main__":
    main()
