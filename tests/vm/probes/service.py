"""Looks at the koordlet service in the guest, waits for it, and changes its settings.

Covers: both units, the workloads (a unit and two groups of our own), every control file.
Does not cover: the scenarios (``scenes``), what must be seen (``tests.vm.test_systemd``).

Rule: waiting is looking until something is so, with a limit. A scenario that waited in vain says
what for, and the probe fails.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

CGROUPS = pathlib.Path("/sys/fs/cgroup")
#: A process of each waits here: ``web`` is a unit, the others are groups that nobody else knows.
FILES = {
    "web": CGROUPS / "system.slice/web.service/cpuset.cpus",
    "batch": CGROUPS / "own/batch/cpuset.cpus",
    "user": CGROUPS / "own/user/cpuset.cpus",
}
UNITS = pathlib.Path("/etc/systemd/system")
DROP_INS = pathlib.Path("/run/systemd/system")
CONFIG = pathlib.Path("/etc/koordlet/config.yaml")
DEADLINE = pathlib.Path("/var/lib/koordlet/handover.json")
AUDIT = pathlib.Path("/var/log/koordlet/audit.jsonl")
BEFORE = pathlib.Path("/run/control-files-before.json")
AGENT, HELPER = "koordlet.service", "koordlet-restore.service"
SWITCH, LOOK = "koordlet-deadline.timer", "koordlet-deadline.service"
PROGRAM = pathlib.Path("/opt/koordlet/bin/koordlet")
#: A guard against hanging, nothing that is measured: each of several starts may take a minute.
PATIENCE = 400.0

COMMAND = """#!/bin/sh
exec python3 -P -m koordlet "$@"
"""
WEB = """[Service]
ExecStart=/bin/sleep infinity
AllowedCPUs=0-1
"""
#: A unit that nobody has given any CPUs: systemd hands no cpuset controller down for it.
PLAIN = """[Service]
ExecStart=/bin/sleep infinity
"""
WORKLOADS = """apiVersion: koordlet.io/v1
kind: Config
workloads:
  - {name: web, qos: LS, match: {unit: web.service}}
  - {name: batch, qos: BE, match: {cgroup: own/batch}}
  - {name: user, qos: BE, match: {cgroup: own/user}}
policies:
  reserved_cpus: {cpus: "RESERVED"}
  shared_pools: {enableControllers: true}
"""


def sh(*words: str) -> subprocess.CompletedProcess[str]:
    """A command; its failure is the caller's to look at."""
    return subprocess.run(words, capture_output=True, text=True, check=False)


def starts() -> int:
    """How often the agent was started since the boot.

    NRestarts counts a restart twice when units are read again while one is due.
    """
    told = sh("journalctl", "-b", "-u", AGENT, "--no-pager", "-o", "cat").stdout
    return sum(line.startswith(f"Starting {AGENT}") for line in told.splitlines())


@dataclasses.dataclass(frozen=True)
class State:
    """What systemd says of both units, asked once."""

    agent: dict[str, str]
    helper: dict[str, str]

    @property
    def pid(self) -> int:
        """The agent's process, 0 while there is none."""
        return int(self.agent["MainPID"])

    @property
    def waits(self) -> bool:
        """Whether the helper waits."""
        return self.helper["ActiveState"] in ("active", "activating")

    @property
    def alone(self) -> bool:
        """Whether the helper is gone altogether, its last command too."""
        return self.helper["ActiveState"] in ("inactive", "failed")

    @property
    def ended(self) -> bool:
        """Whether both are gone altogether."""
        return self.alone and self.agent["ActiveState"] in ("inactive", "failed")


def state() -> State:
    """Both units in one question: in emulation a process is dear."""
    names = "ActiveState,SubState,Result,NRestarts,MainPID,StatusText"
    text = sh("systemctl", "show", "-p", names, AGENT, HELPER).stdout
    agent, helper = (
        dict(line.split("=", 1) for line in part.split("\n")) for part in text.strip().split("\n\n")
    )
    return State(agent, helper)


def wait(what: str, done: Callable[[State], object], seconds: float = PATIENCE) -> State:
    """Looks until it is so; what systemd said then."""
    deadline = time.monotonic() + seconds
    while not done(now := state()):
        if time.monotonic() > deadline:
            status = sh("systemctl", "status", "--no-pager", "-n30", AGENT, HELPER).stdout
            sys.exit(f"waited {seconds:.0f} s in vain for: {what}\n{facts()}\n{status}")
        time.sleep(0.3)
    return now


def came_back(pid: int) -> Callable[[State], bool]:
    """Another agent than this one is ready, and nobody waits any more."""
    return lambda now: now.pid not in (0, pid) and healthy(now) and now.alone


def shown() -> dict[str, list[str | None]]:
    """Of both units: what systemd shows as their CPUs, what the kernel's file says."""
    sets: dict[str, list[str | None]] = {}
    for name in ("web", "plain"):
        unit = f"{name}.service"
        text = sh("systemctl", "show", "-p", "AllowedCPUs", "--value", unit).stdout.strip()
        sets[name] = [text, read(CGROUPS / "system.slice" / unit / "cpuset.cpus")]
    return sets


#: Longer than the agent waits before it asks a silent systemd again.
_SETTLE = 80.0


