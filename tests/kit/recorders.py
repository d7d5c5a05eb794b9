"""Recorders of a node's history, with a clock of their own.

Covers: one that is new, and one that has seen an hour of waves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from koordlet.history import series
from koordlet.model import best_effort
from koordlet.report import recorder as recorder_
from koordlet.report import view
from tests.kit import clocks, views

#: What a node of eight CPUs does: middle, height of the wave, seconds of one wave.
WAVES: Mapping[str, tuple[float, float, float]] = {
    "node/cpus": (8.0, 0.0, 60.0),
    "node/memoryTotalBytes": (float(16 << 30), 0.0, 60.0),
    "LS/cpuCores": (2.0, 1.5, 600.0),
    "LSE/cpuCores": (1.0, 0.1, 120.0),
    "BE/cpuCores": (2.5, 1.0, 300.0),
    "system/cpuCores": (0.4, 0.1, 60.0),
    "BE/limitCores": (4.0, 0.5, 900.0),
    "LS/memoryBytes": (float(4 << 30), float(1 << 28), 900.0),
    "BE/memoryBytes": (float(2 << 30), float(1 << 28), 700.0),
    "LS/latencySeconds": (0.006, 0.003, 600.0),
    "node/pressure.cpu.some": (0.2, 0.15, 300.0),
    "node/pressure.io.some": (0.05, 0.05, 500.0),
    "link eth0/receivedBytesPerSecond": (3e6, 2e6, 200.0),
    "link eth0/sentBytesPerSecond": (1e6, 5e5, 250.0),
    "BE/cacheBytes": (float(3 << 20), float(1 << 20), 300.0),
}


def recorder(
    past: series.History | None = None, *, clock: clocks.Clock | None = None
) -> recorder_.Recorder:
    """A new one."""
    return recorder_.Recorder(
        series.History() if past is None else past,
        clock=clocks.Clock(1000.0) if clock is None else clock,
    )


def limited(number: int) -> view.ReportView:
    """A view with a limit of its own: another policy sets it each time."""
    limit = best_effort.Limit(
        policy=f"policy_{number}", actuator="x", milli=1000 * (number % 7), reason="y" * 80
    )
    return views.view(made=views.made_plan(limit=limit))


def after_an_hour(seconds: int = 3600, *, clock: clocks.Clock | None = None) -> recorder_.Recorder:
    """One that has recorded so long."""
    clock = clocks.Clock(100_000.0) if clock is None else clock
    made = recorder(clock=clock)
    for second in range(seconds):
        clock.now += 1
        made.row = {
            name: middle + height * math.sin(second * math.tau / wave)
            for name, (middle, height, wave) in WAVES.items()
        }
        made.seconds.take(clock.now, made.row)
        if second % 60 == 59:
            made.minutes.take(clock.now, made.seconds.means(clock.now - 60))
    return made
