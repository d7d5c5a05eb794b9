"""The figure of a week with and without plans is drawn from its record; plans help in it."""

from __future__ import annotations

import json

from tools.docs import rescheduling_week as week


def test_the_picture_is_that_of_the_record() -> None:
    """Whoever records anew draws anew."""
    result = json.loads(week.RECORD.read_text(encoding="utf-8"))
    assert week.picture(result) == week.PICTURE.read_text(encoding="utf-8"), (
        "python -m tools.docs.rescheduling_week"
    )
    assert [run["name"] for run in result["runs"]] == [way[0] for way in week.WAYS]


def test_a_simulation_is_the_same_each_time_and_plans_shorten_what_large_pods_wait() -> None:
    """The same pods come in each way; no plan that began stops for what its planner could know."""
    without, planned, again = (week.simulate(30, 24, 7, week.WAYS[way]) for way in (0, 1, 1))
    assert planned == again
    assert without["summary"]["moves"] == 0
    assert planned["summary"]["moves"] > 0
    assert planned["summary"]["refusals"] == {}
    assert sum(planned["summary"]["waitMinutes"]) < sum(without["summary"]["waitMinutes"])
