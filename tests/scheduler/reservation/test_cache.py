"""Reservation state: what is held on a node, as objects and pods come and go."""

from __future__ import annotations

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.spec import Phase
from tests.kit import clusters
from tests.kit.clusters import Body
from tests.kit.reservations import NOW, drawn, reservation


class World:
    """One node of 4 CPUs, and the reservations of a scheduler."""

    def __init__(self) -> None:
        self.loaded = inventory.load([clusters.node("n")])
        self.columns = self.loaded.columns
        self.cache = ReservationCache(self.columns, self.loaded.decoder)

    def drawing(self, name: str, cpu: str, on: str) -> Pod:
        """A pod that is bound to the node and draws on a reservation."""
        body = clusters.pod(name, on="n", cpu=cpu, meta={"annotations": drawn(on)})
        return self.loaded.decoder.decode(body, 0)

    def place(self, body: Body) -> Pod:
        """Take an object in and bind it to the node."""
        reserve_pod = self.cache.put(body)
        assert reserve_pod is not None
        self.cache.placed(reserve_pod, 0)
        return reserve_pod

    @property
    def requested(self) -> int:
        """CPU that is requested on the node, in thousandths."""
        return int(self.columns.requested[self.columns.resources["cpu"], 0])


def test_requested_amounts_are_pods_plus_what_reservations_hold() -> None:
    """A pod that draws takes from what is held; beyond that it takes from the node."""
    world = World()
    world.place(reservation("r", cpu="2", allocateOnce=False))
    requested = [world.requested]
    small = world.drawing("a", "1", "r")
    large = world.drawing("b", "2", "r")
    for pod in (small, large):
        world.columns.place(pod, 0)
        requested.append(world.requested)
    for pod in (small, large):
        world.columns.remove(pod)
        requested.append(world.requested)

    assert requested == [2000, 2000, 3000, 2000, 2000]


def test_what_is_over_or_deleted_gives_back_what_it_held() -> None:
    """Used up, expired, deleted, or replaced by another object of its name."""
    world = World()
    world.place(reservation("once", cpu="1"))
    world.columns.place(world.drawing("a", "1", "once"), 0)
    world.place(reservation("old", cpu="1", expires="2023-11-14T22:13:10Z"))
    world.place(reservation("gone", cpu="1"))
    world.place(reservation("again", cpu="1"))
    before = world.requested
    changed = {
        info.spec.name: info.phase
        for info in world.cache.by_uid.values()
        if world.cache.step(info, NOW)
    }
    dropped = world.cache.drop("gone")
    waiting = world.cache.put(reservation("again", cpu="1", meta={"uid": "another"}))

    assert before == 4000
    assert changed == {"once": Phase.SUCCEEDED, "old": Phase.FAILED}
    assert dropped is not None
    assert waiting is not None
    assert world.requested == 1000


def test_a_binding_that_is_taken_back_leaves_the_reservation_pending() -> None:
    """Nothing is held, and the next attempt starts from the beginning."""
    world = World()
    reserve_pod = world.place(reservation("r", cpu="2"))
    info = world.cache.of(reserve_pod)
    assert info is not None
    world.cache.unplaced(info)

    assert (info.phase, info.node, info.row, world.requested) == (Phase.PENDING, "", -1, 0)
    world.cache.placed(reserve_pod, 0)
    assert (info.phase, info.node, world.requested) == (Phase.AVAILABLE, "n", 2000)


def test_a_reservation_survives_its_node_and_rebuilt_columns() -> None:
    """It holds nothing while the node is away, and the same again afterwards."""
    world = World()
    world.cache.put(reservation("r", on="n", cpu="2"))
    world.columns.drop("n")
    away = [list(world.cache.on(0)), world.cache.rows().tolist()]
    row = world.columns.put(nodes.decode(clusters.node("n")))
    world.cache.node_came("n")
    back = [info.spec.name for info in world.cache.on(row)]
    again = inventory.load([clusters.node("n")]).columns
    world.cache.rebase(again)

    assert away == [[], []]
    assert back == ["r"]
    assert int(again.requested[again.resources["cpu"], 0]) == 2000


def test_a_broken_edit_keeps_what_is_held_and_says_why() -> None:
    """A new object that cannot be read is kept apart, with its error as its condition."""
    world = World()
    world.place(reservation("r", cpu="2"))
    world.cache.put(reservation("r", cpu="2", ttl="soon"))
    world.cache.put(reservation("new", ttl="soon"))

    assert world.requested == 2000
    assert world.cache.messages["uid-r"].startswith("spec.ttl: not a duration")
    [condition] = world.cache.rejected["new"].status(NOW).conditions
    assert (condition.type, condition.status, condition.reason) == (
        "Scheduled",
        False,
        "Unschedulable",
    )
    assert condition.message.startswith("spec.ttl: not a duration")


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_kept_of_a_reservation_that_went(*, replaced: bool) -> None:
    """Neither that it is to be looked at, nor why it had no node: thousands come and go."""
    world = World()
    pod = world.cache.put(reservation("r", cpu="9"))
    assert pod is not None
    world.cache.failed(pod, "no room")
    if replaced:
        world.cache.put(reservation("r", cpu="9", meta={"uid": "another"}))
    world.cache.drop("r")

    assert (world.cache.touched, world.cache.messages, world.cache.by_uid) == (set(), {}, {})
