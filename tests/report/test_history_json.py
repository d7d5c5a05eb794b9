"""The document of the history: what was asked for, bounded, in the times of now."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.http import message
from koordlet.model import meter
from koordlet.report import history_json
from tests.kit import clocks, pasts, recorders, views

RECORDED = recorders.after_an_hour(300)


def answer(query: str, recorded: Any = RECORDED) -> dict[str, Any]:
    """The document that a query gets."""
    request = message.parse(b"GET", f"/api/v1/history?{query}".encode(), [])
    now = views.view()
    document = history_json.document(recorded, now, history_json.query(request, now.snapshot.wall))
    loaded: dict[str, Any] = json.loads(json.dumps(document))
    return loaded


def test_without_a_query_the_last_five_minutes_of_everything() -> None:
    """Times are Unix seconds; the newest row is the newest moment."""
    document = answer("")

    assert (document["version"], document["resolutionSeconds"]) == ("v1", 1)
    assert set(document["series"]) == set(recorders.WAVES)
    assert len(document["at"]) == len(document["series"]["LS/cpuCores"]) == 300
    assert document["at"][-1] == round(views.WALL, 1)
    assert document["at"][0] == pytest.approx(views.WALL - 299, abs=0.1)


def test_a_query_names_series_beginnings_and_a_moment() -> None:
    """Names are taken as they are, beginnings with all that follows; unknown ones are not there."""
    document = answer("since=10s&series=LS/cpuCores,BE/,nobody/x")

    assert set(document["series"]) == {
        *("LS/cpuCores", "BE/cpuCores", "BE/limitCores"),
        *("BE/memoryBytes", "BE/cacheBytes"),
    }
    assert len(document["at"]) == 10
    assert all(isinstance(value, int) for value in document["series"]["BE/cacheBytes"])
    assert document["series"]["LS/cpuCores"][-1] == round(document["series"]["LS/cpuCores"][-1], 4)


def test_minutes_are_means() -> None:
    """Five minutes were recorded; the mean of a whole wave is its middle."""
    document = answer("resolution=1m&series=system/cpuCores")

    assert document["resolutionSeconds"] == 60
    assert document["series"]["system/cpuCores"] == pytest.approx([0.4] * 5, abs=0.001)


def test_all_workloads_have_five_seconds() -> None:
    """A page draws a line for each row of its table with one question."""
    past = pasts.past(groups={"shop/web": {meter.CPU: 1.5}}, until=100.0, seconds=20)
    document = answer("resolution=5s", recorders.recorder(past))

    assert document["at"] == [round(views.WALL - ago, 1) for ago in (15, 10, 5, 0)]
    assert document["series"] == {"default/web/cpuCores": [1.5, 1.5, 1.5, 1.5]}


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("resolution=2s", "resolution is not one of 1s, 5s, 1m"),
        ("since=yesterday", "yesterday"),
        ("serie=x", "unknown field 'serie'"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(query: str, problem: str) -> None:
    """By name."""
    with pytest.raises(ValueError, match=problem):
        answer(query)


def test_an_answer_is_bounded() -> None:
    """A day by seconds of everything would hold the loop: the error says what is too many."""
    clock = clocks.Clock(1000.0)
    recorded = recorders.recorder(clock=clock)
    for at in range(3600):
        recorded.seconds.take(1000.0 + at, {f"{n}/cpuCores": 1.0 for n in range(20)})
    clock.now = 4599.5

    with pytest.raises(ValueError, match="20 series of 3600 rows are more than 60000 samples"):
        answer("since=1h", recorded)
    assert len(answer("since=1h&series=1/,2/", recorded)["at"]) == 3600


def test_marks_come_with_their_moment() -> None:
    """On the same clock as the samples; only those after the moment that was asked for."""
    clock = clocks.Clock(1000.0)
    recorded = recorders.recorder(clock=clock)
    for number in (1, 2):
        recorded.publish(recorders.limited(number))
        clock.now += 8
    document = answer("since=10s", recorded)
    row: Any = history_json.row(recorded, views.WALL)

    moments = [round(views.WALL - ago, 1) for ago in (8, 16)]
    assert [(mark["at"], mark["policy"]) for mark in document["marks"]] == [
        (moments[0], "policy_2")
    ]
    assert (row["at"], [mark["at"] for mark in row["marks"]]) == (moments[0], moments)
