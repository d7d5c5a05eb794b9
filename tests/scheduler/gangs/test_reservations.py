"""Gangs whose members own reservations: their room is part of the one decision."""

from __future__ import annotations

from koordlet.scheduler.loop import reservation_events
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
