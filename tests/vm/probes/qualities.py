"""Runs in the guest, on cgroup v2: memory and block devices by class, and knobs of the kernel.

Covers: two pods of a kubelet on loopback, an agent that is killed and comes back, and stops.
Does not cover: what must be seen (``tests.vm.test_qualities``).

Prints JSON: the text of every file that counts, before, meanwhile, after a kill, and after.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
from typing import Any

from tests.vm.probes import classes

CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
kubelet: {mode: "on", address: "127.0.0.1:10255", readOnlyPort: true, intervalSeconds: 1}
policies:
  memory_qos:
    lsClass: {enable: true, minLimitPercent: 50, lowLimitPercent: 75, throttlingPercent: 50}
  blkio_qos:
    beClass:
      enable: true
      blocks:
        - name: /dev/vda
          ioCfg: {readBPS: 8388608, writeIOPS: 100, ioWeightPercent: 20}
    cgroupRoot:
      enable: true
      blocks: [{name: /dev/vda, ioCfg: {readLatency: 4000, writeLatency: 8000}}]
  page_cache_reclaim:
    beClass: {pageCacheLimitEnable: true, pageCacheLimitSize: 4Mi}
  system_qos: {mode: enforce, minFreeKbytesFactor: 200, watermarkScaleFactor: 30}
"""
MIB = 1 << 20
#: Name to class of Kubernetes, label and resources.
PODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "web": ("Burstable", "LS", {"requests": {"memory": "64Mi"}, "limits": {"memory": "128Mi"}}),
    "job": ("BestEffort", "BE", {}),
}
SYSCTLS = ("/proc/sys/vm/min_free_kbytes", "/proc/sys/vm/watermark_scale_factor")
ROOT_FILES = ("io.cost.qos", "io.cost.model")


def pod(name: str) -> dict[str, object]:
    """As the kubelet lists it."""
    kube, label, asked = PODS[name]
    classes.PODS[name] = (kube, label, {}, "")
    made: Any = classes.pod(name)
    made["spec"]["containers"][0]["resources"] = asked
    return dict(made)


class Kubelet(classes.Kubelet):
    """Lists these two."""

    def do_GET(self) -> None:  # noqa: N802 -- the name that the server calls
        """Every path is the list."""
        items = [pod(name) for name in PODS]
        body = json.dumps({"kind": "PodList", "items": items}).encode()
        self.send_response(200 if self.path.startswith("/pods") else 404)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)


def group(name: str, *, inner: bool = False) -> pathlib.Path:
    """A pod's group, or its container's."""
    kube = PODS[name][0]
    path = classes.ROOT / classes.place(kube, classes.identity(name), "")
    return path / classes.box(name) if inner else path


def files() -> list[pathlib.Path]:
    """Every file that counts here."""
    paths = [pathlib.Path(sysctl) for sysctl in SYSCTLS]
    paths += [classes.ROOT / name for name in ROOT_FILES]
    tier = classes.ROOT / "kubepods"
    for folder in (
        *(tier, tier / "burstable", tier / "besteffort"),
        *(group(name, inner=inner) for name in PODS for inner in (False, True)),
    ):
        paths += [folder / f"memory.{name}" for name in ("min", "low", "high")]
        paths += [folder / "io.max", folder / "io.weight"]
    return paths


def texts() -> dict[str, str]:
    """What they say; those that this kernel has."""
    values = {}
    for file in files():
        with contextlib.suppress(OSError):
            values[str(file)] = file.read_text().strip()
    return values


def hand_down_io() -> None:
    """The controller of block devices, as far as the containers."""
    for folder in (
        classes.ROOT,
        *(classes.ROOT / "kubepods" / step for step in ("", "burstable", "besteffort")),
        *(group(name) for name in PODS),
    ):
        (folder / "cgroup.subtree_control").write_text("+io")


def cache(name: str) -> int:
    """Page cache of a container, in bytes."""
    for line in (group(name) / "memory.stat").read_text().splitlines():
        if line.startswith("file "):
            return int(line.split()[1])
    return 0


def fill(name: str) -> None:
    """Page cache that is a pod's: the end of the disk, read by a process inside of its group."""
    end = int(pathlib.Path("/sys/block/vda/size").read_text()) // 2048
    words = f"echo $$ > {group(name, inner=True)}/cgroup.procs; "
    words += f"dd if=/dev/vda of=/dev/null bs=1M count=24 skip={max(0, end - 24)}"
    subprocess.run(["sh", "-c", words], check=True, capture_output=True)


def main() -> None:
    """Everything, in order."""
    classes.DEADLINE = 3 * classes.DEADLINE
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 10255), Kubelet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, (kube, _, _) in PODS.items():
        classes.start(kube, classes.identity(name), classes.box(name))
    hand_down_io()
    fill("job")
    told: dict[str, Any] = {"before": texts(), "cache": [cache("job")]}
    high = str(group("web", inner=True) / "memory.high")

    def agent() -> subprocess.Popen[bytes]:
        pathlib.Path("/tmp/config.yaml").write_text(CONFIG)
        words = [sys.executable, "-m", "koordlet", "run", "--config", "/tmp/config.yaml"]
        with pathlib.Path("/tmp/agent.log").open("ab") as log:
            return subprocess.Popen(
                [*words, "--state-dir", str(classes.STATE)], stdout=log, stderr=log
            )

    def applied() -> bool:
        return texts()[high] != told["before"][high] and cache("job") <= 5 * MIB

    first = agent()
    told["settled"] = classes.until(applied)
    told["meanwhile"] = texts()
    told["cache"].append(cache("job"))
    told["why"] = classes.document("/api/v1/pod?name=t/job")
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    # Somebody else's value, written while nobody watches: it stays in the end.
    weight = group("job") / "memory.low"
    weight.write_text(str(MIB))
    second = agent()
    told["again"] = classes.until(lambda: classes.document("/api/v1/node").get("ready") is True)
    told["kept"] = texts()
    second.terminate()
    told["status"] = second.wait()
    told["after"] = texts()
    log = pathlib.Path("/tmp/agent.log").read_text().splitlines()
    told["log"] = [line for line in log if "page_cache" in line or '"level": "info"' not in line]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
