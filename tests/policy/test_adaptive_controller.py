"""The control loop: bounded, monotone, and at rest under loads that are."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.policy import adaptive_controller as controller
from koordlet.policy.adaptive_controller import Feeling, Law, State
from tests.kit import search

LAW = Law()
#: Ten steps a second.
TICK = 0.1

times = st.floats(0, 1e4)


@st.composite
def states(draw: st.DrawFn, machine: float = 8.0) -> State:
    """Any memory that the loop may have at time 1000."""
    ago = st.floats(0, 700)
    allowed = draw(st.floats(LAW.floor, machine))
    peak = draw(st.floats(0, 2 * machine))
    crowded = draw(st.booleans())
    return State(
        at=1000.0 - draw(st.floats(0.01, 30)),
        limit=allowed * draw(st.floats(0.1, 1)),
        allowed=allowed,
        peak=peak,
        crest=peak * draw(st.floats(0, 1)),
        crowded=crowded,
        pressed=crowded and draw(st.booleans()),
        crowd_over=1000.0 - draw(ago),
        ceiling=draw(st.none() | st.floats(LAW.floor, machine)),
        learned_peak=draw(st.floats(0, machine)),
        cut_at=1000.0 - draw(ago),
        trial_at=draw(st.just(-1.0) | ago.map(lambda one: 1000.0 - one)),
        trial_pain=draw(st.floats(0, 50)),
        deaf_until=1000.0 + draw(st.floats(-100, 100)),
        deaf_for=draw(st.floats(0, 600)),
    )


def feeling(ls: float, pain: float, mean: float | None = None, *, machine: float = 8.0) -> Feeling:
    """What is felt at time 1000."""
    mean = pain if mean is None else mean
    return Feeling(at=1000.0, machine=machine, most=machine, ls=ls, pain=pain, mean=mean)


@hypothesis.given(
    state=states(), ls=st.floats(0, 20), pain=st.floats(0, 1e6), mean=st.floats(0, 1e6)
)
def test_bounded(state: State, ls: float, pain: float, mean: float) -> None:
    """Between the floor and the pool, whatever is felt and remembered; and always explained."""
    after, reason = controller.step(feeling(ls, pain, mean), state, LAW)

    assert LAW.floor <= after.limit <= 8.0
    assert after.at == 1000.0
    assert reason


@hypothesis.given(
    state=states(),
    ls=st.tuples(st.floats(0, 12), st.floats(0, 12)),
    pain=st.tuples(st.floats(0, 5), st.floats(0, 5)),
)
def test_monotone(state: State, ls: tuple[float, float], pain: tuple[float, float]) -> None:
    """More use and more pain never give a higher limit, while nobody judges the cuts."""
    hypothesis.assume(state.trial_at < 0 or 1000.0 - state.trial_at < LAW.prove)
    less = controller.step(feeling(min(ls), min(pain)), state, LAW)[0].limit
    more = controller.step(feeling(max(ls), max(pain)), state, LAW)[0].limit

    assert more <= less


def ran(
    load: Callable[[float], float],
    knee: Callable[[float], float],
    seconds: float,
    *,
    machine: float = 8.0,
    slope: float = 2.0,
    law: Law = LAW,
    lag: int = 1,
) -> list[float]:
    """The limits under a load, of which it hurts where best-effort work has more than ``knee``."""
    state, limits = State(), [machine] * (lag + 1)
    for number in range(int(seconds / TICK)):
        ls = load(number * TICK)
        pain = max(0.0, 1 + slope * (limits[-lag] - knee(ls)))
        felt = Feeling(at=number * TICK, machine=machine, most=machine, ls=ls, pain=pain, mean=pain)
        state, _ = controller.step(felt, state, law)
        limits.append(state.limit)
    return limits


def reversals(limits: list[float]) -> int:
    """How often the limit turned."""
    moves = [b - a for a, b in itertools.pairwise(limits) if abs(b - a) > 1e-9]
    return sum((a > 0) != (b > 0) for a, b in itertools.pairwise(moves))


@search.examples(40)
@hypothesis.given(
    before=st.floats(0, 8),
    after=st.floats(0, 8),
    share=st.floats(0.05, 1.0),
    slope=st.floats(0.2, 20),
    lag=st.integers(1, 3),
)
def test_no_limit_cycle_after_a_step(
    before: float, after: float, share: float, slope: float, lag: int
) -> None:
    """Wherever it hurts and however steeply, a minute of settling is enough, and then it rests."""
    law = dataclasses.replace(LAW, deaf=60.0)
    limits = ran(
        lambda at: before if at < 20 else after,
        lambda ls: max(LAW.floor, share * (8 - ls)),
        320,
        slope=slope,
        law=law,
        lag=lag,
    )

    assert 0 == reversals(limits[-1000:])


@search.examples(25)
@hypothesis.given(
    period=st.floats(1, 60),
    low=st.floats(0, 4),
    high=st.floats(4, 8),
    share=st.floats(0.2, 1.0),
)
def test_no_limit_cycle_of_its_own_on_a_sawtooth(
    period: float, low: float, high: float, share: float
) -> None:
    """It turns with the load, and once more for each tenth of its room that the load takes."""
    seconds = 300

    def room(ls: float) -> float:
        return max(LAW.floor, share * (8 - ls))

    limits = ran(lambda at: low + (high - low) * (at % period) / period, room, seconds)
    late = limits[len(limits) // 2 :]

    teeth = seconds / 2 / period + 1
    tenths = math.log(room(low) / room(high)) / -math.log(0.9) + 1
    # And a turn at either end, where a tooth is cut.
    assert reversals(late) <= 2 * teeth * tenths + 2


def test_a_spike_takes_everything_at_once_and_gives_it_back_when_it_is_over() -> None:
    """To a fraction at the first look; what it was allowed before within half a second."""
    limits = ran(lambda at: 7.5 if 10 <= at < 15 else 1.0, lambda ls: 9.5 - ls, 30)

    assert 8.0 == limits[95]
    assert max(limits[102:152]) <= 0.1 * 8
    assert 8.0 == min(limits[158:])


@pytest.mark.parametrize(("every", "long"), [(2.5, 0.5), (1.0, 0.2), (10.0, 3.0), (30.0, 10.0)])
def test_spikes_cost_little_more_than_they_last(every: float, long: float) -> None:
    """However often they come, between them best-effort work has the machine: a spike is no lesson.

    Half a second for each is what seeing it and its end may take.
    """
    limits = ran(lambda at: 7.2 if at % every < long else 2.4, lambda ls: 10.5 - ls, 60)
    had = sum(limits) / (8.0 * len(limits))

    assert had >= 1 - (long + 0.5) / every - 0.02


def test_pain_of_a_crowd_is_the_crowds_own() -> None:
    """It takes the floor for as long as the crowd is there, and teaches nothing about after it."""
    state, limits, reasons = State(), [], set()
    for number in range(200):
        crowd = 100 <= number < 110
        felt = dataclasses.replace(
            feeling(7.2 if crowd else 2.4, 30.0 if 100 <= number < 119 else 0.0), at=number * TICK
        )
        state, reason = controller.step(felt, state, LAW)
        reasons.add(reason)
        limits.append(state.limit)

    assert {LAW.floor} == set(limits[100:113])
    assert "latency-sensitive work has left room again" in reasons
    assert 8.0 == min(limits[116:])


def test_pain_that_outlives_the_crowd_is_heard() -> None:
    """Once the echo has died away."""
    state = State()
    for number in range(200):
        felt = dataclasses.replace(
            feeling(7.2 if 100 <= number < 110 else 2.4, 3.0 if number >= 100 else 0.0),
            at=number * TICK,
        )
        state, _ = controller.step(felt, state, LAW)

    assert state.limit < 0.5 * 8


def test_what_waits_for_itself_does_not_starve_others() -> None:
    """Pain that no cut changes is not ours: the limit comes back, and stays for ever longer."""
    state, limits = State(), []
    for number in range(6000):
        felt = dataclasses.replace(feeling(1.0, 3.0), at=number * TICK)
        state, _ = controller.step(felt, state, LAW)
        limits.append(state.limit)

    assert min(limits) < 1.0
    assert sum(one > 7.9 for one in limits) > 0.7 * len(limits)
    assert reversals(limits) <= 12


@pytest.mark.parametrize(
    ("ls", "machine", "least", "most"),
    [(0.4, 2, 0.01, 0.03), (0.9, 2, 0.15, 0.25), (2.0, 2, 1e9, float("inf")), (4.0, 64, 0, 1e-9)],
)
def test_waiting_behind_itself(ls: float, machine: float, least: float, most: float) -> None:
    """Little with many CPUs, endless on a full machine."""
    assert least <= controller.own_waiting(ls, machine) <= most


def test_a_limit_of_before_a_restart_goes_on() -> None:
    """It does not begin with everything."""
    after, _ = controller.step(feeling(1.0, 0.0), State(limit=2.0), LAW)

    assert 2.0 == after.limit
