"""The demo's comparison: phases in turn, and what is said of both arms."""

from __future__ import annotations

import math

import pytest

from koordlet.demo import comparison

START = 1000.0
BUSY = comparison.Use(best_effort=1.0, sensitive=0.5, machine=1.6)


def played(
    rounds: int, *, off: float = 0.1, on: float = 0.01, gaps: bool = True, use: float = 1.0
) -> comparison.Comparison:
    """So many rounds, with ten requests a second that take so long in each arm."""
    made = comparison.Comparison(START)
    end = round(2 * rounds * comparison.PHASE) + 1
    for second in range(1, end + 1):
        at = START + second
        phase = made.phase(at - 1)
        took = on if phase is not None and phase.on else off
        asked = [(at - 1 + n / 10, at - 1 + n / 10 + took) for n in range(10)]
        best_effort = use if phase is not None and phase.on else 1.0
        seen = comparison.Use(best_effort=best_effort, sensitive=0.5, machine=1.6 + use - 1)
        made.record(at, asked, [] if gaps else None, seen)
        made.ended(at)
    return made


def test_phases_are_off_and_on_in_turn() -> None:
    """The first is without koordlet; after the last one there is none."""
    made = comparison.Comparison(START, rounds=2)
    phases = [made.phase(START + n * comparison.PHASE + 0.1) for n in range(5)]

    assert [phase and phase.on for phase in phases] == [False, True, False, True, None]


def test_each_phase_ends_once_and_a_moment_later() -> None:
    """Answers to its last requests have come then."""
    made = comparison.Comparison(START, rounds=1)

    assert [len(made.ended(START + at)) for at in (5.9, 6.1, 6.6, 6.7, 12.6, 20.0)] == [
        *(0, 0, 1, 0, 1, 0)
    ]
    assert made.over


def test_ratios_of_both_arms() -> None:
    """The service answers ten times sooner, best-effort work gets a fifth less."""
    outcome = played(3, use=0.8).outcome()

    assert outcome is not None
    assert outcome.rounds == 3
    assert outcome.p99 == pytest.approx((0.1, 0.01))
    assert outcome.latency.value == pytest.approx(0.1)
    assert outcome.share.value == pytest.approx(0.8)
    assert outcome.best_effort == pytest.approx((1.0, 0.8))
    assert outcome.others[0] == pytest.approx(0.0, abs=0.11)
    assert outcome.met == 0


def test_the_beginning_of_a_phase_counts_for_nobody() -> None:
    """Neither requests that were due then nor CPU that was used."""
    made = comparison.Comparison(START)
    made.record(START + 2.0, [(START + 0.5, START + 9.0)], [], BUSY)
    made.record(START + 4.5, [(START + 3.5, START + 3.6)], [], BUSY)
    made.record(START + 5.0, [], [], BUSY)

    assert made.phases[0].requests == [(START + 3.5, START + 3.6)]
    assert made.phases[0].known == pytest.approx(3.0)


def test_a_refused_request_is_a_long_one() -> None:
    """An arm that refuses half of its requests is not better than one that answers them."""
    phase = comparison.Phase(
        number=0, start=0.0, requests=[(0.0, 0.1)] * 50 + [(0.0, math.inf)] * 50
    )
    phase.requests.append((0.0, 0.4))

    assert phase.refused == 50
    assert phase.block().clean == pytest.approx([0.1] * 50 + [0.4] * 51)


def test_requests_in_gaps_are_left_out_and_counted() -> None:
    """A gap takes the requests around it; where nobody watches, nobody says how many."""
    made = played(2)
    made.phases[0].gaps = [(START + 4.0, START + 4.95)]
    outcome, unknown = made.outcome(), played(2, gaps=False).outcome()

    assert outcome is not None
    assert outcome.met == pytest.approx(11 / 120, abs=0.01)
    assert unknown is not None
    assert unknown.met is None


def test_one_round_is_no_comparison() -> None:
    """It has no interval."""
    assert played(1).outcome() is None
    assert comparison.Comparison(START).outcome() is None
