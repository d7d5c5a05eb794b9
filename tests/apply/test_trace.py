"""The fate of each action: due, shown, so already, overruled, merged, or without an answer."""

from __future__ import annotations

import errno

import pytest

from koordlet.apply import planner, present, trace
from koordlet.model import absence, knob, ledger, plan
from koordlet.policy.framework import chain
from tests.apply.test_planner import NOW, TARGET, asks


def fates(
    *outcomes: chain.Outcome, there: str | None = "1024", answers: bool = True
) -> list[tuple[str, trace.Fate, str]]:
    """Policy, fate and detail of each action, on a machine where the file holds ``there``."""
    decisions = chain.Round(outcomes=outcomes, ledger=ledger.Ledger())
    seen = present.Present(
        texts={} if there is None else {TARGET: there},
        unknown={} if answers else {TARGET: absence.Unanswered(TARGET, errno.EIO, held=False)},
    )
    stations = trace.Trace()
    stations.compare(planner.desired(outcomes), seen)
    made = planner.draft(decisions, stations.wanted, NOW, seen, {}).plan
    return [
        (wish.action.policy, wish.fate, wish.detail)
        for wish in trace.wishes(stations, decisions, made)
    ]


def test_a_value_that_differs_is_due_and_one_that_stands_is_so_already() -> None:
    """What the planner drops is named; what it keeps has its place in the order."""
    assert fates(asks("one", "2")) == [("one", trace.Fate.DUE, "")]
    assert fates(asks("one", "2"), there="2\n") == [("one", trace.Fate.ALREADY_SO, "")]


def test_a_policy_in_shadow_is_only_shown() -> None:
    """Its step stands in the order and is not done."""
    assert fates(asks("one", "2", plan.Mode.SHADOW)) == [("one", trace.Fate.SHADOW, "")]


def test_the_later_of_two_policies_is_overruled_by_name() -> None:
    """The earlier row wins; who wants the same value is not overruled."""
    assert fates(asks("one", "2"), asks("two", "3")) == [
        ("one", trace.Fate.DUE, ""),
        ("two", trace.Fate.OVERRULED, "one comes first, and wants 2"),
    ]
    assert fates(asks("one", "2"), asks("two", "2"))[1] == (
        "two",
        trace.Fate.DUE,
        "one wants the same",
    )


def test_shadow_is_overruled_by_who_enforces() -> None:
    """Also where the policy in shadow comes first."""
    assert fates(asks("one", "2", plan.Mode.SHADOW), asks("two", "3"))[0] == (
        "one",
        trace.Fate.OVERRULED,
        "two enforces 3",
    )


def test_a_set_that_another_policy_narrows_is_merged() -> None:
    """What both have in common counts, and both are told so."""
    row = knob.CPUSET_CPUS.name
    shown = fates(
        asks("owner", "0-3", row=row), asks("narrow", "0-1", row=row, narrows=True), there="0-3"
    )

    assert shown == [
        ("owner", trace.Fate.MERGED, "0-1 counts: because"),
        ("narrow", trace.Fate.DUE, ""),
    ]


def test_the_least_limit_counts_and_the_other_is_merged() -> None:
    """Two limits of one file are no conflict."""
    row = knob.MEMORY_HIGH.name
    shown = fates(asks("one", "4096", row=row), asks("two", "8192", row=row), there="max")

    assert [fate for _, fate, _ in shown] == [trace.Fate.DUE, trace.Fate.MERGED]


@pytest.mark.parametrize("there", ["1024", None])
def test_a_target_without_an_answer_is_not_written(there: str | None) -> None:
    """The read that got none is named."""
    assert fates(asks("one", "2"), there=there, answers=False) == [
        ("one", trace.Fate.UNANSWERED, f"{TARGET} (EIO) gives no answer")
    ]


def test_steps_have_their_place_in_the_order() -> None:
    """A fate of due names its steps; any other names none."""
    decisions = chain.Round(outcomes=(asks("one", "2"), asks("two", "3")), ledger=ledger.Ledger())
    seen = present.Present(texts={TARGET: "1024"})
    stations = trace.Trace()
    stations.compare(planner.desired(decisions.outcomes), seen)
    made = planner.draft(decisions, stations.wanted, NOW, seen, {}).plan
    wishes = list(trace.wishes(stations, decisions, made))

    assert [(wish.steps, wish.was) for wish in wishes] == [((0,), "1024"), ((), "1024")]
