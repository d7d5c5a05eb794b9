"""Best-effort work of the demo: all the CPU time that it can get.

Run alone: ``python hog.py PID GROUP CPUS``. A process for each CPU; they are forked in the group,
so that all of them are in it.

They end when their parent is not the process that it was: one that is killed before it can ask
would make it somebody else's for good.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

_SLICE = 0.1
_COUNTING = {"cpu", "cpuacct", "cpuset"}


def inside(group: str) -> bool:
    """Whether it is in its group in each hierarchy that counts; there is one on cgroup v2."""
    rows = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    counting = [row for row in rows if _COUNTING & set(row[1].split(","))]
    return all(group in path for _, _, path in counting or rows)


def main(parent: int, group: str, cpus: int) -> None:
    """Burn until the parent is gone."""
    forked = False
    while os.getppid() == parent:
        if not forked and inside(group):
            forked, mine = True, os.getpid()
            if any(os.fork() == 0 for _ in range(cpus - 1)):
                parent = mine
        end = time.monotonic() + _SLICE
        while time.monotonic() < end:
            pass


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
