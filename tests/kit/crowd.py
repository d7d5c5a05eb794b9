"""A node's worth of groups with live processes, and what four observers say about the same moment.

Covers: pods with two containers each, a process in every container: some compute, some hold
memory, the rest wait; counters as ``host.counters.usage`` reads them, ``/proc``, ``systemd-cgtop``,
and a program in C. Does not cover: pressure (``tests.kit.strain``). Runs as a program, too:

    python -m tests.kit.crowd 250 REFERENCE      prints what it saw, as JSON

Where a counter only grows, the comparison is exact: the reference reads before and after, and what
we say lies between.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
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
_CONTAINERS = 2
#: So many compute for a part of the time, and so many hold memory.
BUSY, HOLDERS = 8, 8
_PART = 0.05
HELD_BYTES = 8 << 20
_TICKS = 12
_HANDED = b"+cpu +memory +pids"
_SOURCE = Path(__file__).with_suffix(".c")
#: What memory is charged to a group ahead of its use: 64 pages for each CPU.
_STOCK_BYTES = 64 * 4096


def build(program: Path) -> None:
    """Compile the reference, so that it runs on any machine with this processor."""
    subprocess.run(["gcc", "-O2", "-static", "-o", program, _SOURCE], check=True)


def look(pods: int, reference: str) -> dict[str, Any]:
    """What everybody says."""
    layout = hierarchies.discover(_HOST)
    top = f"koordlet-crowd-{os.getpid()}"
    leaves = [f"{top}/pod{pod}/c{box}" for pod in range(pods) for box in range(_CONTAINERS)]
    groups = list(dict.fromkeys(path for leaf in leaves for path in (_above(leaf), leaf)))
    with _groups(layout, [top, *groups]), _processes(layout, leaves) as pids:
        past, reader = series.History(), usage.UsageReader(_HOST)
        reader.configure(layout, discovery.discover(_HOST))
        followed = {path: cgroup.Group(path=path, inode=1) for path in groups}
        for _ in range(_TICKS):
            _step(past, reader, followed)
            time.sleep(1.0)
        began, first = time.monotonic(), {leaf: _seconds(pid) for leaf, pid in pids.items()}
        marks = {path: past.groups.total(path, meter.CPU) for path in groups}
        before: dict[str, dict[str, float]] = {}
        after = before
        for _ in range(_TICKS):
            time.sleep(1.0)
            before = _reference(reference, layout, groups)
            reader.thorough = True
            _step(past, reader, followed)
            after = _reference(reference, layout, groups)
        last, lasted = {leaf: _seconds(pid) for leaf, pid in pids.items()}, time.monotonic() - began
        top_says = _cgtop(top)
        counted = {path: _said(past, path, marks[path]) for path in groups}
        reader.close()
    return {
        "version": layout.version.value,
        "leaves": leaves,
        "said": counted,
        "before": before,
        "after": after,
        "proc": {leaf: last[leaf] - first[leaf] for leaf in leaves},
        "lasted": lasted,
        "cgtop": top_says,
        "cpus": os.cpu_count(),
        "counts": dict(reader.counts),
    }


def check(seen: Mapping[str, Any]) -> None:
    """All agree about every group."""
    counted, leaves = seen["said"], seen["leaves"]
    stock = _STOCK_BYTES * seen["cpus"]
    for path, ours in counted.items():
        before, after = seen["before"][path], seen["after"][path]
        least, most = before["cpu"] - 1e-6, after["cpu"] + 1e-6
        assert least <= ours["total"] <= most, (path, ours, before, after)
        low, high = sorted((before["memory"], after["memory"]))
        assert low - stock <= ours["memory"] <= high + stock, (path, ours, before, after)
        assert ours["pids"] == (1 if path in leaves else _CONTAINERS), (path, ours)
        assert ours["pids"] == after["pids"], (path, ours, after)
    for leaf, spent in seen["proc"].items():
        # Clock ticks of 10 ms at both ends.
        assert abs(counted[leaf]["grown"] - spent) <= 0.03 + 0.1 * spent, (
            leaf,
            counted[leaf],
            spent,
        )
    for leaf in leaves[:BUSY]:
        assert counted[leaf]["grown"] > 0.2 * _PART * seen["lasted"], (leaf, counted[leaf])
    for leaf in leaves[BUSY : BUSY + HOLDERS]:
        assert counted[leaf]["memory"] >= HELD_BYTES, (leaf, counted[leaf])
    shown = seen["cgtop"]
    assert len(shown) >= len(counted), (len(shown), len(counted))
    for path in counted:
        assert shown[path]["tasks"] == counted[path]["pids"], (path, shown[path], counted[path])
        if shown[path]["memory"] is not None:
            apart = abs(shown[path]["memory"] - counted[path]["memory"])
            assert apart <= stock + (1 << 20), (path, shown[path], counted[path])
    assert seen["counts"]["damaged"] == 0


def _above(leaf: str) -> str:
    return leaf.rpartition("/")[0]


def _step(
    past: series.History, reader: usage.UsageReader, groups: Mapping[str, cgroup.Group]
) -> None:
    past.take(reader.read(machine.now(), groups))


def _said(past: series.History, path: str, mark: float | None) -> dict[str, float | None]:
    total = past.groups.total(path, meter.CPU)
    return {
        "total": total,
        "grown": None if total is None or mark is None else total - mark,
        "memory": past.groups.last(path, meter.MEMORY),
        "pids": past.groups.last(path, meter.PIDS),
    }


def _seconds(pid: int) -> float:
    """CPU time of a process, by the scheduler's own nanoseconds."""
    return int(_HOST.text(_HOST.proc(str(pid), "schedstat")).split()[0]) * 1e-9


