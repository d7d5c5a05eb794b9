"""``koordlet reserve`` for what is no pod, on this host: an agent, its scheduler, real cpusets.

The agent runs the scheduler as its child, reports its node to it and asks it what is reserved. From
the moment that the reservation is available its CPUs are in no shared pool, its owner has exactly
them, and when it is deleted everything is as it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.host.topology import discovery
from koordlet.model import cpuset
from tests.kit import deadline, live, needs

pytestmark = pytest.mark.e2e

CONFIG = """
apiVersion: koordlet.io/v1
kind: Config
node: {name: n1}
scheduler: {run: true, http: "127.0.0.1:0"}
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""


@pytest.fixture
def running(place: live.Place) -> Iterator[live.Running]:
    """An agent with a scheduler; a latency-sensitive and a best-effort group, and one to own."""
    needs.two_cpus()
    for name in ("web", "batch", "db"):
        place.sleeper(place.group(name))
    config = place.state.parent / "agent.yaml"
    config.write_text(CONFIG)
    with place.running("--config", str(config)) as agent:
        agent.until("READY=1")
        deadline.until(lambda: "n1" in asked(place, "get", "nodes").stdout, "its node is known")
        yield agent


def asked(place: live.Place, *words: str) -> subprocess.CompletedProcess[str]:
    """What a command says that asks the scheduler."""
    state = ["--state-dir", str(place.state)]
    return live.call([sys.executable, "-m", "koordlet", *words, *state])


def answer(place: live.Place, *words: str) -> Any:
    """The same, in JSON."""
    done = asked(place, *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def reserve(place: live.Place, name: str, *words: str) -> None:
    """Reserve something on this node."""
    answer(place, "reserve", name, "--node", "n1", "--cgroup-root", place.name, *words)


def cpus(place: live.Place, name: str) -> cpuset.CPUSet:
    """The real set of a group."""
    return cpuset.CPUSet.parse(place.read(f"{name}/cpuset.cpus"))


def cpus_of(pid: int) -> cpuset.CPUSet:
    """Where the kernel lets a process run."""
    status = Path(f"/proc/{pid}/status").read_text()
    [allowed] = [line for line in status.splitlines() if line.startswith("Cpus_allowed_list:")]
    return cpuset.CPUSet.parse(allowed.split()[1])


def phase(place: live.Place, name: str) -> str:
    """Of a reservation."""
    return str(answer(place, "get", "reservations", name)["reservations"][0]["status"]["phase"])


def test_a_group_owns_what_was_reserved_for_it(place: live.Place, running: live.Running) -> None:
    """CPUs leave the pools, the owner has exactly them, and deleting gives them back."""
    every = discovery.discover(live.HOST).online
    web, _, db = (child.pid for child in place.children)
    assert cpus_of(web) == cpus_of(db) == every
    words = ("--cpus", "1", "--memory", "64Mi", "--owner", f"pid={db}")

    reserve(place, "db", *words)
    deadline.until(lambda: phase(place, "db") == "Available", "it is available")
    deadline.until(lambda: len(cpus_of(db)) == 1, "the owner has its CPU")
    held = cpus_of(db)
    deadline.until(lambda: cpus_of(web) == every - held, "it has left the pool")
    assert not cpus(place, "batch") & held
    node = answer(place, "get", "nodes")["nodes"][0]["requested"]
    assert (node["cpu"], node["memory"]) == ("1", str(64 << 20))

    asked(place, "delete", "reservation", "db")
    deadline.until(lambda: cpus_of(web) == every, "the pool has it back")
    deadline.until(lambda: cpus_of(db) == every, "and so has the process")
    assert running.ends(signal.SIGTERM) == 0


def test_reserved_before_the_unit_runs(place: live.Place, running: live.Running) -> None:
    """Nobody else has the CPU while the owner is not there; it has it when it comes."""
    assert running.process.poll() is None
    every = discovery.discover(live.HOST).online
    web = place.children[0].pid

    reserve(place, "late", "--cpus", "1", "--owner", "cgroup=late")
    deadline.until(lambda: len(cpus_of(web)) == len(every) - 1, "it has left the pool")
    held = every - cpus_of(web)
    late = place.sleeper(place.group("late"))
    deadline.until(lambda: cpus_of(late) == held, "the late one has what was held")


def test_the_scheduler_is_the_agents_child(place: live.Place, running: live.Running) -> None:
    """Killed it comes back and knows what it knew; it ends with the agent, however that ends."""
    reserve(place, "db", "--cpus", "1", "--owner", "cgroup=db")
    db = place.children[2].pid
    deadline.until(lambda: len(cpus_of(db)) == 1, "the owner has its CPU")
    held, first = cpus_of(db), scheduler_of(running)

    os.kill(first, signal.SIGKILL)
    deadline.until(lambda: scheduler_of(running) not in {0, first}, "another one was started")
    deadline.until(lambda: "Available" in asked(place, "get", "reservations").stdout, "it knows")
    assert cpus_of(db) == held

    second = scheduler_of(running)
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait(deadline.PATIENCE)
    deadline.until(lambda: not Path(f"/proc/{second}").exists(), "the child has ended")
    assert place.restore().failed == ()


def scheduler_of(running: live.Running) -> int:
    """The process of the agent's scheduler; 0 while there is none."""
    parent = running.process.pid
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for pid in children:
        with contextlib.suppress(OSError):
            if b"scheduler" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                return int(pid)
    return 0
