"""A node of cgroup v2 and systemd that runs out of everything, one thing after the other.

Covers: memory, processes, bytes and inodes of a small file system, stalls; real workloads in groups
and units, an agent that evicts them, who went in which order and how.
Does not cover: what must be seen (``tests.vm.test_pressure``).
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

from koordlet.host.cgroup import memory_alarms
from koordlet.host.fs import live_host
from tests.vm.probes import service

_MI = 1 << 20
_TOP = service.CGROUPS / "own"
_NODE = _TOP / "node"
_DISK = pathlib.Path("/run/small")
_HTTP = "http://127.0.0.1:9316/api/v1/plan"
_UNIT = "crowd.service"
_PATIENCE = 120.0
#: So many go.
_GO = 5

#: Does what a line says: takes memory, starts threads, makes files that end with the process.
_WORKER = """\
import signal, sys, tempfile, threading
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.stack_size(1 << 16)
held, for_ever = [], threading.Event()
print("there", flush=True)
for line in sys.stdin:
    what, count = line.split()
    for _ in range(int(count)):
        if what == "memory":
            held.append(b"x" * (1 << 20))
        elif what == "read":
            with open("/var/tmp/big", "rb") as file:
                while file.read(1 << 20):
                    pass
        elif what == "threads":
            threading.Thread(target=for_ever.wait, daemon=True).start()
        else:
            held.append(tempfile.TemporaryFile(dir="/run/small"))
            if what == "bytes":
                held[-1].write(b"x" * (1 << 20))
            held[-1].flush()
    print("done", flush=True)
"""
#: A unit of many threads, once a file is there.
_CROWD = """\
import os, threading, time
threading.stack_size(1 << 16)
while not os.path.exists("/run/crowd-begins"):
    time.sleep(0.1)
for_ever = threading.Event()
for _ in range(600):
    threading.Thread(target=for_ever.wait, daemon=True).start()
for_ever.wait()
"""
_CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
policies:
  node_pressure:
    memoryCgroup: own/node
    nodefs: /run/small
    enforceNodeAllocatable: []
    evictionHard: {{memory.available: 100Mi, pid.available: "{pids}", nodefs.available: 40%,
      nodefs.inodesFree: 40%}}
    pressureLimits: {{cpu.some.avg10: 10}}
workloads:
{workloads}
"""
#: Name to class, priority, memory that it asks for. Who is to go when nobody asked for disk or
#: processes has the lowest priority then.
_WORK = {
    "reader": ("BE", 9, 300),
    "small": ("BE", 9, 150),
    "asked": ("BE", 0, 300),
    "deaf": ("LS", 5, 20),
    "polite": ("LS", 5, 40),
    "inodes": ("LS", -3, 50),
    "bytes": ("LS", -2, 50),
    "crowd": ("LS", -1, 50),
}


def configuration() -> str:
    """The file of the agent."""
    lines = []
    for name, (kind, priority, memory) in _WORK.items():
        match = f"unit: {_UNIT}" if name == "crowd" else f"cgroup: own/node/{name}"
        asked = f"{{memory: {memory}Mi}}"
        head = f"name: {name}, qos: {kind}, priority: {priority}"
        lines.append(f"  - {{{head}, requests: {asked}, match: {{{match}}}}}")
    return _CONFIG.format(pids=available() - 300, workloads="\n".join(lines))


def available() -> int:
    """Tasks that this machine may still have."""
    limits = [
        int(pathlib.Path("/proc/sys/kernel", name).read_text())
        for name in ("pid_max", "threads-max")
    ]
    there = pathlib.Path("/proc/loadavg").read_text().split()[3].partition("/")[2]
    return min(limits) - int(there)


def until(what: str, done: Callable[[], Any]) -> Any:
    """What it says, once that is something; the probe fails when it never is."""
    deadline = time.monotonic() + _PATIENCE
    while not (outcome := done()):
        if time.monotonic() > deadline:
            errors = pathlib.Path("/run/agent.err").read_text()[-3000:]
            sys.exit(f"waited in vain for: {what}\n{errors}")
        time.sleep(0.05)
    sys.stderr.write(f"{time.monotonic():.0f} s: {what}\n")
    sys.stderr.flush()
    return outcome


