"""What a slice of a day leaves behind in the memory of a whole agent, where pods come and go.

Reference: 4 MB after the half hour that fills the history, of which the allocator's own unrest is
about one: the number of its blocks is the same then at every mark.
The whole day is in ``tests/agent/test_days.py`` (soak).
"""

from __future__ import annotations

from tests.bench import gate
from tests.kit import days

#: Two in a hundred of a day's ticks, after the half hour that fills the rings.
SLICE = days.DAY * 2 // 100
_FULL = 1900
_SEED = 20_261_121
_BUDGET_MB = 4.0


def slice_of_a_day() -> gate.Ratio:
    """Megabytes."""
    print(f"     seed {_SEED}, {SLICE} ticks after {_FULL}")
    first, last = (
        mark.resident_mb for mark in days.ticks(_FULL + SLICE, _SEED, (_FULL, _FULL + SLICE))
    )
    return gate.Ratio(
        name=f"growth of an agent over {SLICE} ticks with churn",
        ours=max(0.001, last - first),
        reference=_BUDGET_MB,
        limit=1.0,
        unit="MB",
        against="the budget",
    )
