"""Grace periods, minimum reclaim and conditions from pass to pass, as the kubelet keeps them."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import thresholds
from koordlet.model.thresholds import Texts
from koordlet.policy.eviction import pressure_state
from koordlet.policy.eviction.pressure_signals import Observation
from koordlet.policy.eviction.pressure_state import Book

_TRANSITION = 300.0


def passes(
    texts: Texts, *seen: tuple[float, int], signal: str = "memory.available", capacity: int = 1000
) -> list[pressure_state.Page]:
    """One pass at each time with so much available."""
    configured = thresholds.parse(texts)
    book, pages = Book(), []
    for at, available in seen:
        observed = {signal: Observation(available, capacity, at)}
        pages.append(pressure_state.turn(configured, observed, book, at, _TRANSITION))
        book = pages[-1].book
    return pages


def hard(value: str, **more: Any) -> Texts:
    """One hard threshold of memory."""
    return Texts(hard={"memory.available": value}, enforce_pods=False, **more)


@pytest.mark.parametrize(("available", "met"), [(99, True), (100, False), (101, False)])
def test_equal_is_not_met(available: int, *, met: bool) -> None:
    """A threshold is met when less than it is available."""
    (page,) = passes(hard("100"), (0.0, available))

    assert bool(page.met) is met
    assert bool(page.due) is met
    assert page.conditions == (("MemoryPressure",) if met else ())


def test_without_an_observation_nothing_is_met() -> None:
    """What cannot be seen is no reason for anything."""
    page = pressure_state.turn(thresholds.parse(hard("100")), {}, Book(), 0.0, _TRANSITION)

    assert not page.met
    assert not page.conditions


def test_grace_counts_from_the_first_pass_of_an_unbroken_row() -> None:
    """A soft threshold acts once it was met for its grace period; a break starts it again."""
    texts = Texts(hard={}, soft={"memory.available": "100"}, soft_grace={"memory.available": "20s"})
    pages = passes(
        texts, (0, 50), (10, 50), (20, 50), (30, 150), (40, 50), (50, 50), (59, 50), (60, 50)
    )

    assert [bool(page.due) for page in pages] == [
        False,
        False,
        True,
        False,
        False,
        False,
        False,
        True,
    ]
    assert [bool(page.met) for page in pages][3] is False
    assert all(page.conditions == ("MemoryPressure",) for page in pages)


def test_minimum_reclaim_keeps_what_was_acted_on_met() -> None:
    """It stays met until the reclaim is available on top; what was not acted on does not."""
    reclaim = {"memory.available": "50"}
    pages = passes(hard("100", reclaim=reclaim), (0, 90), (10, 149), (20, 150), (30, 149))

    assert [bool(page.due) for page in pages] == [True, True, False, False]
    parts = passes(hard("10%", reclaim={"memory.available": "5%"}), (0, 99), (1, 149), (2, 151))
    assert [bool(page.met) for page in parts] == [True, True, False]


def test_one_reading_evicts_once() -> None:
    """A threshold is due only where its observation is newer than that of the last pass."""
    configured = thresholds.parse(hard("100"))
    observed = {"memory.available": Observation(50, 1000, 7.0)}
    first = pressure_state.turn(configured, observed, Book(), 10.0, _TRANSITION)
    again = pressure_state.turn(configured, observed, first.book, 20.0, _TRANSITION)
    nameless = {"memory.available": Observation(50, 1000)}
    last = pressure_state.turn(configured, nameless, again.book, 30.0, _TRANSITION)

    assert (bool(first.due), bool(again.due), bool(last.due)) == (True, False, True)
    assert again.met


def test_conditions_do_not_oscillate() -> None:
    """A condition holds for the transition period after its threshold was met last."""
    pages = passes(hard("100"), (0, 50), (10, 150), (299.9, 150), (300, 150))

    assert [bool(page.conditions) for page in pages] == [True, True, True, False]


def test_memory_comes_first() -> None:
    """Whatever else is short, memory is dealt with before."""
    configured = thresholds.parse(
        Texts(hard={"pid.available": "10", "nodefs.available": "10", "memory.available": "10"})
    )
    observed = {threshold.signal: Observation(5, 100, 1.0) for threshold in configured}
    page = pressure_state.turn(configured, observed, Book(), 1.0, _TRANSITION)

    assert [threshold.signal for threshold in page.due] == [
        "memory.available",
        "allocatableMemory.available",
        "pid.available",
        "nodefs.available",
    ]


def test_what_is_short_now_comes_before_what_minimum_reclaim_keeps() -> None:
    """The soft threshold is short; the hard one only waits for its reclaim."""
    texts = Texts(
        hard={"memory.available": "100"},
        soft={"memory.available": "300"},
        soft_grace={"memory.available": "1s"},
        reclaim={"memory.available": "500"},
        enforce_pods=False,
    )
    _, page = passes(texts, (0, 50), (10, 200))

    assert [threshold.hard for threshold in page.due] == [False, True]


def test_a_clock_that_was_set_back_holds_nothing_for_longer() -> None:
    """Times of the future count as now."""
    configured = thresholds.parse(hard("100"))
    before = Book(first={"memory.available<100/0": 9000.0}, seen={"MemoryPressure": 9000.0})
    observed = {"memory.available": Observation(500, 1000, 1.0)}
    page = pressure_state.turn(configured, observed, before, 10.0, _TRANSITION)

    assert page.book.seen == {"MemoryPressure": 10.0}
    assert pressure_state.turn(configured, observed, page.book, 310.0, _TRANSITION).conditions == ()
