"""States to the JSON of their checkpoints and back, by the types of their fields."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from koordlet.model import cpuset
from koordlet.policy.framework import saved_state


class Colour(enum.Enum):
    """Two values."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Row:
    """A part of a state."""

    name: str
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Whole:
    """A state with every kind of field."""

    rows: tuple[Row, ...] = ()
    cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    zones: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    percent: int | None = field(default=None, metadata=saved_state.within(1, 100))
    way: str = field(default="", metadata=saved_state.among("", "up"))
    moment: float = field(default=0.0, metadata=saved_state.UNKEPT)


BODY = {
    "rows": [{"name": "a", "colour": "blue"}],
    "cpus": "0-3,8",
    "zones": {"1": {"x": 2.5}},
    "percent": 40,
    "way": "up",
}


def test_a_state_comes_back_from_its_checkpoint_without_what_is_of_the_moment() -> None:
    """Enums, sets of CPUs, maps with numbers for keys; ``moment`` is in no checkpoint."""
    state = Whole(
        rows=(Row("a", Colour.BLUE),),
        cpus=cpuset.CPUSet.parse("0-3,8"),
        zones={1: {"x": 2.5}},
        percent=40,
        way="up",
        moment=7.0,
    )
    body = json.loads(json.dumps(saved_state.encode(state)))

    assert body == BODY
    assert saved_state.decode(Whole, {**body, "moment": 9.0, "later": 1}) == Whole(
        rows=state.rows, cpus=state.cpus, zones=state.zones, percent=40, way="up"
    )


def test_a_field_that_the_checkpoint_lacks_has_its_default() -> None:
    """A policy that remembers more needs no new version; a whole number is a time as well."""
    assert saved_state.decode(Whole, {"zones": {"0": {"x": 3}}}) == Whole(zones={0: {"x": 3.0}})


@pytest.mark.parametrize(
    "change",
    [
        {"rows": {}},
        {"rows": [7]},
        {"rows": [{"colour": "red"}]},
        {"rows": [{"name": "a", "colour": "green"}]},
        {"cpus": "x"},
        {"cpus": 3},
        {"zones": []},
        {"zones": {"a": {}}},
        {"zones": {"1": {"x": True}}},
        {"zones": {"1": {"x": float("nan")}}},
        {"zones": {"1": {"x": 10**400}}},
        {"percent": 0},
        {"percent": 101},
        {"percent": True},
        {"percent": "40"},
        {"way": "down"},
        {"way": None},
    ],
)
def test_a_value_of_another_type_or_beyond_its_bounds_is_refused(change: dict[str, Any]) -> None:
    """With the name of its field."""
    with pytest.raises(ValueError, match=f"^{next(iter(change))}: "):
        saved_state.decode(Whole, {**BODY, **change})


def test_a_body_without_any_field_is_no_checkpoint() -> None:
    """Otherwise a damaged file would be a state that remembers nothing."""
    with pytest.raises(ValueError, match="nothing of Whole"):
        saved_state.decode(Whole, {"other": 1})
