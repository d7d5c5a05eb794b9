"""Groups that stress-ng puts under pressure, and what the counters say about it (cgroup v2).

Covers: more workers than CPU limit, files larger than the memory that a group may have, and one
group at rest. Does not cover: judging speed. Runs as a program, too:

    python -m tests.kit.strained         prints what it saw, as JSON
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.history import series
from koordlet.host import machine
from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import usage
from koordlet.host.fs import live_host
from koordlet.host.topology import discovery
from koordlet.model import cgroup, meter

_HOST = live_host.LiveHost()
_SECONDS = 30
_MEMORY = 32 << 20
#: Group to its files, and to what runs in it.
_LOADS: Mapping[str, tuple[Mapping[str, str], str]] = {
    "cpu": ({"cpu.max": "20000 100000"}, "--cpu 2"),
    "memory": (
        {"memory.max": str(_MEMORY)},
        "--hdd 1 --hdd-bytes 64m",
    ),
    "rest": ({}, ""),
}


def look() -> dict[str, Any]:
    """What the counters and the kernel's averages said at the end."""
    layout = hierarchies.discover(_HOST)
    holder = layout.holder("memory")
    assert holder is not None
    top = f"koordlet-strained-{os.getpid()}"
    with _groups(holder, top), _stress(holder, top):
        past, reader = series.History(), usage.UsageReader(_HOST)
        reader.configure(layout, discovery.discover(_HOST))
        reader.thorough = True
        groups = {f"{top}/{name}": cgroup.Group(path=f"{top}/{name}", inode=1) for name in _LOADS}
        before: dict[str, dict[str, float]] = {}
        after = before
        for _ in range(_SECONDS):
            time.sleep(1.0)
            before = _totals(holder, top)
            past.take(reader.read(machine.now(), groups))
            after = _totals(holder, top)
        stalls = {name: _said(past, f"{top}/{name}") for name in _LOADS}
        for name, by_resource in stalls.items():
            for resource, between in before[name].items():
                by_resource[resource] |= {"before": between, "after": after[name][resource]}
        node = {
            pressure.resource: past.node.last("", pressure.some[3]) for pressure in meter.PRESSURES
        }
        reader.close()
    return {"version": layout.version.value, "groups": stalls, "node": node}


def check(seen: Mapping[str, Any]) -> None:
    """Each load is seen where it is, and the group at rest has none of it."""
    groups = seen["groups"]
    assert groups["cpu"]["cpu"]["stalled"] > 0.3, seen
    assert groups["cpu"]["throttled"] > 0.3, seen
    assert groups["memory"]["io"]["stalled"] + groups["memory"]["memory"]["stalled"] > 0.02, seen
    for name, by_resource in groups.items():
        for resource in ("cpu", "memory", "io"):
            stall = by_resource[resource]
            assert stall["before"] <= stall["total"] <= stall["after"], (name, resource, stall)
            assert stall["full"] <= stall["total"], (name, resource, stall)
            # Averages are made every two seconds, which an emulated machine may be late with.
            assert stall["total"] > 0 or not stall["avg10"], (name, resource, stall)
    assert groups["rest"]["cpu"]["stalled"] < 0.01, seen
    assert seen["node"]["cpu"] > 0, seen


def _totals(holder: cgroup.Hierarchy, top: str) -> dict[str, dict[str, float]]:
    """The stall time of some tasks, read by hand."""
    return {
        name: {
            pressure.resource: int(
                re.findall(
                    r"total=(\d+)",
                    _HOST.text(
                        _HOST.at(
                            f"{holder.directory(f'{top}/{name}')}/{pressure.resource}.pressure"
                        )
                    ),
                )[0]
            )
            * 1e-6
            for pressure in meter.PRESSURES
        }
        for name in _LOADS
    }


def _said(past: series.History, path: str) -> dict[str, Any]:
    now = time.monotonic()
    values: dict[str, Any] = {"throttled": past.groups.last(path, meter.THROTTLED)}
    for pressure in meter.PRESSURES:
        window = past.groups.window(path, pressure.some[3], now, 20.0)
        values[pressure.resource] = {
            "stalled": None if window is None else window.average,
            "full": past.groups.total(path, pressure.full[3]),
            "total": past.groups.total(path, pressure.some[3]),
            "avg10": past.groups.last(path, pressure.some[0]),
        }
    return values


@contextlib.contextmanager
def _groups(holder: cgroup.Hierarchy, top: str) -> Iterator[None]:
    paths = [top, *(f"{top}/{name}" for name in _LOADS)]
    made = [_HOST.at(holder.directory(path)) for path in paths]
    handed = b"+cpu +memory +io +pids"
    # A machine of our own: what the root hands down stays so.
    _HOST.write(_HOST.at(f"{holder.directory('')}/cgroup.subtree_control"), handed)
    _HOST.mkdir(made[0])
    _HOST.write(_HOST.below(made[0], "cgroup.subtree_control"), handed)
    for directory, (files, _) in zip(made[1:], _LOADS.values(), strict=True):
        _HOST.mkdir(directory)
        for name, text in files.items():
            _HOST.write(_HOST.below(directory, name), text.encode())
    try:
        yield
    finally:
        for directory in reversed(made):
            for _ in range(3000):
                try:
                    _HOST.rmdir(directory)
                except OSError:
                    time.sleep(0.01)
                else:
                    break


@contextlib.contextmanager
def _stress(holder: cgroup.Hierarchy, top: str) -> Iterator[None]:
    """The loads, each born in its group; all processes of the groups ended at the end."""
    running = []
    for name, (_, words) in _LOADS.items():
        command = (
            f"exec stress-ng --quiet --temp-path /var/tmp {words}" if words else "exec sleep 1000"
        )
        inside = f"echo $$ > {holder.directory(f'{top}/{name}')}/cgroup.procs && {command}"
        running.append(subprocess.Popen(["sh", "-c", inside], stdout=subprocess.DEVNULL))
    try:
        yield
    finally:
        for name in _LOADS:
            path = _HOST.at(f"{holder.directory(f'{top}/{name}')}/cgroup.kill")
            _HOST.write(path, b"1")
        for process in running:
            process.wait()


if __name__ == "__main__":
    print(json.dumps(look()))
