"""The gates of the benchmarks: how often one may try, which value is a quantile."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator

import pytest

from tests.bench import __main__, gate


def ratio(value: float) -> gate.Ratio:
    """So many times a limit of 1."""
    return gate.Ratio(name="x", ours=value, reference=1.0, limit=1.0, unit="s", against="y")


@pytest.mark.parametrize(
    ("values", "held", "tries"),
    [
        pytest.param([0.9], True, 1, id="within"),
        pytest.param([1.1, 0.9], True, 2, id="the second"),
        pytest.param([1.1, 1.2, 0.9], False, 2, id="no third in succession"),
    ],
)
def test_tries_in_succession(values: list[float], held: bool, tries: int) -> None:
    """A gate is asked until it holds, at most as often as was said."""
    reports: list[str] = []

    assert gate.hold(lambda: ratio(values[len(reports)]), reports.append) is held
    assert len(reports) == tries


def test_of_several_ratios_all_must_hold() -> None:
    """One run measures them; each is reported, and one over its limit has the run tried again."""
    reports: list[str] = []
    runs = iter([(0.9, 1.1), (1.1, 0.9), (0.8, 0.9)])

    assert gate.hold(lambda: map(ratio, next(runs)), reports.append, tries=3)
    assert len(reports) == 6
    assert not gate.hold(lambda: iter(()), reports.append, tries=1)


def test_each_gate_has_what_measures_it() -> None:
    """The table names modules, so that no gate's process imports what others need."""
    for measure in __main__.GATES.values():
        assert callable(pkgutil.resolve_name(f"tests.bench.{measure}"))


def test_a_goal_is_told_and_the_limit_decides() -> None:
    """What is between the two passes, and nobody takes it for held."""
    between = gate.Ratio(
        name="x", ours=1.5, reference=1.0, limit=2.0, goal=1.0, unit="s", against="y"
    )

    assert between.ok
    assert str(between) == "ok   x: 1.50 x y (limit 2, goal 1); 1.5 / 1 s"


def test_the_last_try_comes_after_all_others() -> None:
    """Who failed is asked once more at the end, and only who fails again has failed."""
    asked: list[tuple[str, int]] = []

    def held(name: str, tries: int) -> bool:
        asked.append((name, tries))
        return name == "good" or (name == "late" and tries == 1)

    assert gate.verdict(["late", "bad", "good"], held) == ["bad"]
    assert asked == [("late", 2), ("bad", 2), ("good", 2), ("late", 1), ("bad", 1)]


def test_a_slow_slice_of_one_repeat_is_not_part_of_the_sum() -> None:
    """Of each slice the fastest repeat counts, and the two sides' slices alternate."""
    order: list[str] = []

    def side(name: str, *repeats: list[float]) -> Callable[[], Iterator[float]]:
        left = iter(repeats)

        def slices() -> Iterator[float]:
            for seconds in next(left):
                order.append(name)
                yield seconds

        return slices

    sums = gate.sliced(side("a", [1, 9], [7, 2]), side("b", [4, 4], [3, 8]), repeats=2)

    assert list(sums) == [3, 7]
    assert order == ["a", "b"] * 4


@pytest.mark.parametrize(
    ("count", "share", "value"),
    [(100, 0.99, 99), (100, 1.0, 100), (100, 0.5, 50), (1, 0.99, 1), (3, 0.99, 3)],
)
def test_a_quantile_was_measured(count: int, share: float, value: float) -> None:
    """Nearest rank: no value between two, and none beyond the longest."""
    assert gate.quantile(range(count, 0, -1), share) == value
