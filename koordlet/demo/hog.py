"""Best-effort work of the demo: all the CPU time that it can get. Run alone: ``python hog.py PID``.

It ends when its parent is not the process that it was told: one that is killed before it can ask
would make it somebody else's for good.
"""

from __future__ import annotations

import os
import sys
import time

_SLICE = 0.1


def main(parent: int) -> None:
    """Burn until the parent is gone."""
    while os.getppid() == parent:
        end = time.monotonic() + _SLICE
        while time.monotonic() < end:
            pass


if __name__ == "__main__":
    main(int(sys.argv[1]))
