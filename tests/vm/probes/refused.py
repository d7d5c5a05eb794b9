"""Runs in a machine: what an agent's reader says where counting is not allowed, or is.

Covers: capabilities, ``kernel.perf_event_paranoid``, an agent without rights that says why, once.
Does not cover: what must be seen (``tests.vm.test_counters``).
"""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import performance
from koordlet.host.fs import live_host
from koordlet.model import pod, qos
from tests.kit import deadline

_GROUP = "web"
_PARANOID = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
_AGENT = pathlib.Path("/run/refused")
#: The agent asks again after ten minutes; it is stopped for most of them, because each of its
#: seconds is emulated.
_LATER, _AWAKE, _PAUSE = 600.0, 5.0, 1.0


def reason() -> str:
    """Why the reader does not count; empty where it does."""
    host = live_host.LiveHost()
    workload = pod.Pod(uid="a", namespace="n", name="a", qos=qos.Qos.LS, source="t", group=_GROUP)
    reader = performance.PerformanceReader(host, performance.PerformanceSettings())
    reader.read(0.0, 0.0, hierarchies.discover(host), (0,), [workload])
    (*gaps,) = reader.unsupported
    reader.close()
    return gaps[0].why if gaps else ""


def without(kept: str, *words: str) -> list[str]:
    """A command with no other capability than this."""
    bounds = ",".join(["-all", *([f"+{kept}"] if kept else [])])
    return ["setpriv", "--bounding-set", bounds, sys.executable, *words]


def tried(kept: str, paranoid: int) -> str:
    """The reason in a process of its own."""
    _PARANOID.write_text(str(paranoid))
    words = without(kept, "-m", "tests.vm.probes.refused", "reason")
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def logged() -> list[str]:
    """The reasons that an agent without rights logs until it has asked a second time."""
    _AGENT.mkdir()
    file, log = _AGENT / "config.json", _AGENT / "log"
    file.write_text(json.dumps({
        "apiVersion": "koordlet.io/v1", "kind": "Config",
        "report": {"http": {"enabled": False}},
        "counters": {"cpi": {"enabled": True}},
        "workloads": [{"name": _GROUP, "qos": "LS", "match": {"cgroup": _GROUP}}],
    }))  # fmt: skip
    words = ["-m", "koordlet", "run", "--observe", "--config", str(file)]
    words += ["--state-dir", str(_AGENT / "state")]

    def reasons() -> list[str]:
        lines = [json.loads(line) for line in log.read_text().splitlines() if line[:1] == "{"]
        return [line["why"] for line in lines if line.get("feature") == "cpi"]

    with log.open("w") as file_of_log:
        agent = subprocess.Popen(without("", *words), stdout=file_of_log, stderr=file_of_log)
        try:
            deadline.until(reasons, "it says why it does not count", pause=_PAUSE)
            agent.send_signal(signal.SIGSTOP)
            time.sleep(_LATER)  # an agent that is stopped, until it is to ask again
            agent.send_signal(signal.SIGCONT)
            time.sleep(_AWAKE)  # for what must not come: the reason once more
        finally:
            agent.terminate()
            agent.wait()
    return reasons()


def main() -> dict[str, Any]:
    """Everything."""
    pathlib.Path("/sys/fs/cgroup", _GROUP).mkdir()
    seen: dict[str, Any] = {
        f"{kept or 'nothing'} {paranoid}": tried(kept, paranoid)
        for paranoid in (2, 3)
        for kept in ("perfmon", "")
    }
    return seen | {"logged": logged()}


if __name__ == "__main__":
    if sys.argv[1:] == ["reason"]:
        print(reason())
    else:
        print(json.dumps(main()))
