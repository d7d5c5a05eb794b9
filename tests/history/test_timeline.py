"""Series by name in fixed memory: none is mixed up with another, and the oldest gives way."""

from __future__ import annotations

import math

import pytest

from koordlet.history import timeline


def filled(capacity: int = 2, length: int = 4) -> timeline.Timeline:
    """Three seconds of two series, of which one comes later."""
    made = timeline.Timeline(1.0, length, capacity)
    made.take(1.0, {"a": 1.0})
    made.take(2.0, {"a": 2.0, "b": 20.0})
    made.take(3.0, {"b": 30.0})
    return made


def columns(made: timeline.Timeline, *names: str, after: float = 0.0) -> dict[str, list[float]]:
    """What is known of some series."""
    samples = made.samples(names, after)
    return {name: list(column) for name, column in samples.columns.items()}


def test_a_series_is_missing_where_no_row_names_it() -> None:
    """Before it came and after it went there is no sample, instead of an old one."""
    made = filled()

    assert made.newest == 3.0
    assert made.samples(("a",)).at == [1.0, 2.0, 3.0]
    assert columns(made, "a", "b", "c") == {
        "a": [1.0, 2.0, pytest.approx(math.nan, nan_ok=True)],
        "b": [pytest.approx(math.nan, nan_ok=True), 20.0, 30.0],
    }
    assert columns(made, "b", after=2.0) == {"b": [30.0]}
    assert made.names(2.0) == ("b",)


def test_a_new_series_takes_the_column_of_the_one_that_went_first() -> None:
    """Nothing of its past is shown under the new name; whoever is sampled now keeps its column."""
    made = filled()
    made.take(4.0, {"b": 40.0, "c": 400.0})

    missing = [pytest.approx(math.nan, nan_ok=True)] * 3
    assert columns(made, "a", "c") == {"c": [*missing, 400.0]}
    made.take(5.0, {"b": 50.0, "c": 500.0, "d": 5.0})
    assert (made.dropped, made.names(4.0)) == (1, ("b", "c"))


def test_the_oldest_row_goes_first() -> None:
    """There are never more rows than its length."""
    made = filled(length=2)

    assert made.samples(("b",)).at == [2.0, 3.0]


def test_means_are_of_what_was_there_most_of_the_time() -> None:
    """A series that was missing in most rows has no mean; nobody has one without rows."""
    made = filled()

    assert made.means(0.0) == {"a": 1.5, "b": 25.0}
    assert made.means(2.0) == {"b": 30.0}
    assert made.means(3.0) == {}
