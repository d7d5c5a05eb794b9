"""What becomes of each member after its group was decided."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.gangs.group_outcomes import GroupOutcomes
from koordlet.scheduler.gangs.trial import FailedMember, GroupTrial
from koordlet.scheduler.loop.outcomes import Refusal
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene


def test_members_that_fitted_wait_for_their_siblings_and_the_failed_one_for_events() -> None:
    """All of them with the backoff of the most tried."""
    apart = {"nodeSelector": {"no": "where"}}
    scene = Scene(clusters.node("n"), gangs.member("a", "g", 2), gangs.member("b", "g", 2, **apart))
    scene.decided()
    queue = scene.core.queue
    waiting = {name: queue.get(f"d/{name}") for name in "ab"}
    assert {entry.place for entry in waiting.values() if entry} == {QueuePlace.UNSCHEDULABLE}
    fitted, failed = waiting["a"], waiting["b"]
    assert fitted is not None
    assert failed is not None
    assert fitted.by == {"Coscheduling"}
    assert failed.by == {"NodeAffinity"}
    assert fitted.attempts == failed.attempts


def test_a_member_beyond_the_minimum_is_refused_alone_and_the_others_are_bound() -> None:
    """It says why no node takes it, not that its gang was rejected."""
    scene = Scene(
        clusters.node("n"),
        gangs.member("a", "g", 1),
        gangs.member("b", "g", 1, nodeSelector={"no": "where"}),
    )
    assert scene.decided() == {"a": "n", "b": ""}
    assert scene.messages["b"].startswith("0/1 nodes are available")


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("never", [False, True])
def test_room_that_was_promised_to_a_member_that_is_refused_is_anybodys_at_once(
    *, released: bool, never: bool
) -> None:
    """Not only once the store shows it: a pod that is never tried again keeps nobody out.

    ``released``: the group goes without it, as it is beyond the minimum.
    """
    scene = Scene(clusters.node("n"), gangs.member("a", "g", 2), gangs.member("b", "g", 2))
    core, pod = scene.core, scene.stored["d/b"]
    core.nominated.put(pod, "n")
    entry = core.gangs.book.of(pod)
    assert entry is not None
    assert entry.group is not None
    outcomes = GroupOutcomes(core.gangs.held, entry.group, scene.now)
    trial = GroupTrial(failed=[FailedMember(pod, "no node", never=never)])
    made = outcomes.release(trial) if released else outcomes.refused([pod], trial, "no node")
    assert [outcome.pod.key for outcome in made] == ["d/b"]
    assert (core.nominated.node(pod), pod.nominated) == ("", "")
    assert list(core.nominated.withdrawn) == ["n"]


@pytest.mark.parametrize(
    ("policy", "preempts"), [("once-satisfied", True), ("only-waiting", False)]
)
def test_a_member_beyond_the_minimum_may_preempt_unless_those_that_run_do_not_count(
    policy: str, *, preempts: bool
) -> None:
    """Of such a gang nobody knows that it has enough: the next one may need all of them again."""
    notes = {pod_groups.MATCH_POLICY: policy}
    several = [
        gangs.member("a", "g", 1, notes=notes, cpu="1"),
        gangs.member("b", "g", 1, notes=notes, cpu="100"),
    ]
    scene = Scene(clusters.node("n"), *several)
    assert scene.decided() == {"a": "n", "b": ""}
    assert ("preemption: " in scene.messages["b"]) is preempts


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(("failed", "whole"), [(False, False), (True, False), (False, True)])
def test_members_that_are_refused_name_their_gate_and_an_error_as_such(
    *, native: bool, failed: bool, whole: bool
) -> None:
    """An error says nothing about nodes: of one member, or of the trial."""
    if native:
        bodies = [gangs.own_group("g", 2), gangs.own("a", "g"), gangs.own("b", "g")]
    else:
        bodies = [gangs.member("a", "g", 2), gangs.member("b", "g", 2)]
    scene = Scene(clusters.node("n"), *bodies)
    core, members = scene.core, [scene.stored["d/a"], scene.stored["d/b"]]
    entry = core.gangs.book.of(members[0])
    assert entry is not None
    assert entry.group is not None
    trial = GroupTrial(failed=[FailedMember(members[1], "no node", error=failed)])
    outcomes = GroupOutcomes(core.gangs.held, entry.group, scene.now)
    made = outcomes.refused(members, trial, "rejected", error=whole)
    reason = "SchedulerError" if failed or whole else "Unschedulable"
    assert [(each.reason, each.message) for each in made if isinstance(each, Refusal)] == [
        (reason, "rejected"), (reason, "rejected"),
    ]  # fmt: skip
    gate = "GangScheduling" if native else "Coscheduling"
    entries = [waiting for pod in members if (waiting := core.queue.get(pod.key)) is not None]
    assert [waiting.by for waiting in entries] == [{gate}, {gate}]
    assert entry.group.obstacle is not None
    assert entry.group.obstacle.message == "no node"
