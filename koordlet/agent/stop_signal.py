"""Being told to stop before anybody can: the half second in which an agent's modules are imported.

Covers: SIGTERM and SIGINT from the first line of the program until the loop listens itself.
Does not cover: what stopping consists of (``loop``).

A process that dies of SIGTERM there leaves the limits of a crashed predecessor, which a final stop
puts back. So the signal is remembered; the start goes on to the point where it can stop in order.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

NUMBERS = (signal.SIGTERM, signal.SIGINT)

_heard: list[int] = []


def listen() -> None:
    """From now on remember. What a shell's background job ignores stays ignored."""
    for number in NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _hear)


def listening() -> bool:
    """Whether signals are remembered."""
    return any(signal.getsignal(number) is _hear for number in NUMBERS)


def heard() -> bool:
    """Whether the process was told to stop."""
    return bool(_heard)


def _hear(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGINT in _heard:
        os._exit(130)  # a person who says it twice, to a start that hangs
    _heard.append(number)
