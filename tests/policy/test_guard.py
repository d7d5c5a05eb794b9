"""The guard: what hurts is rolled back, what does not is acquitted."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
from hypothesis import strategies as st

from koordlet.model import plan
from koordlet.policy import guard
from koordlet.policy.guard import Law, State

LAW = Law()


def ran(
    pain: Callable[[int, State], float | None], acts: dict[int, list[str]], seconds: int
) -> list[State]:
    """The guard's memory after each second."""
    state, found = State(), []
    for second in range(seconds):
        state = guard.step(state, float(second), pain(second, state), acts.get(second, []), LAW)
        found.append(state)
    return found


def harmful(second: int, state: State) -> float:
    """Pain while ``bad`` enforces, from its act at 20 on."""
    return 8.0 if second > 20 and "bad" not in state.latched else 0.3


def test_what_hurts_is_latched_and_stays_so() -> None:
    """Within a window after its act; it is proved by the relief, and the evidence is shown."""
    states = ran(harmful, {20: ["bad"]}, 900)

    assert not states[30].latched
    assert {"bad"} == states[32].latched
    assert {"bad"} == states[-1].latched
    assert states[-1].trials["bad"].proved
    (condition,) = guard.conditions(states[-1])
    assert ("PolicyRolledBack", "bad") == (condition.type, condition.subject)
    assert "8.0 times what is tolerated" in condition.message
    assert "0.3 times before" in condition.message


def test_a_policy_that_was_not_the_cause_is_acquitted() -> None:
    """A load that rises by itself: back in force after a window, and left in peace then."""
    states = ran(lambda second, _: 8.0 if second > 20 else 0.3, {20: ["poor"], 60: ["poor"]}, 100)

    assert {"poor"} == states[32].latched
    assert not states[44].latched
    assert not any(state.latched for state in states[44:])


def test_the_last_to_act_is_judged_first_and_alone() -> None:
    """Of two that acted, one is latched at a time, and only the guilty one stays so."""
    for guilty, other in (("a", "b"), ("b", "a")):

        def pain(second: int, state: State, guilty: str = guilty) -> float:
            return 8.0 if second > 20 and guilty not in state.latched else 0.3

        states = ran(pain, {19: [guilty], 20: [other]}, 200)
        assert all(len(state.latched) <= 1 for state in states)
        assert {guilty} == states[-1].latched


def test_small_pain_is_no_verdict() -> None:
    """Ten times of next to nothing is next to nothing."""
    states = ran(lambda second, _: 1.0 if second > 20 else 0.05, {20: ["x"]}, 60)

    assert not any(state.latched for state in states)


def test_without_a_before_there_is_no_trial() -> None:
    """Nobody knows what it was like."""
    states = ran(lambda *_: 8.0, {1: ["x"]}, 60)

    assert not any(state.trials for state in states)


@hypothesis.given(
    pains=st.lists(st.none() | st.floats(0, 50), min_size=1, max_size=120),
    acts=st.dictionaries(st.integers(0, 120), st.lists(st.sampled_from("abc"), max_size=3)),
)
def test_never_two_unproved_at_once_and_never_without_worse(
    pains: list[float | None], acts: dict[int, list[str]]
) -> None:
    """Whatever comes, memory is bounded and each verdict has evidence."""
    for state in ran(lambda second, _: pains[second], acts, len(pains)):
        unproved = [
            one for one in state.trials.values() if one.latched is not None and not one.proved
        ]
        assert len(unproved) <= 1
        assert all(one.after > max(LAW.least, LAW.worse * one.before) for one in unproved)
        assert len(state.samples) <= 3 * LAW.window + 1


def test_only_what_enforces_is_held() -> None:
    """A policy that is off stays off; one that only shows stays so."""
    configured = {"bad": plan.Mode.ENFORCE, "off": plan.Mode.OFF, "good": plan.Mode.ENFORCE}
    trial = guard.Trial(since=0, before=0, acted=0, latched=1.0)
    state = State(trials={"bad": trial, "off": trial})

    assert {
        "bad": plan.Mode.SHADOW,
        "off": plan.Mode.OFF,
        "good": plan.Mode.ENFORCE,
    } == guard.modes(configured, state)
