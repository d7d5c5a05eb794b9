"""A container that is about to start gets what the clock would decide for it, once and for good."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pytest

from koordlet.history import series
from koordlet.model import adjustment, decision, plan, pod, qos, snapshot
from koordlet.policy.framework import admission, declaration, registry
from tests.kit import moments
from tests.kit.moments import group, workload

SERVER = moments.machine()
Qos = qos.Qos


def admit(
    now: snapshot.Snapshot,
    newcomer: pod.Pod,
    *,
    rows: Sequence[declaration.Declared] = registry.POLICIES,
    states: Mapping[str, object] | None = None,
    modes: Mapping[str, plan.Mode] | None = None,
) -> admission.Admission:
    """The answer for one container."""
    return admission.admit(
        rows,
        now,
        series.History(),
        newcomer,
        "main",
        settings={},
        modes=modes or {},
        states=states or {},
        last={},
    )


def states(admitted: admission.Admission) -> dict[str, object]:
    """What the line keeps."""
    return {
        outcome.stem: outcome.decision.next_state
        for outcome in admitted.round.outcomes
        if outcome.decision is not None
    }


def test_each_class() -> None:
    """LSE gets its set, LS the pool without it, BE all but it; nobody needs to be listed yet."""
    now = moments.moment(SERVER, [workload("lse", Qos.LSE, "0,6"), workload("lsr", Qos.LSR, "1,7")])
    wanted = {Qos.LSE: ("2,8", "2,8"), Qos.LS: (None, "2-5,8-11"), Qos.BE: (None, "1-5,7-11")}

    for kind, (cpus, expected) in wanted.items():
        admitted = admit(now, workload("new", kind, cpus, group="new"))
        assert str(admitted.adjustment.cpus) == expected, kind
        assert "shared_pools" in admitted.adjustment.reasons


def test_two_newcomers_never_get_the_same_cpu() -> None:
    """What the first was given is in the state of its round, and the second sees it."""
    now = moments.moment(SERVER)
    newcomer = workload("one", Qos.LSR, cpu_count=2)
    first = admit(now, newcomer)
    both = dataclasses.replace(now, pods=(newcomer,))
    second = admit(both, workload("two", Qos.LSR, cpu_count=2), states=states(first))

    assert (str(first.adjustment.cpus), str(second.adjustment.cpus)) == ("0,6", "3,9")
    again = admit(both, newcomer, states=states(second))
    assert str(first.adjustment.cpus) == str(again.adjustment.cpus)


def test_the_pod_s_own_sources_count() -> None:
    """A runtime knows less of a pod than the kubelet: it only fills in where the group is."""
    listed = workload("p", Qos.BE, group=None)
    merged = admission.among([listed], workload("p", Qos.LSE, "1"))

    assert (merged[0].qos, merged[0].group) == (Qos.BE, "p")


@pytest.mark.parametrize(
    ("above", "expected"), [("0-11", "2-5,8-11"), ("2-5,8-11", None), ("2-3", None), ("0-3", "2-3")]
)
def test_a_set_that_the_group_above_has_not_is_not_asked_for(
    above: str, expected: str | None
) -> None:
    """On v1 the container would not start; one that inherits the right set is told nothing."""
    pods = [workload("lse", Qos.LSE, "0-1,6-7"), workload("q/new")]
    groups = [group("", "0-11"), group("q", above)]
    admitted = admit(moments.moment(SERVER, pods, groups=groups), pods[1])

    assert (None if admitted.adjustment.cpus is None else str(admitted.adjustment.cpus)) == expected


def test_the_kubelet_s_containers_are_left_alone() -> None:
    """A container of the static policy has its set from the kubelet."""
    now = moments.moment(SERVER, [workload("k", Qos.LSR, "0", kubelet_owned=True)])

    assert admit(now, workload("k")).adjustment.empty


def test_a_refused_set_is_a_condition_of_this_pod() -> None:
    """The pod gets the pool, and the asker gets what is wrong with it, not with others."""
    now = moments.moment(SERVER, [workload("lse", Qos.LSE, "0,6"), workload("bad", Qos.LSE, "99")])
    admitted = admit(now, workload("new", Qos.LSR, "0-1"))

    assert [condition.subject for condition in admitted.conditions] == ["t/new"]
    assert str(admitted.adjustment.cpus) == "1-5,7-11"


def test_only_policies_that_enforce_have_a_say() -> None:
    """In shadow mode a claim binds nobody, and a set is nobody's."""
    now = moments.moment(SERVER, [workload("lse", Qos.LSE, "0,6")])
    for stem, expected in (("exclusive_cpus", "None"), ("shared_pools", "None")):
        admitted = admit(now, workload("new"), modes={stem: plan.Mode.SHADOW})
        assert str(admitted.adjustment.cpus) == expected, stem


def test_a_policy_that_fails_costs_its_own_part() -> None:
    """The others still have their say, and the failure is named."""

    def broken(*_: object) -> adjustment.Adjustment:
        msg = "out of order"
        raise RuntimeError(msg)

    rows = [
        dataclasses.replace(row, admit=broken) if row.stem == "shared_pools" else row
        for row in registry.POLICIES
    ]
    admitted = admit(moments.moment(SERVER), workload("new"), rows=rows)

    assert admitted.failures == {"shared_pools": "RuntimeError: out of order"}
    assert admitted.adjustment.empty


def test_policies_that_look_at_the_clock_do_not_take_a_step() -> None:
    """A container that starts is no tick."""
    asked: list[str] = []

    def counting(*_: object) -> decision.Decision[object]:
        asked.append("asked")
        return decision.Decision(next_state=None)

    rows = [
        dataclasses.replace(row, stem="stepping", decide=counting, timeless=False, admit=None)
        for row in registry.POLICIES[:1]
    ]
    admit(moments.moment(SERVER), workload("new"), rows=rows)

    assert asked == []
