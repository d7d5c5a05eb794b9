"""Large gangs are decided in parts: others have their turn, and what changes counts."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.gangs import decisions, gang_scheduler
from koordlet.scheduler.loop.outcomes import Bind, Outcome, Refusal
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene

Body = dict[str, Any]
SIZE = 6


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two members are a part."""
    monkeypatch.setattr(decisions, "TURN", 2)
    monkeypatch.setattr(gang_scheduler, "TURN", 2)


def members(number: int = SIZE, minimum: int = SIZE, **more: Any) -> list[Body]:
    """A gang with one CPU each."""
    more.setdefault("cpu", "1")
    return [gangs.member(f"g{place}", "g", minimum, priority=5, **more) for place in range(number)]


def scene(*bodies: Body) -> Scene:
    """Two nodes of four CPUs; large gangs are decided with pauses."""
    stage = Scene(clusters.node("n1"), clusters.node("n2"))
    stage.core.gangs.pausing = True
    stage.put(*bodies)
    stage.now = 1.0
    return stage


def until_pause(stage: Scene) -> list[Outcome]:
    """The outcomes until the gang pauses the next time, or is at its end."""
    outcomes = []
    while (outcome := stage.core.step(stage.now)) is not None:
        outcomes.append(outcome)
    return outcomes


def bound(outcomes: list[Outcome]) -> dict[str, str]:
    """Who is bound where."""
    return {each.pod.name: each.node for each in outcomes if isinstance(each, Bind)}


def plain(name: str, **more: Any) -> Body:
    """A pod without a gang, which is less important."""
    return clusters.pod(name, meta={"uid": name}, **more)


def test_others_have_their_turn_after_each_part_of_a_large_gang() -> None:
    """Two members, two others, two members, the third other, and the rest."""
    stage = scene(*members())
    assert until_pause(stage) == []
    assert stage.core.gangs.paused
    assert stage.requested() == 2000
    stage.put(*(plain(f"o{place}", cpu="100m") for place in range(3)))
    first = [stage.core.step(1.0) for _ in range(2)]
    assert [each.pod.name for each in first if each is not None] == ["o0", "o1"]
    assert stage.core.step(1.0) is None
    assert stage.requested() == 4200
    rest = until_pause(stage)
    assert rest[0].pod.name == "o2"
    assert sorted(bound(rest[1:])) == [f"g{place}" for place in range(SIZE)]
    assert not stage.core.gangs.paused


def test_another_gang_in_a_pause_is_decided_at_once_and_the_large_one_goes_on() -> None:
    """Of four gangs two have their turn after each part of it, and all are bound in the end."""
    stage = scene(clusters.node("n3"), *members())
    until_pause(stage)
    stage.put(*(gangs.member(f"h{at}", f"h{at}", 1, cpu="1") for at in range(4)))
    first = [stage.core.step(1.0) for _ in range(3)]
    assert [each and each.pod.name for each in first] == ["h0", "h1", None]
    assert stage.core.gangs.paused
    assert stage.requested() == 6000
    outcomes = [each for _ in range(9) for each in until_pause(stage)]
    assert sorted(bound(outcomes)) == [*(f"g{place}" for place in range(SIZE)), "h2", "h3"]


def test_a_gang_that_fails_after_a_pause_wakes_those_that_met_its_members() -> None:
    """In the pause another found no room; when the gang is taken back it is tried again."""
    nowhere = gangs.member("g8", "g", 9, cpu="0", nodeSelector={"no": "where"})
    stage = scene(*members(8, 9), nowhere)
    until_pause(stage)
    stage.put(plain("other", cpu="4"), plain("another", cpu="4"))
    outcomes = [each for _ in range(12) for each in until_pause(stage)]
    refused = [each.pod.name for each in outcomes if isinstance(each, Refusal)]
    assert {"other", "another"} <= set(refused[:2])
    assert sorted(bound(outcomes)) == ["another", "other"]


