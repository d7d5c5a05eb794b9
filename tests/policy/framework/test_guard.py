"""The guard: a step that hurts under the same load is taken back for a time, nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

import hypothesis
from hypothesis import strategies as st

from koordlet.policy.framework import guard
from koordlet.policy.framework.guard import Params, Sample, State

LAW = Params()
Used = tuple[float, float, float]
STEADY: Used = (0.6, 1.2, 0.1)
FILE = {"/c/web/cpu.max": "50000 100000"}


def ran(
    pain: Callable[[int, State], float | None],
    acts: Mapping[int, list[str]],
    seconds: int,
    used: Callable[[int], Used] = lambda _: STEADY,
    world: Callable[[int], Hashable] = lambda _: "web on 0-1",
) -> list[State]:
    """The guard's memory after each second."""
    state, states = State(), []
    for second in range(seconds):
        felt = Sample(
            at=float(second),
            wall=1_790_000_000.0 + second,
            latency_excess=pain(second, state),
            used=used(second),
            world=world(second),
        )
        state = guard.step(state, felt, dict.fromkeys(acts.get(second, []), FILE), LAW)
        states.append(state)
    return states


def harmful(second: int, state: State) -> float:
    """Pain while the step of ``bad`` stands, from 20 on."""
    return 8.0 if second > 20 and "bad" not in state.rolled_back else 0.3


def _from(second: int) -> Callable[[int], Hashable]:
    """Another world from then on."""
    return lambda at: at >= second


def test_what_hurts_is_taken_back_with_its_evidence() -> None:
    """A window after its step; the condition has both pains, the load, and the time it ends."""
    states = ran(harmful, {20: ["bad"]}, 60)

    assert not states[30].rolled_back
    assert states[31].rolled_back["bad"].was == FILE
    (condition,) = guard.conditions(states[-1])
    assert (condition.type, condition.subject) == ("PolicyRolledBack", "bad")
    for part in ("8.0 times the tolerance", "0.3 times before", "work 0.60 cores", "UTC"):
        assert part.replace("UTC", "2026-09-21T14:23:51Z") in condition.message


def test_it_ends_by_itself_and_may_be_tried_anew() -> None:
    """After the term the policy acts again; where that hurts again, the next term begins."""
    states = ran(harmful, {20: ["bad"], 631: ["bad"]}, 680)

    assert states[630].rolled_back
    assert not states[631].rolled_back
    assert guard.conditions(states[631]) == ()
    assert states[642].rolled_back["bad"].until == 642 + LAW.term


def test_more_load_is_no_verdict() -> None:
    """A service that is asked for more waits more, whoever acted just before."""
    for begins in range(9, 32):

        def rush(second: int, begins: int = begins) -> Used:
            return (1.6, 0.4, 0.1) if second > begins else STEADY

        def pain(second: int, _: State, begins: int = begins) -> float:
            return 8.0 if second > begins else 0.3

        assert not any(s.rolled_back for s in ran(pain, {20: ["poor"]}, 90, rush)), begins


def test_more_of_others_is_no_verdict() -> None:
    """Best-effort work or the system began to run beside it."""
    for index in (1, 2):

        def beside(second: int, index: int = index) -> Used:
            there = list(STEADY)
            there[index] += 0.5 * (second > 20)
            return there[0], there[1], there[2]

        assert not any(s.rolled_back for s in ran(harmful, {20: ["bad"]}, 60, beside))


def test_other_workloads_or_cpus_are_another_world() -> None:
    """CPUs that come online, a pod that begins: there is no before, and a term that runs ends."""
    for changes in (17, 25):
        states = ran(harmful, {20: ["bad"]}, 40, world=_from(changes))
        assert not any(state.rolled_back for state in states)
    states = ran(harmful, {20: ["bad"]}, 60, world=_from(50))

    assert states[49].rolled_back
    assert not states[50].rolled_back


def test_of_several_the_last_is_judged_and_nobody_else() -> None:
    """What the others did has no control any more."""
    states = ran(lambda at, _: 8.0 if at > 20 else 0.3, {19: ["a"], 20: ["b"]}, 60)

    assert all(len(state.rolled_back) <= 1 for state in states)
    assert states[30].rolled_back.keys() == {"a"}
    assert not states[30].trials


def test_files_of_later_steps_go_back_to_before_the_first() -> None:
    """Until the verdict a policy goes on: each file has the text of before the trial."""
    acts: Mapping[int, Mapping[str, Mapping[str, str | None]]] = {
        20: {"x": {"a": "1"}},
        22: {"x": {"a": "2", "b": "7", "r": None}},
    }
    state = State(world=1)
    for second in range(40):
        acted = acts.get(second, {})
        pain = 8.0 if second > 20 else 0.3
        state = guard.step(
            state, Sample(at=float(second), latency_excess=pain, used=STEADY, world=1), acted, LAW
        )

    assert state.rolled_back["x"].was == {"a": "1", "b": "7", "r": None}


def test_a_short_pain_is_no_regression() -> None:
    """It must last through both halves of the window."""
    states = ran(lambda at, _: 30.0 if 21 < at < 26 else 0.3, {20: ["x"]}, 60)

    assert not any(state.rolled_back for state in states)


def test_small_pain_is_no_verdict() -> None:
    """Ten times of next to nothing is next to nothing."""
    states = ran(lambda at, _: 1.0 if at > 20 else 0.05, {20: ["x"]}, 60)

    assert not any(state.rolled_back for state in states)


def test_without_a_before_there_is_no_trial() -> None:
    """Nobody knows what it was like."""
    states = ran(lambda *_: 8.0, {1: ["x"]}, 60)

    assert not any(state.trials for state in states)


@hypothesis.given(
    pains=st.lists(st.none() | st.floats(0, 50), min_size=1, max_size=120),
    loads=st.lists(st.sampled_from([STEADY, (1.0, 1.0, 0.1), (1.9, 0.0, 0.1)]), min_size=1),
    acts=st.dictionaries(st.integers(0, 120), st.lists(st.sampled_from("abc"), max_size=3)),
)
def test_whatever_comes_it_is_bounded_and_ends(
    pains: list[float | None], loads: list[Used], acts: dict[int, list[str]]
) -> None:
    """Memory is bounded, no term is longer than the law says, and only who acted is taken back."""
    seconds = len(pains)
    states = ran(
        lambda second, _: pains[second],
        acts,
        seconds,
        lambda second: loads[second * len(loads) // max(1, seconds)],
    )
    acted = {stem for several in acts.values() for stem in several}
    for second, state in enumerate(states):
        assert len(state.samples) <= 3 * LAW.window + 1
        assert state.rolled_back.keys() <= acted
        assert all(rollback.until <= second + LAW.term for rollback in state.rolled_back.values())
