"""Expectations: what prod will not need, the smaller of two estimates; nothing from the young."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import expectation
from koordlet.model import pod, qos
from tests.kit import views

DAY = expectation.COLD_SECONDS
GIB = float(1 << 30)
_EMPTY: dict[str, object] = {"age": 0, "weights": {}}
CAPACITY = {"cpu": 64.0, "memory": 64 * GIB}


def workload(name: str, cores: float, **changes: Any) -> pod.Pod:
    """A prod pod that asks for CPUs and as many GiB."""
    asked = {"cpu": int(cores * 1000), "memory": int(cores * GIB)}
    base = dataclasses.replace(views.workload(name), requests=asked, band=qos.Band.PROD)
    return dataclasses.replace(base, **changes)


def trained(used: dict[str, float], *, prod: float, system: float) -> expectation.Expectation:
    """Two days of steady use, a sample an hour."""
    made = expectation.Expectation()
    for hour in range(49):
        for who, cores in {
            **used,
            expectation.PROD: prod,
            expectation.SYSTEM: system,
        }.items():
            made.train(who, cores, cores * GIB, hour * 3600.0)
    return made


def test_what_is_asked_for_and_not_needed() -> None:
    """The request without the peak and its margin."""
    made = trained({"uid-a": 1.0}, prod=1.0, system=0.5)
    prediction = made.predict([workload("a", 8.0)], CAPACITY, 2 * DAY)

    # By class: 8 - (1 + 0.5) * 1.1; by workload it would be 8 - 1.1.
    assert prediction.reclaimable["cpu"] == pytest.approx(8 - 1.65, rel=0.03)
    assert prediction.peak["cpu"] == pytest.approx(1.65, rel=0.1)
    assert prediction.reclaimable["memory"] == pytest.approx((8 - 1.65) * GIB, rel=0.03)


def test_the_young_give_nothing() -> None:
    """A workload of less than a day reclaims nothing, and its request is its peak."""
    made = trained({"uid-a": 1.0}, prod=1.0, system=0.5)
    made.train("uid-b", 0.1, GIB, 2 * DAY)
    prediction = made.predict([workload("a", 8.0), workload("b", 16.0)], CAPACITY, 2 * DAY)

    assert prediction.reclaimable["cpu"] == pytest.approx(8 - 1.1, rel=0.03)
    assert prediction.peak["cpu"] == pytest.approx(16 + 1.1, rel=0.03)


def test_best_effort_and_ended_pods_do_not_count() -> None:
    """Batch pods, those that are over, and those that are being deleted give nothing."""
    made = trained({"uid-a": 1.0}, prod=0.0, system=0.0)
    for change in (
        {"band": qos.Band.BATCH},
        {"phase": pod.Phase.SUCCEEDED},
        {"deleting": 5.0},
        {"band": None, "qos": qos.Qos.BE},
    ):
        prediction = made.predict([workload("a", 8.0, **change)], CAPACITY, 2 * DAY)
        assert prediction.reclaimable["cpu"] == 0


def test_unknown_is_no_value() -> None:
    """Before the classes were sampled, or without capacity, there is no prediction: not zero."""
    made = expectation.Expectation()
    assert made.predict([workload("a", 8.0)], CAPACITY, 0.0).reclaimable == {}
    assert trained({}, prod=1.0, system=1.0).predict([], {}, 2 * DAY).peak == {}


def test_the_gone_are_forgotten() -> None:
    """Who was not seen for half an hour is dropped, who was seen stays."""
    made = trained({"uid-a": 1.0}, prod=1.0, system=1.0)
    made.train("uid-b", 1.0, GIB, 2 * DAY + 1700)
    made.forget(2 * DAY + 1801)

    assert len(made) == 1


@hypothesis.given(
    requests=st.lists(st.floats(0, 100), max_size=5),
    prod=st.floats(0, 100),
    system=st.floats(0, 100),
)
def test_never_more_than_there_is(requests: list[float], prod: float, system: float) -> None:
    """Reclaimable is not negative, not more than was asked for, not more than the node has."""
    used = {f"uid-w{n}": cores / 2 for n, cores in enumerate(requests)}
    made = trained(used, prod=prod, system=system)
    pods = [workload(f"w{n}", cores) for n, cores in enumerate(requests)]
    reclaimable = made.predict(pods, CAPACITY, 2 * DAY).reclaimable["cpu"]

    assert 0 <= reclaimable <= min(CAPACITY["cpu"], sum(requests) + 1e-9)


def test_saved_in_parts_and_revived() -> None:
    """All parts together are all models; the time in between ages what they know."""
    names = {f"uid-{n}": float(n) for n in range(40)}
    made = trained(names, prod=2.0, system=1.0)
    back = expectation.Expectation()
    for number in range(expectation.PARTS):
        part = dataclasses.asdict(made.part(number, 2 * DAY, 1000.0))
        back.revive(json.loads(json.dumps(part)), 5.0, 1060.0)
    pods = [workload(f"{n}", 50.0) for n in range(3)]

    assert len(made) == len(back) == 42
    assert made.predict(pods, CAPACITY, 2 * DAY) == back.predict(pods, CAPACITY, 5.0)


def test_a_clock_that_was_set() -> None:
    """Decades between saving and reviving are a clock that was wrong: nobody is old by it."""
    made = trained({"uid-a": 1.0}, prod=1.0, system=0.5)
    back = expectation.Expectation()
    for number in range(expectation.PARTS):
        back.revive(dataclasses.asdict(made.part(number, 2 * DAY, 60.0)), 5.0, 1.7e9)
    for who in ("uid-a", expectation.PROD, expectation.SYSTEM):
        back.train(who, 0.1, GIB, 6.0)
    prediction = back.predict([workload("a", 8.0)], CAPACITY, 6.0)

    assert prediction.reclaimable["cpu"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"wall": 1, "models": {"a": {"first": float("nan"), "cpu": _EMPTY, "memory": _EMPTY}}},
        {"wall": 1, "models": {"a": {"first": -1e9, "cpu": _EMPTY, "memory": _EMPTY}}},
        {"wall": "x", "models": {}},
        {"wall": 1, "models": []},
        {"wall": 1, "models": {"a": 5}},
        {"wall": 1, "models": {"a": {}}},
        {"wall": 1, "models": {"a": {"first": 1, "cpu": {}, "memory": {}}}},
    ],
)
def test_a_damaged_part(body: dict[str, object]) -> None:
    """Nothing of it is taken."""
    made = expectation.Expectation()
    with pytest.raises(ValueError, match=r"."):
        made.revive(body, 0.0, 0.0)

    assert len(made) == 0


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1.0, True, None, "7"])
@pytest.mark.parametrize("where", ["wall", "first"])
def test_a_time_that_is_none(where: str, number: object) -> None:
    """JSON knows NaN and infinity: a model without an age would be believed as an old one."""
    made = expectation.Expectation()
    made.train("a", 1.0, GIB, 0.0)
    body = dataclasses.asdict(made.part(expectation.part_of("a"), DAY, 1000.0))
    part: dict[str, Any] = json.loads(json.dumps(body))
    (part if where == "wall" else part["models"]["a"])[where] = number
    back = expectation.Expectation()
    with pytest.raises(ValueError, match="not a"):
        back.revive(part, 5.0, 1060.0)

    assert len(back) == 0
