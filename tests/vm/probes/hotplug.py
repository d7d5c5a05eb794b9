"""Runs in the guest: takes CPUs away and gives them back under a running agent; tells what came.

Prints JSON: for each change its name, the CPUs online after it, the seconds until the agent's view
was that, and until the sets of its groups were; then every line of the audit log that names CPUs,
with the CPUs that were online when it was written. The agent has two declared workloads.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

CPUS = pathlib.Path("/sys/devices/system/cpu")
GROUPS = pathlib.Path("/sys/fs/cgroup")
CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
policies:
  reserved_cpus: {quantity: 1}
  # A busy host keeps an emulated machine waiting, and best-effort work would be narrowed for it.
  adaptive: {mode: off}
"""
STATE = pathlib.Path("/tmp/state")
DEADLINE = 60.0
#: A write that was decided just before a change may be done just after it.
ONE_PASS = 1.5

#: What is done to the machine: name, file, value.
CHANGES = (
    ("one offline", "cpu3/online", "0"),
    ("a socket offline", "cpu4/online cpu5/online cpu6/online cpu7/online", "0"),
    ("the socket back", "cpu4/online cpu5/online cpu6/online cpu7/online", "1"),
    ("all back", "cpu3/online", "1"),
    ("SMT off", "smt/control", "off"),
    ("SMT on", "smt/control", "on"),
)


def numbers(text: str) -> frozenset[int]:
    """The numbers of a list such as ``0-3,8``."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)


def online() -> frozenset[int]:
    """What the kernel says."""
    return numbers((CPUS / "online").read_text())


def seen() -> dict[str, Any]:
    """What the agent says; nothing while it is not up."""
    try:
        with urllib.request.urlopen("http://127.0.0.1:9316/api/v1/topology", timeout=5) as answer:
            document = json.load(answer)
    except OSError:
        return {}
    return document if isinstance(document, dict) else {}


def sets() -> list[frozenset[int]]:
    """The CPU sets of the workloads."""
    return [numbers((group / "cpuset.cpus").read_text()) for group in workloads()]


def workloads() -> list[pathlib.Path]:
    """The groups of the two workloads, where their CPU sets are."""
    top = GROUPS / "cpuset" if (GROUPS / "cpuset").is_dir() else GROUPS
    return [top / name for name in ("web", "batch")]


def until(agent: subprocess.Popen[bytes], done: Callable[[], bool]) -> float | None:
    """Seconds until it holds, looked at again and again; ``None`` if it never does."""
    start = time.monotonic()
    while not done():
        if time.monotonic() - start > DEADLINE:
            return None
        try:
            agent.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        return None
    return time.monotonic() - start


def settled() -> bool:
    """Both groups have all CPUs but the reserved one, and none that is gone."""
    pools, now = sets(), online()
    return len(pools) == 2 and all(pool <= now and len(pool) == len(now) - 1 for pool in pools)


def arrival(agent: subprocess.Popen[bytes]) -> dict[str, object]:
    """What is seen of a change, and how long it took to arrive."""
    now = online()
    view = until(agent, lambda: numbers(str(seen().get("online", ""))) == now)
    pools = until(agent, settled)
    machine = seen()
    placed = [cpu["cpu"] for cpu in machine.get("cpus", ()) if cpu["core"] is not None]
    return {
        "online": sorted(now),
        "view_seconds": view,
        "sets_seconds": pools,
        "sets": [sorted(pool) for pool in sets()],
        "placed": placed,
        "smt": machine.get("smt"),
        "warnings": machine.get("warnings"),
    }


def written(history: list[tuple[float, frozenset[int]]]) -> Iterator[dict[str, object]]:
    """The CPU sets that were written, with those that were online then or a pass before."""
    for line in (STATE / "log" / "audit.jsonl").read_text().splitlines():
        record = json.loads(line)
        target = str(record.get("target", ""))
        if not target.endswith("/cpuset.cpus") or record.get("kind") != "WriteFile":
            continue
        at = float(record["at"])
        allowed = {cpu for since, cpus in recent(history, at) for cpu in cpus}
        yield {
            "value": sorted(numbers(record["value"])),
            "gone": sorted(numbers(record["value"]) - allowed),
            "verdict": record["verdict"],
        }


def recent(
    history: list[tuple[float, frozenset[int]]], at: float
) -> list[tuple[float, frozenset[int]]]:
    """The states that held at some time in the pass that ended then."""
    ends = [since for since, _ in history[1:]] + [float("inf")]
    return [
        state
        for state, end in zip(history, ends, strict=True)
        if state[0] <= at and end >= at - ONE_PASS
    ]


def main() -> None:
    """Everything, in order."""
    history = [(0.0, online())]
    for group in workloads():
        group.mkdir()
    config = pathlib.Path("/tmp/config.yaml")
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "koordlet", "run", "--config", str(config)]
    command += ["--state-dir", str(STATE)]
    with pathlib.Path("/tmp/agent.log").open("wb") as log:
        agent = subprocess.Popen(command, stdout=log, stderr=log)
    started = until(agent, lambda: bool(seen()) and settled())
    changes: dict[str, object] = {}
    for name, files, value in CHANGES:
        before = time.time()
        for file in files.split():
            (CPUS / file).write_text(value)
        # They go and come one by one, and a pass may be between two.
        history += [(before, history[-1][1] | online()), (time.time(), online())]
        changes[name] = arrival(agent)
    agent.terminate()
    status = agent.wait()
    facts = {
        "started": started,
        "changes": changes,
        "writes": list(written(history)),
        "status": status,
        "log": pathlib.Path("/tmp/agent.log").read_text()[-3000:],
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
