"""Members of gangs that are not strict wait with their room held, within limits."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.loop.outcomes import Bind, Refusal
from tests.kit import clusters, gangs
from tests.kit.gang_scene import Scene

Body = dict[str, Any]
OPEN = {"gang.scheduling.koordinator.sh/mode": "NonStrict"}


def member(name: str, node: str = "", minimum: int = 3, gang: str = "g", **more: Any) -> Body:
    """A pod of two CPUs of a gang that is not strict; on one node alone where that is named."""
    more.setdefault("cpu", "2")
    if node:
        more["nodeSelector"] = {clusters.HOST: node}
    notes = {**OPEN, **more.pop("notes", {})}
    return gangs.member(name, gang, minimum, notes=notes, **more)


def gang() -> list[Body]:
    """A gang of three that want one node each."""
    return [member(f"g{number}", f"n{number}") for number in (1, 2, 3)]


def scene(*bodies: Body, **more: Any) -> Scene:
    """Three nodes of four CPUs; somebody has filled the third."""
    nodes = [clusters.node(name) for name in ("n1", "n2", "n3")]
    full = clusters.pod("full", cpu="4", on="n3", priority=9, meta={"uid": "full"})
    return Scene(*nodes, full, *bodies, **more)


def held(stage: Scene) -> dict[str, str]:
    """The pods whose room is held, with their nodes."""
    return {pod.name: pod.node for pod in stage.core.pod_cache.assumed.values()}


def plain(name: str, **more: Any) -> Body:
    """A pod without a gang."""
    return clusters.pod(name, meta={"uid": name}, **more)


def test_decided_members_wait_with_their_room_held_until_the_last_one_fits() -> None:
    """Nobody else gets it; each member hears what it waits for; then all are bound together."""
    stage = scene(*gang())
    assert set(stage.decided().values()) == {""}
    assert held(stage) == {"g1": "n1", "g2": "n2"}
    assert stage.messages["g1"] == (
        'GangGroup "d/g" waits for member Pod "d/g3" is unschedulable with reason'
        " \"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node"
        ' affinity/selector.", alreadyWaitForBound: 2; room on node n1 is held for 600s'
    )
    stage.put(plain("other", cpu="3", nodeSelector={clusters.HOST: "n1"}))
    assert stage.decided(1.0) == {"other": ""}
    stage.drop("full")
    outcomes = []
    stage.now += 1.0
    while (outcome := stage.core.step(stage.now)) is not None:
        outcomes.append(outcome)
    binds = {each.pod.name: each for each in outcomes if isinstance(each, Bind)}
    assert {name: bind.node for name, bind in binds.items()} == {
        f"g{n}": f"n{n}" for n in (1, 2, 3)
    }
    key = "internal.scheduling.koordinator.sh/bind-gang-member-count"
    assert {bind.marks[key] for bind in binds.values()} == {"3"}
    assert not stage.core.gangs.held


def test_each_member_loses_its_room_when_its_own_waiting_time_has_passed() -> None:
    """Two were decided at once, one 300 seconds later: at 600 that one alone still waits."""
    late = member("g4", minimum=4)
    stage = scene(*[member(f"g{n}", f"n{n}", 4) for n in (1, 2, 3)], late)
    no = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    stage.put(clusters.node("n4"), clusters.node("n5", cpu="9", spec=no))
    stage.put(plain("blocks", cpu="3", on="n4"))
    stage.put(plain("fills", cpu="2", on="n1"), plain("more", cpu="2", on="n2"))
    stage.decided(0.0)
    assert held(stage) == {"g1": "n1", "g2": "n2"}
    stage.drop("blocks")
    stage.decided(300.0)
    assert held(stage) == {"g1": "n1", "g2": "n2", "g4": "n4"}
    lost = [stage.core.step(600.0) for _ in range(2)]
    assert [each.pod.name for each in lost if each is not None] == ["g1", "g2"]
    assert held(stage) == {"g4": "n4"}


def test_room_is_free_again_when_the_waiting_time_has_passed() -> None:
    """After the 60 seconds that the profile says; the members say why, and others get the room."""
    stage = scene(*gang(), arguments={"defaultTimeout": "60s"})
    stage.decided(0.0)
    stage.put(plain("other", cpu="3", nodeSelector={clusters.HOST: "n1"}))
    assert stage.decided(59.0) == {"other": ""}
    stage.now = 60.0
    refusals = [stage.core.step(60.0) for _ in range(2)]
    text = 'GangGroup "d/g" gets rejected due to timeout: its minimum was not decided within 60s'
    assert [(each.pod.name, each.message) for each in refusals if isinstance(each, Refusal)] == [
        ("g1", text),
        ("g2", text),
    ]
    assert stage.requested() == 4000
    assert stage.decided(5.0)["other"] == "n1"
    assert stage.messages["g3"] == "podGroup d/g failed recently"
    stage.decided(6.0)
    assert "resource gap" in stage.messages["g3"]


def test_a_restart_forgets_what_was_held() -> None:
    """Nothing of it is in the store: a scheduler that starts decides anew."""
    bodies = gang()
    first = scene(*bodies)
    first.decided(0.0)
    assert len(held(first)) == 2
    assert held(scene(*bodies)) == {}


def test_members_hold_at_most_their_share_of_the_cluster() -> None:
    """A quarter of twelve CPUs are three members of one; the fourth that fits holds none."""
    share = {"nonStrictHoldShare": 0.25}
    bodies = [member(f"g{number}", f"n{number % 2 + 1}", 5, cpu="1") for number in range(4)]
    stage = scene(*bodies, member("g4", "n3", 5, cpu="1"), arguments=share)
    stage.decided()
    assert sorted(held(stage)) == ["g0", "g1", "g2"]
    assert stage.requested() == 7000
    assert stage.messages["g3"] == (
        'GangGroup "d/g" gets rejected due to waiting members holding 25% of a resource of the'
        " cluster (nonStrictHoldShare)"
    )


def test_a_preemptor_gets_held_room_and_the_member_is_not_deleted() -> None:
    """The member was never bound: it waits again, and the store hears of no victim."""
    stage = scene(*gang())
    stage.decided()
    stage.put(plain("urgent", cpu="4", priority=5, nodeSelector={clusters.HOST: "n1"}))
    stage.now += 1.0
    first = stage.core.step(stage.now)
    assert isinstance(first, Refusal)
    assert (first.node, first.victims) == ("n1", ())
    second = stage.core.step(stage.now)
    assert isinstance(second, Refusal)
    assert (second.pod.name, second.message) == (
        "g1",
        "a higher priority pod needs the room that was held for it",
    )
    assert stage.decided(1.0)["urgent"] == "n1"
    assert held(stage) == {"urgent": "n1", "g2": "n2"}


def test_a_member_that_ends_gives_its_room_back_at_once() -> None:
    """Terminating, it is no child any more; its sibling waits on."""
    stage = scene(*gang())
    stage.decided()
    body = gang()[0]
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    stage.put(body)
    stage.decided(1.0)
    assert held(stage) == {"g2": "n2"}
    assert stage.messages["g1"] == "it is no waiting member of its gang any more"


def test_a_member_that_is_deleted_holds_nothing_for_another_pod_of_its_name() -> None:
    """Made again in another gang, it waits as others do, and is tried when there is room."""
    stage = scene(*gang())
    stage.decided()
    stage.drop("g1")
    assert "d/g1" not in stage.core.gangs.held
    stage.put(member("g1", "n3", 1, "other", meta={"uid": "another"}))
    assert stage.decided(1.0)["g1"] == ""
    stage.drop("full")
    assert stage.decided(20.0)["g1"] == "n3"


def test_a_lower_minimum_releases_those_that_wait() -> None:
    """The PodGroup asks for two now: both are bound, and nobody has to be woken for that."""
    pods = [
        gangs.labelled(f"g{number}", "g", cpu="2", nodeSelector={clusters.HOST: f"n{number}"})
        for number in (1, 2, 3)
    ]
    stage = scene(gangs.pod_group("g", 3, mode="NonStrict"), *pods)
    stage.decided()
    stage.put(gangs.pod_group("g", 2, mode="NonStrict"))
    places = stage.decided(0.1)
    assert (places["g1"], places["g2"]) == ("n1", "n2")


def test_a_gang_that_becomes_strict_holds_nothing() -> None:
    """From its next change on, half of it keeps no room from others."""
    pods = [
        gangs.labelled(f"g{number}", "g", cpu="2", nodeSelector={clusters.HOST: f"n{number}"})
        for number in (1, 2, 3)
    ]
    stage = scene(gangs.pod_group("g", 3, mode="NonStrict"), *pods)
    stage.decided()
    assert len(held(stage)) == 2
    stage.put(gangs.pod_group("g", 3, mode="Strict"))
    stage.decided(0.1)
    assert held(stage) == {}
    assert stage.requested() == 4000


def test_a_held_member_is_judged_again_where_its_node_has_changed() -> None:
    """The node of the first is tainted meanwhile: the last one fits, and yet nobody is bound."""
    stage = scene(*gang())
    stage.decided()
    tainted = clusters.node("n1", spec={"taints": [{"key": "k", "effect": "NoSchedule"}]})
    stage.change_node(tainted)
    stage.drop("full")
    places = stage.decided()
    assert set(places.values()) == {""}
    assert held(stage) == {"g2": "n2", "g3": "n3"}
    assert "untolerated taint" in stage.messages["g1"]


def test_a_strict_gang_waits_where_it_lacks_little_and_the_profile_allows_that() -> None:
    """Two of three decided are a gap of a third: 40 per cent hold, 30 do not, nor does silence."""
    strict = [
        gangs.member(f"g{n}", "g", 3, cpu="2", nodeSelector={clusters.HOST: f"n{n}"})
        for n in (1, 2, 3)
    ]
    waiting = []
    for arguments in ({"podGroupRejectPercentage": 40}, {"podGroupRejectPercentage": 30}, {}):
        stage = scene(*strict, arguments=arguments)
        stage.decided()
        waiting.append(len(held(stage)))
    assert waiting == [2, 0, 0]


def test_a_group_that_failed_recently_is_not_tried_before_its_time() -> None:
    """For the 30 seconds that the profile says, although room came; then it goes."""
    strict = [gangs.member(f"g{n}", "g", 3, cpu="4") for n in (1, 2, 3)]
    stage = scene(*strict, arguments={"podGroupBackoffSeconds": 30})
    stage.decided(0.0)
    stage.drop("full")
    stage.decided(15.0)
    assert "podGroup d/g failed recently" in stage.messages.values()
    assert held(stage) == {}
    places = stage.decided(16.0)
    assert sorted(places.values()) == ["n1", "n2", "n3"]
