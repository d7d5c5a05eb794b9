"""What the agent remembers for people: its memory against 8 MB, its time against 0.02 % of a core.

Covers: a recorder whose rows, workloads and marks are all full; two minutes of rows beside 250
workloads of which the busiest are recorded. Does not cover: answering ``/api/v1/history``.
"""

from __future__ import annotations

import dataclasses
import gc
import time
import tracemalloc
from array import array

from koordlet.history import series, shares
from koordlet.model import counters, meter
from koordlet.report import recorder
from tests.bench import gate, pace
from tests.kit import clocks, pasts, recorders, views

BUDGET_MB = 8.0
#: Of each second.
BUDGET_SECONDS = 0.0002
_WORKLOADS = 250
_ROWS = 120


def memory() -> gate.Ratio:
    """A day of rows, each series with samples, and marks of every kind."""
    tracemalloc.start()
    try:
        clock = clocks.Clock(0.0)
        made = recorders.recorder(series.History(), clock=clock)
        row = {f"subject {n}/cpuCores": float(n) for n in range(recorder.CAPACITY)}
        workloads = {f"team/pod-{n:05}-of-a-long-name/cpuCores": 1.0 for n in range(256)}
        for _ in range(recorder.SECONDS + 60):
            clock.now += 60
            made.seconds.take(clock.now, row)
            made.minutes.take(clock.now, row)
            made.workloads.take(clock.now, workloads)
            made.marks.take(recorders.limited(int(clock.now)), clock.now)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return gate.Ratio(
        name="memory of the recorded history",
        ours=held / 1e6,
        reference=BUDGET_MB,
        limit=1.0,
        unit="MB",
        against="the budget",
    )


def row() -> gate.Ratio:
    """The mean of two minutes of rows, the two of their means included."""
    pods = views.pods(_WORKLOADS)
    busy = {meter.CPU: 1.0, meter.WORKING_SET: 1e9, meter.THROTTLED: 0.1}
    past = pasts.past(groups={pod.group or "": busy for pod in pods}, until=100.0, seconds=60)
    now = dataclasses.replace(views.view(pods), used=_used(past))

    def ours() -> float:
        clock = clocks.Clock(100.0)
        made = recorders.recorder(past, clock=clock)
        before = time.process_time()
        for _ in range(_ROWS):
            clock.now += 1
            made.publish(now)
        return (time.process_time() - before) / _ROWS

    best, reference = pace.budget(
        BUDGET_SECONDS, ((ours(), pace.work()) for _ in range(gate.REPEATS))
    )
    return gate.Ratio(
        name="a second of the recorded history",
        ours=best,
        reference=reference,
        limit=1.0,
        unit="s",
        against="0.02 % of a core",
    )


def _used(past: series.History) -> counters.Usage:
    slots = {name: slot for slot, name in enumerate(shares.SUBJECTS)}
    known = (meter.CPU_SHARE, meter.MEMORY_SHARE, *meter.STALLED_SHARES, meter.PIDS_SHARE)
    columns = {what: array("d", [1.0] * len(slots)) for what in known}
    return dataclasses.replace(past.usage(), shares=counters.Table(slots=slots, columns=columns))
