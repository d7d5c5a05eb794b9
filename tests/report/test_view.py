"""A limit that nobody is held to is never shown as the limit, on any surface."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.apply import planner, present
from koordlet.model import action, best_effort, decision, knob, plan, result
from koordlet.policy.framework import chain
from koordlet.report import console, metrics, node_json, view
from tests.kit import moments, recorders, views

LIMIT = best_effort.Limit(policy="adaptive", actuator="cfsQuota", milli=3000, reason="it waits")
OFFER = best_effort.Offer(amounts={"kubernetes.io/batch-cpu": 1000})
_LIMITS = ("koordlet_best_effort_limit_cores{", "koordlet_be_suppress_cpu_cores{")


def planned(mode: plan.Mode, limit: best_effort.Limit = LIMIT) -> plan.Plan:
    """The plan of one policy that says a limit and an offer."""
    decided = decision.Decision(next_state=None, limit=limit, offer=OFFER)
    outcome = chain.Outcome(stem="adaptive", mode=mode, decision=decided)  # type: ignore[arg-type]
    now = moments.bare()
    done = chain.Round(outcomes=(outcome,), ledger=now.ledger)
    there = present.Present(texts={})
    return planner.draft(done, planner.desired(done.outcomes), now, there, {}).plan


def view_of_limit(limit: best_effort.Limit | None, mode: str = "enforce") -> view.ReportView:
    """A view with this limit."""
    base = views.view()
    return dataclasses.replace(base, mode=mode, plan=dataclasses.replace(base.plan, limit=limit))


def wrote(verdict: result.Verdict, knob_name: str, policy: str = "adaptive") -> result.Result:
    """What came of a write for best-effort work."""
    write = action.WriteFile(
        target="/c/job/cpu.max", value="1", policy=policy, reason="r", knob=knob_name, group="job"
    )
    step = plan.Step(order=0, action=write, was="max")
    return result.Result(target=write.target, verdict=verdict, detail="EINVAL", step=step)


def scrape(now: view.ReportView) -> str:
    """The metrics, as Prometheus gets them."""
    return metrics.render(now, "1", {}, metrics.TEXT).decode()


def test_the_mode_of_the_policy_decides() -> None:
    """In shadow there is neither a limit nor an offer, and it is said which policy only shows."""
    acting, idle = planned(plan.Mode.ENFORCE), planned(plan.Mode.SHADOW)

    assert (acting.limit, acting.shadow, acting.offer) == (LIMIT, (), OFFER)
    assert idle.limit is not None
    assert (idle.limit.idle, idle.shadow, idle.offer) == (
        "policies.adaptive.mode is shadow", ("adaptive",), None,
    )  # fmt: skip


def test_a_limit_that_no_group_can_be_held_to() -> None:
    """Weights alone are no limit."""
    for actuator in ("", "weights"):
        limit = planned(plan.Mode.ENFORCE, dataclasses.replace(LIMIT, actuator=actuator)).limit
        assert limit is not None
        assert limit.idle == "no cgroup can enforce it"


def test_an_agent_that_observes_has_no_limit() -> None:
    """The same limit, and why it holds nobody."""
    observed = plan.shadowed(plan.Plan(limit=LIMIT))

    assert observed.limit is not None
    assert observed.limit.idle == "the agent only observes"
    assert plan.shadowed(plan.Plan()).limit is None


@pytest.mark.parametrize(
    ("written", "holds"),
    [
        pytest.param(wrote(result.Verdict.DONE, knob.CPU_CFS_QUOTA.name), True, id="done"),
        pytest.param(wrote(result.Verdict.REFUSED, knob.CPU_CFS_QUOTA.name), False, id="refused"),
        pytest.param(wrote(result.Verdict.WAITING, knob.CPUSET_CPUS.name), False, id="waits"),
        pytest.param(wrote(result.Verdict.HELD, knob.CPUSET_CPUS.name), False, id="held"),
        pytest.param(wrote(result.Verdict.REFUSED, knob.CPU_SHARES.name), True, id="a weight"),
        pytest.param(wrote(result.Verdict.REFUSED, knob.CPU_CFS_QUOTA.name, "x"), True, id="other"),
    ],
)
def test_a_refused_file(written: result.Result, *, holds: bool) -> None:
    """A limit whose own set or quota is not written is not in force, and says which file."""
    limit = view.limit(LIMIT, [written])

    assert limit is not None
    assert (limit.idle == "") is holds
    assert holds or limit.idle == "/c/job/cpu.max was not written: EINVAL"
    assert view.limit(None, [written]) is None


def test_every_surface_shows_a_limit_in_force() -> None:
    """API, page, metrics: its number, and no banner."""
    now = view_of_limit(LIMIT)
    document = node_json.document(now, "1")
    best = document["bestEffort"]

    assert isinstance(best, dict)
    assert (best["policy"], best["limitCores"], best["wouldBe"]) == ("adaptive", 3.0, None)
    assert document["banner"] == console.document(now, "1", recorders.recorder())["banner"] == []
    assert all(family in scrape(now) for family in _LIMITS)


def test_no_surface_shows_a_limit_that_is_not_in_force() -> None:
    """The number is beside the point, with the reason; the metrics have none."""
    now = view_of_limit(best_effort.idle(LIMIT, "policies.adaptive.mode is shadow"))
    document = node_json.document(now, "1")
    best = document["bestEffort"]

    assert isinstance(best, dict)
    assert [best[key] for key in ("policy", "actuator", "limitCores", "cpus")] == [None] * 4
    assert best["wouldBe"]["limitCores"] == 3.0
    assert best["wouldBe"]["why"] == "policies.adaptive.mode is shadow"
    assert document["banner"] == console.document(now, "1", recorders.recorder())["banner"]
    (sentence,) = view.banner(now)
    assert document["banner"] == [sentence]
    assert sentence == (
        "Best-effort work is not limited: policies.adaptive.mode is shadow"
        " (adaptive would allow 3.00 CPUs)."
    )
    assert not any(family in scrape(now) for family in _LIMITS)


def test_the_banner_of_an_observing_agent_and_of_a_rollback() -> None:
    """An agent that observes, and a step that the guard took back."""
    assert list(view.banner(view_of_limit(None, mode="observe"))) == [
        "This agent only observes and changes nothing."
    ]
    back = decision.Condition(
        type="PolicyRolledBack", status=True, reason="Guard", subject="cpu_burst", message="it hurt"
    )
    now = view_of_limit(LIMIT)
    now = dataclasses.replace(now, plan=dataclasses.replace(now.plan, conditions=(back,)))
    assert list(view.banner(now)) == ["A change by cpu_burst was undone: it hurt."]
