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


def test_plans_shorten_what_large_pods_wait_and_none_stops_where_it_could_have_known() -> None:
    """The same pods come in both ways."""
    without, planned = (week.simulate(80, 12, 1, week.WAYS[way])["summary"] for way in (0, 1))
    assert without["moves"] == 0
    assert planned["moves"] > 0
    assert "room: timeout" not in planned["plans"]
    assert sum(planned["waitMinutes"]) < sum(without["waitMinutes"])


def test_a_simulation_is_the_same_each_time() -> None:
    """Its chance is that of its seed."""
    run, again = (week.simulate(10, 2, 1, week.WAYS[1]) for _ in range(2))
    assert run == again
    assert run["summary"]["moves"] > 0
