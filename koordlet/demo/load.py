"""Asks the demo's service, and says when each answer came.

Run alone, with pipes: ``python load.py PARENT CPUS REQUESTS ANSWERS``.

Covers: when requests are due (open loop: they do not wait for answers, but are refused while those
of a quarter of a second wait), a record on standard output for each that was answered or refused.
Does not cover: answering (``service``), what the times say (``latency``, ``comparison``).

While koordlet is compared with its absence, the requests need a fifth and three fifths of the CPUs
in turn, half a second each. After that they need nearly all for five of each twenty seconds, else
an eighth.
"""

from __future__ import annotations

import math
import os
import select
import struct
import sys
import time

_REQUEST = struct.Struct("dd")
_ANSWER = struct.Struct("d")
#: When a request was due and when it was answered, monotonic; infinity for one that was refused.
RECORD = struct.Struct("dd")
#: Seconds of CPU that a request needs, and requests a second at most: beyond, they need more.
_WORK = 0.003
_RATE = 2000.0
#: Seconds of steps, longer than a comparison.
STEPS = 75.0
_LOW, _HIGH = 0.2, 0.6
#: Parts of the CPUs after that; of each ``_ROUND`` seconds those after ``_CALM`` are busy.
_QUIET, _BUSY = 0.125, 0.95
_ROUND, _CALM = 20.0, 15.0
#: Seconds of requests that may wait for an answer, and how many may in any case.
PATIENCE, _FEW = 0.25, 8


def part(at: float) -> float:
    """The part of the CPUs that requests need at this time after the start."""
    if at < STEPS:
        return _HIGH if at % 1 >= 0.5 else _LOW
    return _BUSY if at % _ROUND > _CALM else _QUIET


def wanted(at: float, cpus: int) -> tuple[float, float]:
    """Seconds until the next request, and the work of it, so long after the start."""
    cores = part(at) * cpus
    rate = min(_RATE, cores / _WORK)
    return 1 / rate, cores / rate


def main(parent: int, cpus: int, requests: int, answers: int) -> None:
    """Ask until the parent is gone."""
    start = due = time.monotonic()
    waiting = 0
    while os.getppid() == parent:
        now = time.monotonic()
        records = b""
        while due <= now:
            pause, work = wanted(due - start, cpus)
            if waiting < max(_FEW, PATIENCE / pause):
                os.write(requests, _REQUEST.pack(due, work))
                waiting += 1
            else:
                records += RECORD.pack(due, math.inf)
            due += pause
        if select.select([answers], [], [], max(0.0, due - time.monotonic()))[0]:
            data = os.read(answers, 512 * _ANSWER.size)
            if not data:
                return
            now = time.monotonic()
            records += b"".join(RECORD.pack(sent, now) for (sent,) in _ANSWER.iter_unpack(data))
            waiting -= len(data) // _ANSWER.size
        if records:
            os.write(1, records)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