def settled(wanted: dict[str, list[str | None]]) -> dict[str, list[str | None]]:
    """The same, once it is so or the patience is at its end.

    A systemd that is slow to answer, as in emulation, is asked again after a while.
    """
    began = time.monotonic()
    while (sets := shown()) != wanted and time.monotonic() < began + _SETTLE:
        time.sleep(1)
    print(f"after {time.monotonic() - began:.0f} s: {sets}", file=sys.stderr, flush=True)
    return sets


def work() -> None:
    """Start the workloads, and write down every control file as it is without an agent."""
    (UNITS / "web.service").write_text(WEB)
    sh("systemctl", "start", "web.service").check_returncode()
    for name in ("batch", "user"):
        group = FILES[name].parent
        group.mkdir(parents=True)
        with subprocess.Popen(["sleep", "infinity"]) as process:
            (group / "cgroup.procs").write_text(str(process.pid))
            process.returncode = 0  # it stays
    BEFORE.write_text(json.dumps(control_files()))


def limits() -> dict[str, str | None]:
    """The CPUs of the workloads; None where there is no such file."""
    return {name: read(path) for name, path in FILES.items()}


def read(path: pathlib.Path) -> str | None:
    """A file's text without the newline; None when it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return None


def facts() -> dict[str, object]:
    """Where both units and the limits are right now."""
    now = state()
    return {
        "agent": [now.agent["ActiveState"], now.agent["SubState"]],
        "result": now.agent["Result"],
        "restarts": int(now.agent["NRestarts"]),
        "helper": now.helper["ActiveState"],
        "limits": limits(),
        "deadline": read(DEADLINE),
    }


def undone() -> dict[str, int]:
    """How often each file was put back so far."""
    counts: dict[str, int] = {}
    for line in (read(AUDIT) or "").splitlines():
        record = json.loads(line)
        if record.get("undo") and record.get("verdict") == "done":
            counts[record["target"]] = counts.get(record["target"], 0) + 1
    return counts


@contextlib.contextmanager
def watching() -> Iterator[list[str | None]]:
    """Every value that the batch workload's file had meanwhile, in order."""
    seen: list[str | None] = [limits()["batch"]]
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.02):
            if (now := read(FILES["batch"])) != seen[-1]:
                seen.append(now)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def control_files() -> dict[str, str]:
    """Every file of every group that can be written and read, without what lives by itself."""
    files = {}
    for folder, _, names in os.walk(CGROUPS):
        if "koordlet" in folder or "vm-agent" in folder:
            continue
        files[folder] = "group"
        for name in names:
            path = pathlib.Path(folder, name)
            # Newer kernels let a peak be written, which begins it anew.
            moving = name.endswith((".procs", ".threads", ".pressure", ".peak"))
            if path.stat().st_mode & 0o200 and not moving and (text := read(path)) is not None:
                files[str(path)] = text
    return files


def configure(reserved: str = "0", extra: str = "") -> None:
    """Write the configuration file."""
    CONFIG.parent.mkdir(exist_ok=True)
    CONFIG.write_text(WORKLOADS.replace("RESERVED", reserved) + extra)


def tune(*lines: str, handover: int = 900) -> None:
    """Lay drop-ins over both units: shorter pauses, and the patience that emulation needs.

    The helper has the same hand-over: where nothing of the agent ran, its deadline is the first.
    """
    seconds = f"Environment=KOORDLET_STATE__HANDOVER_SECONDS={handover}"
    # In emulation a start that fails may take a minute: two of them are too many at any pace.
    unit = ["[Unit]", "StartLimitBurst=2", "StartLimitIntervalSec=3600"]
    service = ["[Service]", "RestartSec=100ms", "TimeoutStartSec=300", "TimeoutStopSec=300"]
    service += [seconds, "WatchdogSec=300", *lines]
    for name, text in ((AGENT, [*unit, *service]), (HELPER, ["[Service]", seconds])):
        folder = DROP_INS / f"{name}.d"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "test.conf").write_text("\n".join([*text, ""]))
    sh("systemctl", "daemon-reload").check_returncode()


def healthy(now: State) -> bool:
    """Whether an agent is ready and all limits are in place."""
    return now.agent["ActiveState"] == "active" and not DEADLINE.exists() and limited()


def limited(cpus: str = "1") -> bool:
    """Whether all workloads have these CPUs."""
    return set(limits().values()) == {cpus}


def begin() -> int:
    """A healthy agent with a clean record, started if there is none; its process."""
    if state().agent["ActiveState"] == "active":
        now = wait("a healthy agent", healthy)  # a daemon-reload may just have overwritten a limit
    else:
        sh("systemctl", "stop", AGENT, HELPER)
        sh("systemctl", "reset-failed", AGENT, HELPER)
        started = sh("systemctl", "start", AGENT)
        if started.returncode:
            sys.exit(f"{started.stderr}{said()}")
        now = wait("a healthy agent", healthy)
    sh("systemctl", "reset-failed", AGENT)  # starts are counted from here
    AUDIT.unlink(missing_ok=True)
    return now.pid


def said() -> str:
    """What the agent logged in this boot."""
    return sh("journalctl", "-o", "cat", "--no-pager", "-u", AGENT).stdout


def different() -> list[str]:
    """What is not as it was before the first agent was started."""
    return differences(json.loads(BEFORE.read_text()), control_files())


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """What was there at one end alone, or is not like it was."""
    return [
        f"{name}: {before.get(name)!r}, now {after.get(name)!r}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
