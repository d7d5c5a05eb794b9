"""Merging what the policies want: conflicts, shadow, the diff."""

from __future__ import annotations

import pytest

from koordlet.apply import planner, present
from koordlet.model import action, decision, ledger, plan
from koordlet.policy.framework import chain
from tests.kit import moments

NOW = moments.bare()
TARGET = "/c/g/cpu.shares"


def asks(
    stem: str,
    value: str,
    mode: plan.Mode = plan.Mode.ENFORCE,
    *,
    row: str = "",
    narrows: bool = False,
) -> chain.Outcome:
    """A policy that wants one file to hold a value, or only to narrow the set of CPUs in it."""
    write = action.WriteFile(
        target=TARGET, value=value, policy=stem, reason="because", knob=row, narrows=narrows
    )
    decided: decision.Decision[object] = decision.Decision(next_state=None, actions=(write,))
    return chain.Outcome(stem=stem, mode=mode, decision=decided)


def draft(*outcomes: chain.Outcome, there: str = "1024") -> plan.Plan:
    """The plan for a machine where the file holds ``there``."""
    decisions = chain.Round(outcomes=outcomes, ledger=ledger.Ledger())
    seen = present.Present(texts={TARGET: there})
    return planner.draft(decisions, planner.desired(outcomes), NOW, seen, {}).plan


def test_the_earlier_policy_keeps_a_contested_file() -> None:
    """One write, of the earlier row's value; the other is reported as a conflict."""
    made = draft(asks("first", "2"), asks("second", "3"))

    assert [s.action.value for s in made.steps if isinstance(s.action, action.WriteFile)] == ["2"]
    assert (
        plan.Conflict(
            target=TARGET, kept="2", kept_policy="first", dropped="3", dropped_policy="second"
        ),
    ) == made.conflicts


def test_agreement_is_no_conflict() -> None:
    """Two policies that want the same value get it once."""
    made = draft(asks("first", "2"), asks("second", "2"))

    assert (len(made.steps), made.conflicts) == (1, ())


def test_a_condition_that_two_policies_report_is_there_once() -> None:
    """So it is with a latency-sensitive workload inside a best-effort group."""
    both = decision.Condition(type="Inside", reason="R", subject="t/web")
    own = decision.Condition(type="Inside", reason="R", subject="t/other")
    outcomes = [
        chain.Outcome(
            stem=stem,
            mode=plan.Mode.ENFORCE,
            decision=decision.Decision(next_state=None, conditions=conditions),
        )
        for stem, conditions in (("first", (both, own)), ("second", (both,)))
    ]

    assert draft(*outcomes).conditions == (both, own)


@pytest.mark.parametrize(
    ("owned", "narrow", "written", "by"),
    [
        pytest.param("0-3", "2-7", "2-3", "second", id="what both have in common"),
        pytest.param("2-3", "0-7", "2-3", "first", id="nothing to narrow"),
        pytest.param("0-3", "4-5", "4-5", "second", id="v1 wants it inside what is around it"),
    ],
)
def test_a_set_is_owned_by_one_policy_and_narrowed_by_another(
    owned: str, narrow: str, written: str, by: str
) -> None:
    """In whichever order they come; it is no conflict."""
    both = (
        asks("first", owned, row="cpuset.cpus"),
        asks("second", narrow, row="cpuset.cpus", narrows=True),
    )
    for outcomes in (both, both[::-1]):
        made = draft(*outcomes, there="")
        assert [(written, by)] == [
            (s.action.value, s.action.policy)
            for s in made.steps
            if isinstance(s.action, action.WriteFile)
        ]
        assert made.conflicts == ()


def test_shadow_never_displaces_enforcement() -> None:
    """A later policy that enforces wins over an earlier one that only shows what it would do."""
    made = draft(asks("first", "2", plan.Mode.SHADOW), asks("second", "3"))

    assert [(s.action.policy, s.mode) for s in made.steps] == [("second", plan.Mode.ENFORCE)]


def test_shadow_is_in_the_plan_and_marked() -> None:
    """What would be done is shown as what it is."""
    made = draft(asks("first", "2", plan.Mode.SHADOW))

    assert [step.mode for step in made.steps] == [plan.Mode.SHADOW]


def test_what_is_so_already_is_no_step() -> None:
    """A plan holds changes only."""
    assert draft(asks("first", "2"), there="2").steps == ()


def test_the_least_of_two_limits_counts() -> None:
    """Whichever policy is the earlier one; it is no conflict, and the reason names both."""
    for first, second in (("-1", "50000"), ("50000", "-1"), ("50000", "80000")):
        quotas = [
            asks(stem, value, row="cpu.cfs_quota_us")
            for stem, value in (("first", first), ("second", second))
        ]
        made = draft(*quotas, there="-1")
        (step,) = made.steps

        assert isinstance(step.action, action.WriteFile)
        assert (step.action.value, made.conflicts) == ("50000", ())
        assert "least of first and second" in step.action.reason
