"""One pass as a value: what it observed, decided and drafted, and what the next one keeps of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.apply import trace
from koordlet.model import plan, pod, qos
from koordlet.policy.cpu import shared_pools
from tests.kit import agents, sites


@pytest.fixture
def site(ram: Path) -> agents.Site:
    """Three declared workloads on a machine in memory."""
    return sites.workloads("v1", ram)


def test_a_pass_changes_nothing_and_the_next_wants_the_same(site: agents.Site) -> None:
    """Until a draft is applied the machine is as it was, and so is the next draft."""
    before, line = site.image(), site.line()

    first = line.draft({})
    second = line.draft({})

    assert site.image() == before
    assert "WriteFile" in {type(step.action).__name__ for step in first.draft.plan.steps}
    assert second.draft.plan.steps == first.draft.plan.steps


def test_a_mode_that_is_overridden_holds_for_its_policy_alone(site: agents.Site) -> None:
    """What a policy in shadow wants is in the plan, and is not decided for a container."""
    site.modes = {shared_pools.STEM: plan.Mode.SHADOW}
    outcomes = {outcome.stem: outcome.mode for outcome in site.line().draft({}).round.outcomes}

    assert outcomes[shared_pools.STEM] is plan.Mode.SHADOW
    assert outcomes["reserved_cpus"] is plan.Mode.ENFORCE


def test_a_trace_has_the_inputs_of_each_policy_that_is_not_off(site: agents.Site) -> None:
    """Without a trace nothing is kept; with one every policy that decided is in it."""
    stations, line = trace.Trace(), site.line()

    made = line.draft({}, trace=stations)

    assert set(stations.inputs) == {
        outcome.stem for outcome in made.round.outcomes if outcome.mode is not plan.Mode.OFF
    }


def test_a_newcomer_is_admitted_once_and_remembered(site: agents.Site) -> None:
    """It counts as announced until a source lists it; a second container announces nothing."""
    line = site.line()
    line.draft({})
    newcomer = pod.Pod(
        uid="u1", namespace="shop", name="new", qos=qos.Qos.LS, source="nri", group="kubepods/podu1"
    )

    line.admit(newcomer, "main")
    line.admit(newcomer, "other")

    assert [announced.uid for announced in line.announcements.pods] == ["u1"]