def start(name: str, manner: str = "") -> subprocess.Popen[bytes]:
    """A workload in a group of its own."""
    group = _NODE / name
    group.mkdir()
    worker = subprocess.Popen(
        [sys.executable, "-c", _WORKER, manner], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    (group / "cgroup.procs").write_text(str(worker.pid))
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"there\n"
    return worker


def tell(worker: subprocess.Popen[bytes], what: str, count: int, *, wait: bool = True) -> None:
    """Have it do something."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{what} {count}\n".encode())
    worker.stdin.flush()
    if wait:
        assert worker.stdout.readline() == b"done\n"


def must(*words: str) -> None:
    """A command; the probe fails with what it complains of."""
    done = service.sh(*words)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr}")


def disk() -> None:
    """A file system of 16 MiB and 1000 inodes in a file."""
    _DISK.mkdir()
    image = pathlib.Path("/var/tmp/small")
    with image.open("wb") as file:
        file.truncate(16 * _MI)
    must("modprobe", "loop")
    must("busybox", "mke2fs", "-F", "-m", "0", "-i", "16384", str(image))
    must("mount", "-t", "ext4", "-o", "loop", str(image), str(_DISK))


def page() -> dict[str, Any]:
    """The newest plan of the agent; nothing while it does not answer."""
    try:
        with urllib.request.urlopen(_HTTP, timeout=30) as answer:
            parsed: dict[str, Any] = json.load(answer)
            return parsed
    except OSError:
        return {}


@contextlib.contextmanager
def agent() -> Iterator[None]:
    """``koordlet run``, ready."""
    config = pathlib.Path("/run/pressure.yaml")
    config.write_text(configuration())
    words = ["--config", str(config), "--state-dir", "/run/state", "--http", "127.0.0.1:9316"]
    with pathlib.Path("/run/agent.err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "koordlet", "run", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
        )
    try:
        until("the first plan", page)
        yield
    finally:
        process.terminate()
        process.wait()


def audited(kind: str = "Evict") -> list[str]:
    """The last part of what the audit log says was done to, in order: who went."""
    lines = pathlib.Path("/run/state/audit.jsonl")
    audit = next((p for p in pathlib.Path("/run/state").rglob("audit.jsonl")), lines)
    names = []
    for line in audit.read_text().splitlines() if audit.exists() else []:
        entry = json.loads(line)
        if entry.get("kind") == kind and entry.get("verdict") == "done":
            names.append(str(entry.get("target", "")).rpartition("/")[2])
    return names


def load(name: str, words: str, memory_high: str) -> subprocess.Popen[bytes]:
    """stress-ng in a group of its own."""
    group = _TOP / name
    group.mkdir()
    (group / "memory.high").write_text(memory_high)
    script = (
        f"echo $$ > {group}/cgroup.procs && exec stress-ng --quiet --temp-path /var/tmp {words}"
    )
    return subprocess.Popen(["sh", "-c", script], stdout=subprocess.DEVNULL)


def stalls() -> dict[str, Any]:
    """A limit of our own on stalls, and the kernel's word of them."""
    alarms = memory_alarms.Alarms(live_host.LiveHost())
    # Whoever is above memory.high is held up when it returns to itself, and that counts as a stall;
    # so it is not the one that crowds the CPUs.
    loads = {
        "tight": load("tight", "--vm 1 --vm-bytes 32m", str(8 * _MI)),
        "busy": load("busy", "--cpu 4", "max"),
    }
    try:
        rung = bool(select.select([alarms.handle], [], [], 50)[0]) and alarms.heard()

        def held() -> bool:
            conditions = page().get("conditions", [])
            return any(
                condition["type"] == "CPUStalled" and condition["status"] == "True"
                for condition in conditions
            )

        until("the condition CPUStalled", held)
    finally:
        for name, worker in loads.items():
            # Not SIGTERM: who is held up gets to it late.
            (_TOP / name / "cgroup.kill").write_text("1")
            worker.wait()
        alarms.close()
    return {"condition": "CPUStalled", "rung": rung, "problems": alarms.problems}


def main() -> dict[str, Any]:
    """Everything, with one agent."""
    for group in (service.CGROUPS, _TOP, _NODE):
        group.mkdir(exist_ok=True)
        (group / "cgroup.subtree_control").write_text("+memory +pids +cpu")
    (_NODE / "memory.max").write_text(str(400 * _MI))
    disk()
    crowd = pathlib.Path("/run/crowd.py")
    crowd.write_text(_CROWD)
    must("systemd-run", "--unit", _UNIT, sys.executable, str(crowd))
    names = ("small", "polite", "asked", "bytes", "inodes")
    work = {"deaf": start("deaf", "deaf")} | {name: start(name) for name in names}
    seen: dict[str, Any] = {}
    with agent():
        seen["reader"] = cache()
        tell(work["small"], "memory", 60)
        tell(work["polite"], "memory", 70)
        tell(work["deaf"], "memory", 60)
        assert all(process.poll() is None for process in work.values())
        tell(work["asked"], "memory", 90, wait=False)
        seen["deaf"] = until("the deaf one is killed", lambda: ended(work["deaf"]))
        seen["polite_then"] = work["polite"].poll()
        until("memory is enough again", lambda: not short("memory.available"))
        tell(work["small"], "memory", 15)
        tell(work["asked"], "memory", 60, wait=False)
        seen["polite"] = until("the polite one ends", lambda: ended(work["polite"]))
        tell(work["inodes"], "inodes", 700, wait=False)
        seen["inodes"] = until("who took the inodes ends", lambda: ended(work["inodes"]))
        tell(work["bytes"], "bytes", 11, wait=False)
        seen["bytes"] = until("who took the bytes ends", lambda: ended(work["bytes"]))
        pathlib.Path("/run/crowd-begins").touch()
        until("the unit is stopped", lambda: unit("ActiveState") != "active")
        seen["unit"] = unit("Result")
        seen["left"] = [name for name in ("small", "asked") if work[name].poll() is None]
        seen["stalls"] = stalls()
        seen["audited"] = until(
            "all are in the audit log", lambda: audited()[_GO - 1 :] and audited()
        )
    for process in work.values():
        process.kill()
        process.wait()
    return seen


def cache() -> dict[str, Any]:
    """A file that is read again and again, in memory that grows short, for a while."""
    big = pathlib.Path("/var/tmp/big")
    with big.open("wb") as file:
        for _ in range(150):
            file.write(b"x" * _MI)
        os.fsync(file.fileno())
        # Pages belong to the group that touches them first: that is to be the reader's.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    reader = start("reader")
    tell(reader, "read", 3)
    tell(reader, "memory", 120)
    until("page cache is taken back", lambda: audited("Reclaim"))
    until("it is enough", lambda: not short("memory.available"))
    reclaimed = {"given": audited("Reclaim"), "gone": audited(), "ended": reader.poll()}
    reader.kill()
    reader.wait()
    big.unlink()
    return reclaimed


def ended(process: subprocess.Popen[bytes]) -> str:
    """How it ended; empty while it has not."""
    code = process.poll()
    return "" if code is None else signal.Signals(-code).name if code < 0 else str(code)


def short(signal_name: str) -> bool:
    """Whether the agent says that something is short, or does not answer."""
    signals = page().get("signals")
    return not signals or any(entry["name"] == signal_name and entry["met"] for entry in signals)


def unit(what: str) -> str:
    """What systemd says of the unit; empty once it is forgotten."""
    return service.sh("systemctl", "show", "-p", what, "--value", _UNIT).stdout.strip()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main()))
