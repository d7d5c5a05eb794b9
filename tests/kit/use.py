"""Processes that use something, on a real kernel, and what the counters say about them.

Covers: a busy process, one that runs into its CPU limit, one that holds memory; the same told by
``/proc``. Does not cover: judging it (``tests/e2e``, ``tests/vm``). Runs as a program, too:

    python -m tests.kit.use         prints what it saw, as JSON
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.history import series
from koordlet.host import machine
from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import usage
from koordlet.host.fs import live_host, root
from koordlet.host.topology import discovery
from koordlet.model import cgroup, meter

_HOST = live_host.LiveHost()
_CONTROLLERS = ("cpu", "cpuacct", "memory", "pids")
#: What the holder holds, and the share of a CPU that the limited one may have.
HELD_BYTES = 64 << 20
LIMIT = 0.2
_PROGRAMS = {
    "busy": "while True: pass",
    "limited": "while True: pass",
    "holder": f"x = b'x' * {HELD_BYTES}; import time; time.sleep(1000)",
}
_PATIENCE = 60.0


def look(ticks: int) -> dict[str, object]:
    """What the counters said after so many seconds, and what ``/proc`` said."""
    layout = hierarchies.discover(_HOST)
    top = f"koordlet-use-{os.getpid()}"
    with _groups(layout, top), _processes(layout, top) as pids:
        past, reader = series.History(), usage.UsageReader(_HOST)
        reader.configure(layout, discovery.discover(_HOST))
        paths = [f"{top}/{name}" for name in _PROGRAMS]
        groups = {path: cgroup.Group(path=path, inode=1) for path in paths}
        _step(past, reader, groups)
        first = {name: _seconds(pid) for name, pid in pids.items()}
        began = time.monotonic()
        for _ in range(ticks):
            time.sleep(1.0)
            _step(past, reader, groups)
        last = {name: _seconds(pid) for name, pid in pids.items()}
        lasted = time.monotonic() - began
        seen = {name: _said(past, f"{top}/{name}", ticks) for name in _PROGRAMS}
        reader.close()
    return {
        "version": layout.version.value,
        "proc": {name: (last[name] - first[name]) / lasted for name in pids},
        "counters": seen,
        "node": {
            "cores": _average(past, ticks),
            "cpus": os.cpu_count(),
            "pressure": past.node.last("", meter.PRESSURE_CPU.some[3]),
        },
        "counts": dict(reader.counts),
    }


def check(seen: Mapping[str, Any]) -> None:
    """Counters and ``/proc`` agree, and what was made scarce is seen to be."""
    counted, proc = seen["counters"], seen["proc"]
    for name in ("busy", "limited"):
        assert abs(counted[name]["cores"] - proc[name]) <= 0.05 + 0.1 * proc[name], seen
    assert counted["limited"]["cores"] <= 1.5 * LIMIT, seen
    assert counted["limited"]["throttled"] > 0.3, seen
    assert HELD_BYTES <= counted["holder"]["working_set"] <= 2 * HELD_BYTES, seen
    assert counted["holder"]["working_set"] <= counted["holder"]["memory"], seen
    assert all(group["pids"] == 1 for group in counted.values()), seen
    # The node's time is counted at clock ticks, of which an emulated machine loses some.
    assert proc["busy"] * 0.5 <= seen["node"]["cores"] <= seen["node"]["cpus"] * 1.05, seen
    if counted["limited"]["pressure"] is not None:
        # A task that has to wait for its next period is stalled.
        assert counted["limited"]["pressure"] > 0.2, seen


def _step(
    past: series.History, reader: usage.UsageReader, groups: Mapping[str, cgroup.Group]
) -> None:
    past.take(reader.read(machine.now(), groups))


def _average(past: series.History, ticks: int) -> float | None:
    window = past.node.window("", meter.CPU, time.monotonic(), ticks + 1.0)
    return None if window is None else window.average


def _said(past: series.History, path: str, ticks: int) -> dict[str, float | None]:
    cores = past.groups.window(path, meter.CPU, time.monotonic(), ticks + 1.0)
    return {
        "cores": None if cores is None else cores.average,
        "throttled": past.groups.last(path, meter.THROTTLED),
        "memory": past.groups.last(path, meter.MEMORY),
        "working_set": past.groups.last(path, meter.WORKING_SET),
        "pids": past.groups.last(path, meter.PIDS),
        "pressure": past.groups.last(path, meter.PRESSURE_CPU.some[3]),
    }


def _seconds(pid: int) -> float:
    """CPU time of a process."""
    words = _HOST.text(_HOST.proc(str(pid), "stat")).rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _groups(layout: cgroup.Layout, top: str) -> Iterator[None]:
    """The groups in every hierarchy that counts; gone at the end, and switches as they were."""
    made: list[root.HostPath] = []
    switched: list[tuple[root.HostPath, str]] = []
    try:
        for hierarchy in _hierarchies(layout):
            for path in (top, *(f"{top}/{name}" for name in _PROGRAMS)):
                if hierarchy.unified:
                    _switch(hierarchy, path.rpartition("/")[0], switched)
                directory = _HOST.at(hierarchy.directory(path))
                _HOST.mkdir(directory)
                made.append(directory)
        yield
    finally:
        for directory in reversed(made):
            _HOST.rmdir(directory)
        for file, word in reversed(switched):
            with contextlib.suppress(OSError):
                _HOST.write(file, f"-{word}".encode())


def _hierarchies(layout: cgroup.Layout) -> list[cgroup.Hierarchy]:
    holders = [layout.holder(name) for name in _CONTROLLERS]
    return list(dict.fromkeys(hierarchy for hierarchy in holders if hierarchy is not None))


def _switch(hierarchy: cgroup.Hierarchy, group: str, done: list[tuple[root.HostPath, str]]) -> None:
    """Hand the controllers down, and remember which were not."""
    file = _HOST.at(f"{hierarchy.directory(group)}/cgroup.subtree_control")
    before = _HOST.text(file).split()
    for word in ("cpu", "memory", "pids"):
        if word in hierarchy.controllers and word not in before:
            _HOST.write(file, f"+{word}".encode())
            done.append((file, word))


@contextlib.contextmanager
def _processes(layout: cgroup.Layout, top: str) -> Iterator[dict[str, int]]:
    """One process in each group; ended and gone at the end."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, program in _PROGRAMS.items():
            running[name] = subprocess.Popen([sys.executable, "-S", "-c", program])
            for hierarchy in _hierarchies(layout):
                directory = hierarchy.directory(f"{top}/{name}")
                if name == "limited" and "cpu" in hierarchy.controllers:
                    _limit(hierarchy, directory)
                _HOST.write(_HOST.at(f"{directory}/cgroup.procs"), str(running[name].pid).encode())
        yield {name: process.pid for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.wait()
        _until_empty(layout, top)


def _limit(hierarchy: cgroup.Hierarchy, directory: str) -> None:
    period = 100_000
    file = "cpu.max" if hierarchy.unified else "cpu.cfs_quota_us"
    text = f"{int(period * LIMIT)} {period}" if hierarchy.unified else str(int(period * LIMIT))
    _HOST.write(_HOST.at(f"{directory}/{file}"), text.encode())


def _until_empty(layout: cgroup.Layout, top: str) -> None:
    """A killed process leaves its group a moment after it was waited for."""
    end = time.monotonic() + _PATIENCE
    for hierarchy in _hierarchies(layout):
        for name in _PROGRAMS:
            file = _HOST.at(f"{hierarchy.directory(f'{top}/{name}')}/cgroup.procs")
            while _HOST.text(file).strip() and time.monotonic() < end:
                time.sleep(0.01)


if __name__ == "__main__":
    print(json.dumps(look(int(sys.argv[1]) if len(sys.argv) > 1 else 12)))