# Other observers ---------------------------------------------------------------------------------


def _reference(
    program: str, layout: cgroup.Layout, groups: Sequence[str]
) -> dict[str, dict[str, float]]:
    """What the program in C reads."""
    files = [file for path in groups for file in _files(layout, path)]
    reference = subprocess.run(
        [program], input="\n".join(files), stdout=subprocess.PIPE, text=True, check=True
    )
    numbers = list(map(int, reference.stdout.split()))
    scale = 1e-6 if _holder(layout, "cpuacct").unified else 1e-9
    return {
        path: {"cpu": cpu * scale, "memory": memory, "pids": pids}
        for path, cpu, memory, pids in zip(
            *(groups, numbers[::3], numbers[1::3], numbers[2::3]), strict=True
        )
    }


def _files(layout: cgroup.Layout, path: str) -> tuple[str, str, str]:
    unified = _holder(layout, "cpuacct").unified
    time, memory = (
        ("cpu.stat", "memory.current") if unified else ("cpuacct.usage", "memory.usage_in_bytes")
    )

    def file(controller: str, name: str) -> str:
        return f"{_holder(layout, controller).directory(path)}/{name}"

    return file("cpuacct", time), file("memory", memory), file("pids", "pids.current")


def _cgtop(top: str) -> dict[str, dict[str, float | None]]:
    """Tasks and memory of each group, as systemd-cgtop prints them."""
    words = ["--batch", "--raw", "--iterations=2", "--delay=1", "--depth=4", "--order=path"]
    done = subprocess.run(
        ["systemd-cgtop", *words, f"/{top}"], stdout=subprocess.PIPE, text=True, check=True
    )
    rows: dict[str, dict[str, float | None]] = {}
    for line in done.stdout.splitlines():
        fields = line.split()
        if len(fields) >= 4 and fields[0].strip("/").startswith(top):
            memory = None if fields[3] == "-" else float(fields[3])
            tasks = None if fields[1] == "-" else float(fields[1])
            rows[fields[0].strip("/")] = {"tasks": tasks, "memory": memory}
    return rows


# Groups and processes ----------------------------------------------------------------------------


def _holder(layout: cgroup.Layout, controller: str) -> cgroup.Hierarchy:
    hierarchy = layout.holder(controller)
    if hierarchy is None:
        msg = f"no hierarchy has {controller}"
        raise OSError(msg)
    return hierarchy


def _hierarchies(layout: cgroup.Layout) -> list[cgroup.Hierarchy]:
    return list(dict.fromkeys(_holder(layout, name) for name in _CONTROLLERS))


@contextlib.contextmanager
def _groups(layout: cgroup.Layout, paths: Sequence[str]) -> Iterator[None]:
    """The groups in every hierarchy that counts; gone at the end."""
    made: list[root.HostPath] = []
    try:
        for hierarchy in _hierarchies(layout):
            if hierarchy.unified:
                # A machine of our own: what the root hands down stays so.
                _HOST.write(_HOST.at(f"{hierarchy.directory('')}/cgroup.subtree_control"), _HANDED)
            for path in paths:
                directory = _HOST.at(hierarchy.directory(path))
                _HOST.mkdir(directory)
                made.append(directory)
                if hierarchy.unified and not path.rpartition("/")[2].startswith("c"):
                    file = _HOST.at(f"{directory}/cgroup.subtree_control")
                    _HOST.write(file, _HANDED)
        yield
    finally:
        for directory in reversed(made):
            _gone(directory)


def _gone(directory: root.HostPath) -> None:
    """A killed process leaves its group a moment after it was waited for."""
    for _ in range(6000):
        try:
            _HOST.rmdir(directory)
        except OSError:
            time.sleep(0.01)
        else:
            return
    _HOST.rmdir(directory)


@contextlib.contextmanager
def _processes(layout: cgroup.Layout, leaves: Sequence[str]) -> Iterator[dict[str, int]]:
    """One process in each; all of them ended at the end."""
    running: dict[str, int] = {}
    try:
        for number, leaf in enumerate(leaves):
            pid = os.fork()
            if not pid:
                _live(number)
            running[leaf] = pid
            for hierarchy in _hierarchies(layout):
                _HOST.write(
                    _HOST.at(f"{hierarchy.directory(leaf)}/cgroup.procs"), str(pid).encode()
                )
            # It begins where it is counted.
            os.kill(pid, signal.SIGUSR1)
        yield running
    finally:
        for pid in running.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _live(number: int) -> None:
    """The life of one process."""
    signal.sigwait({signal.SIGUSR1})
    held = b"x" * HELD_BYTES if BUSY <= number < BUSY + HOLDERS else b""
    while number >= BUSY:
        signal.pause()
    while not held:
        end = time.thread_time() + _PART / 10
        while time.thread_time() < end:
            pass
        time.sleep(0.1)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    print(json.dumps(look(int(sys.argv[1]), sys.argv[2])))
