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


def main(parent: int, group: str, cpus: int) -> None:
    """Burn until the parent is gone."""
    forked = False
    while os.getppid() == parent:
        if not forked and group in Path("/proc/self/cgroup").read_text():
            forked, mine = True, os.getpid()
            if any(os.fork() == 0 for _ in range(cpus - 1)):
                parent = mine
        end = time.monotonic() + _SLICE
        while time.monotonic() < end:
            pass


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
