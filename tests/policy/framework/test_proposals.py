"""A proposal gathers what a policy wants, in its name."""

from __future__ import annotations

from typing import Any

from koordlet.policy.framework import proposals


def test_it_is_said_and_wanted_in_the_policy_s_name() -> None:
    """Actions and conditions keep their order; a reason of its own takes the policy's place."""
    now: Any = None
    proposal = proposals.Proposal("cpu_burst", now, reason="Burst")
    proposal.write("/a", "1", "because")
    proposal.say("First", "message")
    proposal.say("Second", "message", "d/p", reason="Other")
    decided = proposal.decided("next")

    assert [(action.target, action.policy) for action in decided.actions] == [("/a", "cpu_burst")]
    assert [
        (condition.type, condition.reason, condition.subject) for condition in decided.conditions
    ] == [
        ("First", "Burst", "node"),
        ("Second", "Other", "d/p"),
    ]
    assert decided.next_state == "next"
