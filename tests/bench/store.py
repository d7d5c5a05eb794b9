"""Memory of 5 000 series against the budget of 12 MB, and of a day's slice with churn against none.

Covers: CPU and memory of 2 500 groups, each with five minutes one by one and half an hour in steps,
after everything has been filled; growth of the process while groups come and go.
Does not cover: the Python interpreter itself.
"""

from __future__ import annotations

import gc
import random
import tracemalloc
from array import array

from koordlet.history import series
from koordlet.model import counters, meter
from tests.bench import gate

BUDGET_MB = 12.0
#: What may remain of a slice of a day: numbers of a fixed size do not grow.
GROWTH_MB = 1.0
_GROUPS = 2500
_SERIES = (meter.CPU, meter.MEMORY, meter.MEMORY_INACTIVE_FILE)
#: Two in a hundred of a day's ticks.
SLICE = 86_400 * 2 // 100
_SEED = 20_261_121


def five_thousand_series() -> gate.Ratio:
    """Two series of each of 2 500 groups, when all rings are full."""
    tracemalloc.start()
    try:
        past = series.History()
        before, _ = tracemalloc.get_traced_memory()
        slots = {f"group-{n}": n for n in range(_GROUPS)}
        columns = {each: array("d", range(_GROUPS)) for each in _SERIES}
        for at in range(0, 1860, 3):
            past.take({"groups": _reading(at, slots, columns)})
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return gate.Ratio(
        name="memory of 5 000 series",
        ours=(after - before) / 1e6,
        reference=BUDGET_MB,
        limit=1.0,
        unit="MB",
        against="the budget",
    )


def growth(ticks: int = SLICE) -> gate.Ratio:
    """What a slice of a day leaves behind, in which groups come and go all the time."""
    chance = random.Random(_SEED)
    print(f"     seed {_SEED}, {ticks} ticks")
    past, names, serial = series.History(), [f"group-{n}" for n in range(300)], 300
    columns = {each: array("d", range(len(names))) for each in _SERIES}
    marks = []
    tracemalloc.start()
    try:
        for at in range(ticks):
            slot = chance.randrange(len(names))
            names[slot], serial = f"group-{serial}", serial + 1
            slots = {name: n for n, name in enumerate(names)}
            past.take({"groups": _reading(at, slots, columns, renewed=(slot,))})
            past.usage()
            if at in (ticks // 2, ticks - 1):
                gc.collect()
                marks.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return gate.Ratio(
        name=f"growth over the second half of {ticks} ticks",
        ours=max(0.001, (marks[1] - marks[0]) / 1e6),
        reference=GROWTH_MB,
        limit=1.0,
        unit="MB",
        against="the budget",
    )


def _reading(
    at: float,
    slots: dict[str, int],
    columns: dict[meter.Meter, array[float]],
    renewed: tuple[int, ...] = (),
) -> counters.Reading:
    return counters.Reading(
        at=float(at),
        suspended=0.0,
        slots=slots,
        renewed=renewed,
        width=len(slots),
        batches=tuple(
            counters.Batch(measured, 0, 1, column) for measured, column in columns.items()
        ),
    )
