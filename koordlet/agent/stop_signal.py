"""Remembers a signal to stop that comes while the agent's modules are still being imported.

Covers: SIGTERM, SIGINT and SIGHUP from the first line of the program until the loop handles them.
Does not cover: stopping (``loop``).

A process that dies of SIGTERM there would leave the limits of a crashed predecessor, which a final
stop puts back. So the signal is remembered, and the start goes on until it can stop in order.
SIGHUP asks for the configuration to be read again, which a start is about to do.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

NUMBERS = (signal.SIGTERM, signal.SIGINT)

_heard: list[int] = []


def listen() -> None:
    """Remember signals from now on. A signal that a shell set to be ignored stays ignored."""
    for number in NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _hear)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def listening() -> bool:
    """Whether signals are remembered."""
    return any(signal.getsignal(number) is _hear for number in NUMBERS)


def heard() -> bool:
    """Whether a signal to stop has come."""
    return bool(_heard)


def _hear(number: int, _frame: FrameType | None) -> None:
    if number == signal.SIGINT in _heard:
        os._exit(130)  # a second Ctrl-C, at a start that hangs
    _heard.append(number)
