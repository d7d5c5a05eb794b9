"""The figure of balance and cost: drawn from its record, which the descheduler itself made."""

from __future__ import annotations

import json

from tools.docs import descheduling_balance as balance


def test_the_picture_is_that_of_the_record() -> None:
    """Whoever records anew draws anew."""
    result = json.loads(balance.RECORD.read_text(encoding="utf-8"))
    assert balance.picture(result) == balance.PICTURE.read_text(encoding="utf-8"), (
        "python -m tools.docs.descheduling_balance"
    )
    assert [run["name"] for run in result["runs"]] == [way[0] for way in balance._WAYS]


def test_a_simulation_balances_and_is_the_same_each_time() -> None:
    """Rounds lower the number of hot nodes; a way without moves would lower nothing."""
    several = [balance.record(60, 600, 8, 10, balance._WAYS[1:2]) for _ in range(2)]
    assert several[0] == several[1]
    (run,) = several[0]["runs"]
    first, last = run["points"][0], run["points"][-1]
    assert last[3] > 0
    assert last[1] < first[1]
