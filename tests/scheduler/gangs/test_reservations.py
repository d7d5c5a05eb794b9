"""Gangs whose members own reservations: their room is part of the one decision."""

from __future__ import annotations

from typing import Any

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.loop import reservation_events
from koordlet.scheduler.reservation.spec import Phase
from tests.kit import clusters, gangs, reservations
from tests.kit.gang_scene import Scene

WEB = {"app": "web"}


def reserving(*, once: bool) -> Scene:
    """Two nodes of four CPUs, one of them reserved for pods with ``app=web``."""
    scene = Scene(clusters.node("n1"), clusters.node("n2"))
    body = reservations.reservation("r", cpu="4", on="n1", allocateOnce=once)
    body["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    reservation_events.changed(scene.core, None, body, 0.0)
    return scene


def drawn(scene: Scene) -> dict[str, str]:
    """Assumed pods that draw on a reservation, with its name."""
    assumed = scene.core.pod_cache.assumed.values()
    return {pod.name: pod.drawn_name for pod in assumed if pod.draws_on}


def test_members_draw_on_a_reservation_as_part_of_the_decision() -> None:
    """Two members of two CPUs fill it, the other two go beside it: 8 CPUs of 4 that are free."""
    scene = reserving(once=False)
    scene.put(*(gangs.member(f"g{place}", "g", 4, cpu="2", labels=WEB) for place in range(4)))
    places = scene.decided()
    assert sorted(places.values()) == ["n1", "n1", "n2", "n2"]
    assert set(drawn(scene).values()) == {"r"}
    assert len(drawn(scene)) == 2


def test_a_gang_that_fails_gives_the_reservation_back_whole() -> None:
    """Five members do not fit; an owner that comes after them gets the whole reservation."""
    for once in (False, True):
        scene = reserving(once=once)
        before = scene.requested()
        scene.put(*(gangs.member(f"g{place}", "g", 5, cpu="2", labels=WEB) for place in range(5)))
        assert set(scene.decided().values()) == {""}
        assert drawn(scene) == {}
        assert scene.requested() == before
        scene.put(clusters.pod("owner", cpu="4", labels=WEB, meta={"uid": "owner"}))
        assert scene.decided(1.0)["owner"] == "n1"
        assert drawn(scene) == {"owner": "r"}


def test_others_get_no_room_of_the_reservation() -> None:
    """A gang without the label has the free node alone."""
    scene = reserving(once=False)
    scene.put(*(gangs.member(f"g{place}", "g", 4, cpu="2") for place in range(4)))
    assert set(scene.decided().values()) == {""}


def member_reservation(name: str, **more: Any) -> dict[str, Any]:
    """A reservation of four CPUs whose template is in gang g, with a minimum of two."""
    notes = {pod_groups.GANG_NAME: "g", pod_groups.GANG_MINIMUM: "2"}
    meta = {"namespace": "d", "annotations": notes}
    body = reservations.reservation(name, cpu="4", template_meta=meta, **more)
    body["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    return body


def put(scene: Scene, body: dict[str, Any], old: dict[str, Any] | None = None) -> None:
    """A reservation comes, or changes."""
    reservation_events.changed(scene.core, old, body, scene.now)


def test_a_reservation_is_a_member_that_gets_its_room_with_the_others_or_not_at_all() -> None:
    """It waits for the second member; together they fit; alone it holds nothing."""
    scene = Scene(clusters.node("n1"), clusters.node("n2"))
    put(scene, member_reservation("r"))
    assert scene.decided() == {"uid-r": ""}
    assert "not collect enough" in scene.messages["uid-r"]
    assert scene.requested() == 0
    scene.put(gangs.member("a", "g", 2, cpu="4"))
    places = scene.decided()
    assert sorted(places) == ["a", "uid-r"]
    assert sorted(places.values()) == ["n1", "n2"]
    assert scene.requested() == 8000


def test_the_room_of_a_reservation_is_taken_back_when_its_gang_fails() -> None:
    """Another gets all of the node then, and the reservation is pending as before."""
    scene = Scene(clusters.node("n1"))
    put(scene, member_reservation("r"))
    scene.put(gangs.member("a", "g", 2, cpu="1"))
    assert set(scene.decided().values()) == {""}
    assert scene.requested() == 0
    info = scene.core.reservations.named("r")
    assert info is not None
    assert (info.row, info.node, info.phase) == (-1, "", Phase.PENDING)
    scene.put(clusters.pod("plain", cpu="4", meta={"uid": "plain"}))
    assert scene.decided(1.0)["plain"] == "n1"


def test_a_reservation_that_the_store_shows_on_a_node_is_a_bound_member_until_it_goes() -> None:
    """A gang that was satisfied by it lets the next pod pass alone; without it two are needed."""
    scene = Scene(clusters.node("n1"), clusters.node("n2"))
    waiting, bound = member_reservation("r"), member_reservation("r", on="n1")
    put(scene, waiting)
    put(scene, bound, waiting)
    scene.put(gangs.member("a", "g", 2, cpu="4"))
    assert scene.decided() == {"a": "n2"}
    reservation_events.changed(scene.core, bound, None, scene.now)
    scene.drop("a")
    scene.put(gangs.member("b", "g", 2, cpu="1"))
    assert scene.decided() == {"b": ""}


def test_a_gang_whose_reservation_goes_before_the_binding_is_decided_again_as_a_whole() -> None:
    """What was chosen for the reservation fits nowhere without it: nobody stays assumed."""
    scene = reserving(once=False)
    wants = {"annotations": reservations.affinity(name="r"), "uid": "g0"}
    required = gangs.member("g0", "g", 2, cpu="4", labels=WEB)
    required["metadata"]["annotations"] |= wants["annotations"]
    scene.put(required, gangs.member("g1", "g", 2, cpu="4"))
    places = scene.decided()
    assert places == {"g0": "n1", "g1": "n2"}
    body = reservations.reservation("r", cpu="4", on="n1")
    reservation_events.changed(scene.core, body, None, scene.now)
    assert scene.requested() == 0
    assert set(scene.decided(20.0).values()) == {""}
    assert scene.requested() == 0
    assert 'member Pod "d/g0" is unschedulable' in scene.messages["g1"]


def test_members_that_are_bound_stay_where_their_reservation_went() -> None:
    """One of two is bound when it goes: the other is decided again, and passes alone."""
    scene = reserving(once=False)
    scene.put(*(gangs.member(f"g{place}", "g", 2, cpu="2", labels=WEB) for place in range(2)))
    assert set(scene.decided().values()) == {"n1"}
    scene.confirm("g0")
    body = reservations.reservation("r", cpu="4", on="n1")
    reservation_events.changed(scene.core, body, None, scene.now)
    assert scene.requested() == 2000
    assert list(scene.decided(20.0)) == ["g1"]
    assert scene.requested() == 4000