def test_a_member_that_comes_during_a_pause_is_decided_with_the_others() -> None:
    """One cycle, one release, all of them marked with the number of all."""
    stage = scene(*members())
    until_pause(stage)
    stage.put(gangs.member("late", "g", SIZE, cpu="1", priority=9))
    outcomes = [each for _ in range(5) for each in until_pause(stage)]
    assert len(bound(outcomes)) == SIZE + 1
    key = "scheduling.koordinator.sh/bind-gang-member-count"
    assert {each.marks[key] for each in outcomes if isinstance(each, Bind)} == {"7"}


@pytest.mark.parametrize("gone", ["g0", "g5"], ids=["decided", "not decided"])
def test_a_member_that_goes_during_a_pause_does_not_count(gone: str) -> None:
    """The minimum is out of reach then: nobody is bound, and nothing is left of the gone one."""
    stage = scene(*members())
    until_pause(stage)
    stage.drop(gone)
    outcomes = [each for _ in range(5) for each in until_pause(stage)]
    assert bound(outcomes) == {}
    assert stage.requested() == 0
    assert stage.core.queue.get(f"d/{gone}") is None
    assert len([each for each in outcomes if isinstance(each, Refusal)]) >= SIZE - 1


def test_members_on_a_node_that_changed_during_a_pause_are_judged_again() -> None:
    """They go to the other node, which nobody has tainted."""
    stage = scene(*members(4, 4))
    until_pause(stage)
    assert {pod.node for pod in stage.core.pod_cache.assumed.values()} == {"n1", "n2"}
    no = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    stage.change_node(clusters.node("n1", spec=no))
    outcomes = [each for _ in range(5) for each in until_pause(stage)]
    assert bound(outcomes) == {f"g{place}": "n2" for place in range(4)}


def test_a_gang_whose_group_changes_during_a_pause_begins_anew() -> None:
    """Another gang names it and lacks its pods: nobody is bound before they are there."""
    stage = scene(*members())
    until_pause(stage)
    together = '["d/g","d/h"]'
    notes = {"gang.scheduling.koordinator.sh/groups": together}
    stage.put(gangs.member("h0", "h", 2, cpu="1", notes=notes))
    outcomes = [each for _ in range(5) for each in until_pause(stage)]
    assert bound(outcomes) == {}
    assert stage.requested() == 0
    stage.put(gangs.member("h1", "h", 2, cpu="1", notes=notes))
    outcomes = [each for _ in range(9) for each in until_pause(stage)]
    assert len(bound(outcomes)) == SIZE + 2


def test_a_member_that_comes_before_its_group_changes_begins_anew_with_the_others() -> None:
    """It left the queue for the cycle that is given up, and is tried all the same."""
    stage = scene(*members())
    until_pause(stage)
    stage.put(*members(SIZE + 1)[SIZE:])
    until_pause(stage)
    assert stage.core.gangs.paused
    notes = {"gang.scheduling.koordinator.sh/groups": '["d/g","d/h"]'}
    stage.put(gangs.member("h0", "h", 1, cpu="1", notes=notes))
    outcomes = [each for _ in range(9) for each in until_pause(stage)]
    assert len(bound(outcomes)) == SIZE + 2


def test_members_that_are_deleted_with_their_gang_in_a_pause_are_forgotten() -> None:
    """Nobody is left in the queue that the store does not have, decided before or not."""
    stage = scene(gangs.pod_group("g", SIZE))
    stage.put(*(gangs.labelled(f"g{place}", "g", cpu="1") for place in range(SIZE)))
    until_pause(stage)
    assert stage.core.gangs.paused
    stage.core.gangs.drop_pod_group("d/g")
    for pod in list(stage.stored.values()):
        stage.drop(pod.name)
    until_pause(stage)
    assert list(stage.core.queue) == []
    assert stage.requested() == 0


def test_a_preemptor_in_a_pause_gets_its_room_and_the_members_there_are_decided_again() -> None:
    """Nobody is deleted: they were not bound yet, and all of them fit on the other node."""
    stage = scene(*members(4, 4))
    until_pause(stage)
    stage.put(plain("urgent", cpu="4", priority=9))
    outcomes = [each for _ in range(12) for each in until_pause(stage)]
    assert {each.victims for each in outcomes if isinstance(each, Refusal)} == {()}
    places = bound(outcomes)
    assert len(places) == 5
    assert {places[f"g{place}"] for place in range(4)} == {"n1", "n2"} - {places["urgent"]}
