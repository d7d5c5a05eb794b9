"""The pace of this machine just now: a fixed piece of Python, by what it costs at full speed.

Covers: budgets in CPU seconds. Measured alone they would tell the machine's clock, its neighbours
and the other thread of its core: one host needs up to twice as long for the same from minute to
minute. Does not cover: budgets in seconds that pass; a slow machine must hold these, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

#: CPU seconds of :func:`work` at full speed on the machine that the budgets are for (an AMD EPYC,
#: CPython 3.11).
FULL_SPEED = 0.003
_TURNS = 6


def budget(seconds: float, pairs: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The least of what was measured, and the budget at the pace measured in turn with it."""
    measured, pace = (min(side) for side in zip(*pairs, strict=True))
    return measured, seconds * pace / FULL_SPEED


def work() -> float:
    """CPU seconds of what agents and schedulers do all day: strings, dictionaries, a sort.

    Of this thread: what others of the process do meanwhile, as gRPC's, is no pace.
    """
    began = time.thread_time()
    for turn in range(_TURNS):
        rows = [(f"pod-{number * 7919 % 1000}", number ^ turn) for number in range(1000)]
        table = dict(rows)
        for name, number in rows:
            table[name] = table.get(name, 0) + number % 13
        assert len(sorted(table.items(), key=lambda row: (row[1], row[0]))) == len(table)
    return time.thread_time() - began
