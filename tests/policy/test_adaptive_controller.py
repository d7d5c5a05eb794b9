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
        kept_for=draw(st.floats(0, 600)),
        cut_at=1000.0 - draw(ago),
        trial_at=draw(st.just(-1.0) | ago.map(lambda one: 1000.0 - one)),
        ached=draw(st.booleans()),
        trial_waited=draw(st.floats(0, 50)),
        trial_allowed=draw(st.floats(LAW.floor, machine)),
        trial_ceiling=draw(st.none() | st.floats(LAW.floor, machine)),
        trial_pain=draw(st.floats(0, 50)),
        trial_sum=draw(st.floats(0, 500)),
        excused=draw(st.floats(0, 100)),
        deaf_until=1000.0 + draw(st.floats(-100, 100)),
        deaf_for=draw(st.floats(0, 600)),
    )


def feeling(ls: float, pain: float, mean: float | None = None, *, machine: float = 8.0) -> Feeling:
    """What is felt at time 1000."""
    mean = pain if mean is None else mean
    return Feeling(
        at=1000.0, machine=machine, most=machine, ls=ls, pain=pain, mean=mean, waited=mean
    )


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
        felt = Feeling(
            at=number * TICK,
            machine=machine,
            most=machine,
            ls=ls,
            pain=pain,
            mean=pain,
            waited=pain,
        )
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
    """Wherever it hurts and however steeply, it settles, and rests until what is known gets old."""
    law = dataclasses.replace(LAW, deaf=600.0, forget=600.0)
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

    assert {LAW.floor} == set(limits[100:110])
    assert "latency-sensitive work has left room again" in reasons
    assert 8.0 == min(limits[110:])


def test_pain_that_outlives_the_crowd_is_heard() -> None:
    """Once the echo has died away."""
    state, limits = State(), []
    for number in range(200):
        felt = dataclasses.replace(
            feeling(7.2 if 100 <= number < 110 else 2.4, 3.0 if number >= 100 else 0.0),
            at=number * TICK,
        )
        state, _ = controller.step(felt, state, LAW)
        limits.append(state.limit)

    assert 8.0 == min(limits[110:120])
    assert min(limits[120:]) < 0.5 * 8


def stepped(*pains: Feeling, state: State | None = None) -> list[State]:
    """The loop after each step, one a second."""
    made, states = state or State(), []
    for number, one in enumerate(pains):
        made, _ = controller.step(dataclasses.replace(one, at=float(number)), made, LAW)
        states.append(made)
    return states


def test_a_moment_s_pain_is_noise() -> None:
    """A few requests that come together wait for each other; nothing is learned from them."""
    moments = [feeling(1.0, pain, 0.6) for pain in (0.0, 5.9, 0.0, 5.9, 0.0)]
    steps = [feeling(1.0, 0.0, mean) for mean in (0.0, 1.5, 0.0, 1.5, 0.0)]

    assert {8.0} == {one.limit for one in stepped(*moments, *steps)}


def test_what_lasts_two_steps_is_not() -> None:
    """Nor what is so large that it is none, nor what is sure by itself."""
    quiet, steady, loud = feeling(1.0, 0.0), feeling(1.0, 0.0, 1.5), feeling(1.0, 7.0, 0.0)
    sure = dataclasses.replace(quiet, sure=1.1)
    found = [
        [one.limit for one in stepped(quiet, *pains)] for pains in ([steady] * 2, [loud], [sure])
    ]

    assert [[8.0, 8.0, 4.8], [8.0, 4.8], [8.0, 4.8]] == found


def test_what_waits_for_itself_does_not_starve_others() -> None:
    """Waiting that no cut changes is not ours: the limit comes back, and stays for ever longer."""
    state, limits = State(), []
    for number in range(6000):
        felt = dataclasses.replace(feeling(1.0, 3.0), at=number * TICK)
        state, _ = controller.step(felt, state, LAW)
        limits.append(state.limit)

    assert min(limits) < 0.5 * 8
    assert sum(8.0 == one for one in limits) > 0.95 * len(limits)
    assert reversals(limits) <= 12


def test_less_blame_is_no_proof() -> None:
    """Best-effort work's part of the blame falls with its limit, whoever the others wait for."""
    hurt = dataclasses.replace(feeling(1.0, 2.0), waited=4.0)
    better = dataclasses.replace(feeling(1.0, 0.8), waited=3.8)

    assert [4.8, 8.0] == [one.limit for one in stepped(hurt, hurt, better, better, better)][1::3]


def test_what_is_known_of_a_steady_load_lasts_ever_longer() -> None:
    """One cut at first, then one whenever the ceiling is forgotten: after one minute, two, four."""
    limits = ran(lambda at: 2.0, lambda ls: 5.5, 900, slope=40.0)
    cuts = [number * TICK for number, (a, b) in enumerate(itertools.pairwise(limits)) if b < a]
    gaps = [b - a for a, b in itertools.pairwise(cuts)]

    assert [60, 120, 240] == [round(one / 60) * 60 for one in gaps if one > 30][:3]


def test_more_than_what_was_excused_is_heard() -> None:
    """Waiting of its own excuses twice as much, not everything that may come."""
    tried = stepped(*[feeling(1.0, 3.0)] * 6)[-1]
    more = dataclasses.replace(tried, at=9.0)
    found = [
        controller.step(dataclasses.replace(feeling(1.0, pain), at=10.0), more, LAW)[0].limit
        for pain in (6.0, 6.1)
    ]

    assert [8.0, 4.8] == found


def test_a_crowd_proves_nothing() -> None:
    """What it waits is not compared with what was waited before."""
    hurt, full = feeling(1.0, 3.0), feeling(7.5, 50.0)
    after = stepped(hurt, hurt, full, full, full, full)[-1]

    assert (-1.0, 0.0) == (after.trial_at, after.deaf_for)


@pytest.mark.parametrize(
    ("ls", "machine", "least", "most"),
    [(0.4, 2, 0.08, 0.10), (0.9, 2, 0.4, 0.45), (2.0, 2, 1e9, float("inf")), (4.0, 64, 0, 1e-9)],
)
def test_waiting_behind_itself(ls: float, machine: float, least: float, most: float) -> None:
    """Half as much again as M/M/c queues wait; little with many CPUs, endless on a full machine."""
    assert least <= controller.own_waiting(ls, machine) <= most


def test_a_limit_of_before_a_restart_goes_on() -> None:
    """It does not begin with everything."""
    after, _ = controller.step(feeling(1.0, 0.0), State(limit=2.0), LAW)

    assert 2.0 == after.limit
