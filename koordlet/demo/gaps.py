"""Marks the time in which the host took a CPU away and did not say so. Run alone: ``gaps.py PID``.

Covers: a thread of the real-time class on each CPU that wakes at a fixed pace, a record on standard
output (begin and end, monotonic seconds) for each wake-up that was late.
Does not cover: what a gap means for a request (``intervals``).

It belongs in the root group: on cgroup v1 a child has no real-time budget. Where the class is
refused it ends with 1: then nobody knows the gaps.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time

RECORD = struct.Struct("dd")
#: Seconds between wake-ups: the more CPUs, the longer, so that all together cost little; a wake-up
#: that is later than the other is a gap.
_STEP, _STEP_PER_CPU = 0.002, 0.0001
_LATE = 0.001


def watch(cpu: int, step: float, parent: int) -> None:
    """Wake up on one CPU until the parent is gone."""
    os.sched_setaffinity(0, {cpu})
    due = time.monotonic()
    while os.getppid() == parent:
        due += step
        time.sleep(max(0.0, due - time.monotonic()))
        woke = time.monotonic()
        if woke - due > _LATE:
            os.write(1, RECORD.pack(due - step, woke))
            due = woke


def main(parent: int) -> int:
    """Watch each CPU; 1 where the kernel refuses the class."""
    cpus = sorted(os.sched_getaffinity(0))
    try:
        # Threads inherit it.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except PermissionError:
        return 1
    step = max(_STEP, _STEP_PER_CPU * len(cpus))
    threads = [threading.Thread(target=watch, args=(cpu, step, parent)) for cpu in cpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
