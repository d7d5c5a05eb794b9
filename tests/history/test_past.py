"""Samples as one value and back: the same windows, older by what passed, and damage in words."""

from __future__ import annotations

import base64
import json
import math
from array import array
from collections.abc import Callable
from typing import Any

import pytest

from koordlet.history import past, series
from koordlet.model import meter
from tests.kit import counting, pasts

AT = 1000.0
POD = {meter.CPU: 0.25, meter.MEMORY_ANON: 2.0**20}


def known() -> series.History:
    """A minute of a node and two pods, until ``AT``."""
    groups = {"a": POD, "b": {meter.CPU: 0.5, meter.MEMORY_ANON: 2.0**21}}
    return pasts.past(node={meter.CPU: 1.5}, groups=groups, until=AT, seconds=60)


def kept(suspended: float = 0.0) -> dict[str, Any]:
    """What a checkpoint has of that, as it is read back."""
    value = past.keep(known(), suspended)
    document: dict[str, Any] = json.loads(
        json.dumps({"suspended": value.suspended, "spaces": value.spaces})
    )
    return document


def revived(body: dict[str, Any], suspended: float = 0.0, at: float = AT) -> series.History:
    """A history that begins with it, after the first look at pods ``b`` and ``new``."""
    back = series.History()
    past.revive(back, body, suspended, at)
    groups = {meter.CPU: [0.0, 0.0], meter.MEMORY_ANON: [1.0, 1.0]}
    back.take(
        {
            "node": counting.reading(at, {meter.CPU: [0.0]}, names=("",)),
            "groups": counting.reading(at, groups, names=("new", "b")),
        }
    )
    return back


def test_each_sample_comes_back_to_whom_it_was_of() -> None:
    """Whatever slot its subject has now; who is gone is left out, and who is new has none."""
    before = known().groups.samples(meter.CPU)
    after = revived(kept()).groups.samples(meter.CPU)

    assert before is not None
    assert after is not None
    assert after.columns.keys() == {"b", "new"}
    size = len(before.at)
    assert list(before.at) == list(after.at)[:size]
    assert list(before.span) == list(after.span)[:size]
    old, new = before.columns["b"], after.columns["b"][:size]
    assert all((math.isnan(x) and math.isnan(y)) or x == y for x, y in zip(old, new, strict=True))
    assert all(map(math.isnan, after.columns["new"][:size]))


@pytest.mark.parametrize("slept", [0.0, 40.0])
def test_samples_are_older_by_time_in_suspend(slept: float) -> None:
    """The monotonic clock stood still meanwhile, and what was sampled did not grow younger."""
    before = known().node.samples(meter.CPU)
    after = revived(kept(suspended=5.0), suspended=5.0 + slept).node.samples(meter.CPU)

    assert before is not None
    assert after is not None
    assert [at - slept for at in before.at] == list(after.at)[: len(before.at)]


def test_a_history_without_samples_is_kept_as_one() -> None:
    """An agent that ended before its first look has nothing to say, and nothing is wrong."""
    value = past.keep(series.History(), 3.0)
    body = {"suspended": value.suspended, "spaces": value.spaces}

    assert value.suspended == 3.0
    assert all(not several for several in value.spaces.values())
    assert revived(body, suspended=3.0).node.window("", meter.CPU, AT, 60.0) is None


def test_what_another_version_kept_costs_itself() -> None:
    """A space that nobody knows, or with a meter that nobody knows, is left out; others count."""
    body = kept()
    body["spaces"]["moons"] = body["spaces"]["node"]
    body["spaces"]["groups"]["phase"] = body["spaces"]["groups"]["cpu"]
    body["spaces"]["shares"] = "none"
    back = revived(body)

    assert back.node.window("", meter.CPU, AT, 60.0) is not None
    assert back.groups.window("b", meter.CPU, AT, 60.0) is None


def _cells(*values: float) -> str:
    return base64.b64encode(array("f", values).tobytes()).decode()


def _set(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        body["spaces"]["node"]["cpu"][key] = value

    return change


def _future(body: dict[str, Any]) -> None:
    """A sample of tomorrow."""
    body["spaces"]["node"]["cpu"]["at"][-1] = AT + 1


def _between(body: dict[str, Any]) -> None:
    """Characters that a lenient decoder reads past."""
    column = body["spaces"]["node"]["cpu"]
    column["cells"] = f"!{column['cells']}"


def _whole(change: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    return lambda body: body.update(change)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_whole({"suspended": None}), "suspended or spaces is missing"),
        (_whole({"spaces": []}), "suspended or spaces is missing"),
        (_whole({"suspended": 1.0}), "of another clock"),
        (_whole({"suspended": math.nan}), "of another clock"),
        (_whole({"spaces": {"node": {"cpu": 7}}}), "a meter is no object"),
        (_set("at", None), "times are no numbers"),
        (_set("at", [True] * 60), "times are no numbers"),
        (_set("at", [math.nan] * 60), "times are no numbers"),
        (_set("span", ["1"] * 60), "times are no numbers"),
        (_set("at", [2.0, 1.0]), "not in order"),
        (lambda body: body["spaces"]["node"]["cpu"]["at"].append(AT), "not in order"),
        (_future, "not in order"),
        (_set("span", [1.0]), "not in order"),
        (_set("subjects", {"": 0}), "subjects are no texts"),
        (_set("subjects", [None]), "subjects are no texts"),
        (_set("subjects", ["", "more"]), "samples are missing"),
        (_set("cells", None), "damaged"),
        (_set("cells", "é"), "damaged"),
        (_set("cells", "AAA="), "damaged"),
        (_set("cells", _cells(1.0)), "samples are missing"),
        (_between, "damaged"),
    ],
)
def test_damage_is_refused_in_words_before_anything_is_taken(
    spoil: Callable[[dict[str, Any]], None], why: str
) -> None:
    """One part that cannot be ours discards the whole, and the history stays as it was."""
    body = kept()
    spoil(body)
    back = series.History()

    with pytest.raises(ValueError, match=why):
        past.revive(back, body, 0.0, AT)
    back.take({"groups": counting.reading(AT, {meter.CPU: [0.0]}, names=("b",))})
    assert back.groups.window("b", meter.CPU, AT, 60.0) is None
