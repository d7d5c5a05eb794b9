"""Counters of groups by perf_event_open on this host's kernel.

This processor may have none of its own, so the pair is of the kernel's: time on a CPU and switches.
The way is the same: one counter for each CPU, in a window, of one group.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.history import series
from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import performance
from koordlet.host.fs import live_host
from koordlet.host.process import perf_events
from koordlet.host.topology import discovery
from koordlet.model import cgroup, meter, pod, qos
from tests.kit import needs

pytestmark = pytest.mark.e2e

#: Nanoseconds on a CPU: the kernel counts them on every machine.
_CPU_CLOCK: perf_events.Event = (1, 0)
_PROGRAM = "while True: pass"


class Host(live_host.LiveHost):
    """This machine, with the kernel's own counters."""

    def performance(self) -> perf_events.PerfEvents:
        """Of every machine."""
        return perf_events.PerfEvents((_CPU_CLOCK, perf_events.SWITCHES))


def test_time_of_a_group_by_its_counters() -> None:
    """What a group's counters say of its time on a CPU is what its process has spent."""
    host = Host()
    unified = [
        hierarchy for hierarchy in hierarchies.discover(host).hierarchies if hierarchy.unified
    ]
    if os.geteuid() or not unified:
        needs.missing("needs root and a v2 tree")
    layout = cgroup.Layout(hierarchies=tuple(unified))
    online = discovery.discover(host).online
    past, reader = (
        series.History(),
        performance.PerformanceReader(host, performance.PerformanceSettings(window=2.0)),
    )
    name = f"koordlet-perf-{os.getpid()}"
    with _busy(Path(unified[0].directory(name))) as pid:
        workload = pod.Pod(
            uid="a", namespace="n", name="a", qos=qos.Qos.LS, source="test", group=name
        )
        began = _seconds(pid)
        assert reader.read(0.0, 0.0, layout, online, [workload]) is None
        if reader.unsupported:
            # A kernel without perf_event_open, or one that forbids it: no set-up can bring it.
            pytest.skip(reader.unsupported[0].why)
        time.sleep(2.0)
        rates = reader.read(2.0, 0.0, layout, online, [workload])
        spent = _seconds(pid) - began
    assert rates is not None
    past.take({"work": rates})
    counted = past.work.last(name, meter.CYCLES)

    assert counted is not None
    assert spent > 0.2
    assert abs(counted * 1e-9 - spent) <= 0.05 + 0.1 * spent
    assert (past.work.last(name, meter.INSTRUCTIONS) or 0) > 0
    reader.close()


def test_a_processor_without_counters_says_so() -> None:
    """Where this machine has none, that is a value; where it has, cycles are counted."""
    host = live_host.LiveHost()
    layout = hierarchies.discover(host)
    if os.geteuid() or not any(hierarchy.unified for hierarchy in layout.hierarchies):
        needs.missing("needs root and a v2 tree")
    pair: tuple[int, ...] = ()
    number: int | None = None
    try:
        pair = host.performance().open(host.at(_directory(layout)), 0)
    except OSError as error:
        number = error.errno

    assert pair or number in performance.WHY
    if pair:
        assert host.performance().read(pair[0]).wanted >= 0
        host.performance().close(pair)


def _directory(layout: cgroup.Layout) -> str:
    return next(hierarchy.directory("") for hierarchy in layout.hierarchies if hierarchy.unified)


@contextlib.contextmanager
def _busy(group: Path) -> Iterator[int]:
    """A process that computes, alone in its group."""
    group.mkdir()
    running = subprocess.Popen([sys.executable, "-S", "-c", _PROGRAM])
    try:
        (group / "cgroup.procs").write_text(str(running.pid))
        yield running.pid
    finally:
        running.kill()
        running.wait()
        while (group / "cgroup.procs").read_text():
            time.sleep(0.01)
        group.rmdir()


def _seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9
