"""Asks the demo's service, and says how long answers took.

Run alone, with pipes: ``python load.py PARENT CPUS REQUESTS ANSWERS``.

Covers: when requests are due (open loop: they do not wait for answers, but are refused while those
of a quarter of a second wait), one line each second on standard output: answered, p50 and p99 in
milliseconds, refused.
Does not cover: answering (``service``).

For five of each twenty seconds the requests need nearly all that ``CPUS`` can do, else a third of
one.
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
#: Seconds of CPU that a request needs, and requests a second at most: beyond, they need more.
_WORK = 0.003
_RATE = 2000.0
_QUIET = 0.3
_BUSY = 0.95
#: Of each ``_ROUND`` seconds those after ``_CALM`` are busy.
_ROUND, _CALM = 20.0, 15.0
#: Seconds of requests that may wait for an answer, and how many may in any case.
_PATIENCE, _FEW = 0.25, 8


def busy(at: float) -> bool:
    """True if the client sends many requests at this time after the start."""
    return at % _ROUND > _CALM


def wanted(at: float, cpus: int) -> tuple[float, float]:
    """Seconds until the next request, and the work of it, so long after the start."""
    cores = _BUSY * cpus if busy(at) else _QUIET
    rate = min(_RATE, cores / _WORK)
    return 1 / rate, cores / rate


def percentile(ordered: list[float], part: float) -> float:
    """The least value that at least this part of them does not exceed."""
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else 0.0


def main(parent: int, cpus: int, requests: int, answers: int) -> None:
    """Ask until the parent is gone."""
    start = due = printed_at = time.monotonic()
    took: list[float] = []
    refused = waiting = 0
    while os.getppid() == parent:
        now = time.monotonic()
        while due <= now:
            pause, work = wanted(due - start, cpus)
            if waiting < max(_FEW, _PATIENCE / pause):
                os.write(requests, _REQUEST.pack(due, work))
                waiting += 1
            else:
                refused += 1
            due += pause
        if now - printed_at >= 1.0:
            took.sort()
            p50, p99 = (1000 * percentile(took, part) for part in (0.5, 0.99))
            print(len(took), f"{p50:.3f} {p99:.3f}", refused, flush=True)  # noqa: T201 -- its task
            took, refused, printed_at = [], 0, now
        if select.select([answers], [], [], max(0.0, due - time.monotonic()))[0]:
            data = os.read(answers, 512 * _ANSWER.size)
            if not data:
                return
            now = time.monotonic()
            took += [now - sent_at for (sent_at,) in _ANSWER.iter_unpack(data)]
            waiting -= len(data) // _ANSWER.size


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
