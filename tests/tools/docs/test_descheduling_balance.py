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
    names = [run["name"] for run in balance.means(result["runs"])]
    assert names == [way[0] for way in balance._WAYS]
    seeds = [[run["seed"] for run in result["runs"] if run["name"] == name] for name in names]
    assert seeds == [seeds[0]] * len(names)


def test_a_simulation_balances_and_is_the_same_each_time() -> None:
    """Rounds lower the number of hot nodes; a way without moves would lower nothing."""
    size = {"nodes": 60, "pods": 600, "movesPerRound": 10}
    run, again = (balance.simulate(size, 8, 7, balance._WAYS[1]) for _ in range(2))
    assert run == again
    first, last = run["points"][0], run["points"][-1]
    assert last[3] > 0
    assert last[1] < first[1]


def test_a_mean_is_that_of_its_seeds() -> None:
    """Point by point, each way for itself."""
    runs = [
        {"name": "a", "seed": 1, "points": [[0, 2.0], [1, 4.0]]},
        {"name": "a", "seed": 2, "points": [[0, 4.0], [1, 0.0]]},
        {"name": "b", "seed": 1, "points": [[0, 9.0]]},
    ]
    assert balance.means(runs) == [
        {"name": "a", "points": [[0.0, 3.0], [1.0, 2.0]]}, {"name": "b", "points": [[0.0, 9.0]]},
    ]  # fmt: skip
