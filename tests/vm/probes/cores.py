"""Runs in the guest: cookies of core scheduling, given, inherited, kept over a kill, taken back.

Covers: two pods of a kubelet on loopback, each with a program that spins and one that forks; an
agent that is killed, comes back, and stops.
Does not cover: what must be seen (``tests.vm.test_cores``).

Prints JSON: at each moment the cookie of every process, and for how much of the time the two that
spin on the threads of one core ran, both together.
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
import time
from typing import Any

from koordlet.host.process import core_cookies
from tests.vm.probes import classes

CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
kubelet: {mode: "on", address: "127.0.0.1:10255", readOnlyPort: true, intervalSeconds: 1}
policies: {core_scheduling: {mode: enforce}}
"""
PODS = {"web": ("Burstable", "LS"), "job": ("BestEffort", "BE")}
#: Threads of one core, one for each.
SIBLINGS = {"web": 2, "job": 3}
SECONDS = 3.0
TICKS = os.sysconf("SC_CLK_TCK")


class Scene:
    """The processes, and the agent."""

    def __init__(self) -> None:
        self.cores = core_cookies.CoreSchedulingCalls()
        self.pids: dict[str, int] = {}
        for name, (kube, label) in PODS.items():
            classes.PODS[name] = (kube, label, {}, "")
            classes.start(kube, classes.identity(name), classes.box(name))
            self.pids[f"{name} spins"] = self.run(name, f"exec taskset -c {SIBLINGS[name]} yes")
            self.pids[f"{name} forks"] = self.run(name, "while :; do sleep 1; done")
        self.signal(signal.SIGSTOP)
        classes.Kubelet.listed = tuple(PODS)

    def run(self, name: str, words: str) -> int:
        """A program in a pod's container."""
        kube = PODS[name][0]
        group = classes.ROOT / classes.place(kube, classes.identity(name), classes.box(name))
        with subprocess.Popen(["sh", "-c", words], stdout=subprocess.DEVNULL) as shell:
            (group / "cgroup.procs").write_text(str(shell.pid))
            shell.returncode = 0  # it stays
        return shell.pid

    def cookies(self) -> dict[str, int]:
        """Of each program, and of what the forking ones have forked last."""
        cookies = {name: self.cores.get(pid) for name, pid in self.pids.items()}
        for name in PODS:
            cookies[f"{name} forked"] = self.forked(self.pids[f"{name} forks"])
        return cookies

    def forked(self, pid: int) -> int:
        """The cookie of a process's child; it lives for a second, so another one may be asked."""
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        while True:
            with contextlib.suppress(OSError, IndexError):
                return self.cores.get(int(children.read_text().split()[0]))
            time.sleep(0.01)

    def apart(self) -> bool:
        """Whether every pod has one cookie, and another one than the other has."""
        cookies = self.cookies()
        each = [{cookies[key] for key in cookies if key.startswith(name)} for name in PODS]
        return all(len(held) == 1 and 0 not in held for held in each) and each[0] != each[1]

    def ran(self) -> float:
        """CPU seconds a second of the two that spin."""

        def used() -> int:
            files = (pathlib.Path(f"/proc/{self.pids[f'{name} spins']}/stat") for name in PODS)
            words = (file.read_text().rpartition(")")[2].split() for file in files)
            return sum(int(fields[11]) + int(fields[12]) for fields in words)

        self.signal(signal.SIGCONT)
        before, began = used(), time.monotonic()
        time.sleep(SECONDS)
        usage = (used() - before) / TICKS / (time.monotonic() - began)
        self.signal(signal.SIGSTOP)
        return usage

    def signal(self, number: int) -> None:
        """To those that spin: emulated, everybody else would wait for them."""
        for name in PODS:
            os.kill(self.pids[f"{name} spins"], number)


def agent() -> subprocess.Popen[bytes]:
    """One, as a process."""
    pathlib.Path("/tmp/config.yaml").write_text(CONFIG)
    words = [sys.executable, "-m", "koordlet", "run", "--config", "/tmp/config.yaml"]
    with pathlib.Path("/tmp/agent.log").open("ab") as log:
        return subprocess.Popen([*words, "--state-dir", str(classes.STATE)], stdout=log, stderr=log)


def ready() -> bool:
    """Whether the agent is."""
    return classes.document("/api/v1/node").get("ready") is True


def main() -> None:
    """Everything, in order."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 10255), classes.Kubelet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    classes.DEADLINE = 2 * classes.DEADLINE
    scene = Scene()
    told: dict[str, Any] = {"before": scene.cookies(), "free": scene.ran()}
    first = agent()
    # Ready first: who asks all the time keeps the kubelet, a thread of this one, from answering.
    told["settled"] = classes.until(lambda: ready() and scene.apart())
    told["given"] = scene.cookies()
    told["bound"] = scene.ran()
    first.kill()
    first.wait()
    second = agent()
    told["again"] = classes.until(ready)
    told["kept"] = scene.cookies()
    told["explained"] = classes.document("/api/v1/pod?name=t/web")
    second.terminate()
    told["status"] = second.wait()
    told["after"] = scene.cookies()
    told["log"] = pathlib.Path("/tmp/agent.log").read_text()[-4000:]
    print(json.dumps(told))


if __name__ == "__main__":
    main()
