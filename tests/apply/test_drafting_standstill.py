"""When the last draft stands: each thing that may change ends it."""

from __future__ import annotations

from dataclasses import replace

from koordlet.apply import drafting, planner, undoing
from koordlet.model import decision, knob, ledger, plan
from koordlet.model.action import WriteFile
from koordlet.policy.framework import chain
from tests.kit import moments

SEEN = moments.moment(moments.machine())
NOTHING = planner.Draft(plan=plan.Plan())


def round_of(value: str, *, measured: str = "", mode: plan.Mode = plan.Mode.ENFORCE) -> chain.Round:
    """One policy wants one file to hold a value."""
    wish = WriteFile(
        target="/a", value=value, reason="r", policy="p", group="g", knob=knob.CPUSET_CPUS.name
    )
    conditions = (decision.Condition(type="Measured", status=True, reason="r", message=measured),)
    decided: decision.Decision[object] = decision.Decision(
        next_state=None, actions=(wish,), conditions=conditions
    )
    outcome = chain.Outcome(stem="p", mode=mode, decision=decided)
    return chain.Round(outcomes=(outcome,), ledger=ledger.Ledger())


def test_what_was_measured_changes_nothing() -> None:
    """The same wishes of the same groups: the draft stands, whatever else a policy tells."""
    assert drafting.stands(
        NOTHING, (SEEN, round_of("1", measured="1")), (SEEN, round_of("1", measured="2"))
    )


def test_whatever_changes_ends_it() -> None:
    """Another wish, another mode, other groups, a policy more; or a draft that had work to do."""
    before = (SEEN, round_of("1"))
    left = undoing.Left(target="/a", why="w", forget=False)
    moved = replace(SEEN, groups=dict(SEEN.groups))
    more = round_of("1")
    more = replace(more, outcomes=(*more.outcomes, *more.outcomes))
    assert not drafting.stands(NOTHING, before, (SEEN, round_of("2")))
    assert not drafting.stands(NOTHING, before, (SEEN, round_of("1", mode=plan.Mode.SHADOW)))
    assert not drafting.stands(NOTHING, before, (moved, round_of("1")))
    assert not drafting.stands(NOTHING, before, (SEEN, more))
    assert not drafting.stands(replace(NOTHING, left=(left,)), before, before)


def test_trust_ends_with_news_and_by_itself() -> None:
    """A file that a pass does not show was written: told at once, untold in ten passes."""
    trust = drafting.Trust()
    trust.begins(1)

    assert trust.lasts(1)
    assert not trust.lasts(2)
    assert not trust.lasts(1)

    trust.begins(2)

    assert [trust.lasts(2) for _ in range(20)].count(True) == 9


def test_only_what_is_to_be_done_ends_it() -> None:
    """A step of a policy in shadow, and any step where nobody acts, is there at every pass."""
    before = (SEEN, round_of("1"))
    wish = WriteFile(target="/a", value="1", reason="r", policy="p")
    shadow = planner.Draft(
        plan=plan.Plan(steps=(plan.Step(order=0, action=wish, was="2", mode=plan.Mode.SHADOW),))
    )
    todo = planner.Draft(plan=plan.Plan(steps=(plan.Step(order=0, action=wish, was="2"),)))

    assert drafting.stands(shadow, before, before)
    assert drafting.stands(todo, before, before, acting=False)
    assert not drafting.stands(todo, before, before)
