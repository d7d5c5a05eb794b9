"""Who leaves together: a pod that its gang needs, with all of it, each with a place of its own."""

from __future__ import annotations

from koordlet.kubeapi import kinds, pod_groups
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.rescheduling import move_unit, plan_check, room_ahead
from koordlet.scheduler.rescheduling.move_unit import MoveUnit
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit import gangs
from tests.kit.descheduling import NOW, node, pod
from tests.kit.room_scene import rooms
from tests.scheduler.rescheduling.test_plan_check import ganged


def scene(minimum: int, members: int) -> LimitedDump:
    """Members of gang ``g`` on node a, and as many free CPUs on nodes b and c."""
    group = gangs.pod_group("g", minimum, namespace="default")
    labels = {pod_groups.POD_GROUP: "g"}
    bodies = [node("a", cpu=str(members), pods=100), node("b", cpu="1"), node("c", cpu="1"), group]
    bodies += [pod(f"g{n:02}", "a", cpu="1", labels=labels) for n in range(members)]
    return LimitedDump(bodies, NOW)


def unit(known: LimitedDump, name: str) -> MoveUnit | str:
    """Who moves with a pod of node a."""
    several = known.state.residents(known.state.columns.rows["a"])
    return move_unit.unit(known.state, next(each for each in several if each.pod.name == name))


def test_all_members_on_nodes_go_with_one_that_their_gang_needs() -> None:
    """In the order of their names; beyond the minimum one goes alone."""
    whole = unit(scene(2, 2), "g01")
    assert isinstance(whole, MoveUnit)
    assert ([each.name for each in whole.pods], whole.gang) == (["g00", "g01"], "default/g")
    alone = unit(scene(1, 2), "g01")
    assert isinstance(alone, MoveUnit)
    assert ([each.name for each in alone.pods], alone.gang, alone.free) == (["g01"], "", True)


def test_a_gang_that_no_plan_could_take_stays() -> None:
    """It has more members than a plan has moves."""
    count = kinds.MOST_MOVES + 1
    why = unit(scene(count, count), "g00")
    assert why == (
        f"gang default/g: {count} members are on nodes, and a plan moves {kinds.MOST_MOVES} pods at"
        " most"
    )


def test_a_member_that_is_being_bound_stays_and_the_search_for_moves_goes_on() -> None:
    """It has room, and the store does not show it yet."""
    known = scene(2, 2)
    (member, *_) = known.state.residents(known.state.columns.rows["a"])
    entry = known.state.gangs.of(member.pod)
    assert entry is not None
    entry.bound.clear()
    assert unit(known, "g00") == "gang default/g: its member default/g00 is being bound"
    room = {"cpu": 2000}
    made = room_ahead.find(known.state, known.limiter, plan_check.STARTED, None, room)
    assert str(made).startswith("on no node are there at most 5 pods that may move")


def test_moves_of_a_gang_are_one_place_and_all_others_their_own() -> None:
    """At the place of the first of them."""
    assert move_unit.places(["", "g", "", "h", "g"]) == [(0,), (1, 4), (2,), (3,)]


def test_pods_depart_only_with_room_for_each_while_all_the_others_stay() -> None:
    """Where one has none the cluster is as before."""
    known = ganged(3)
    landing, whole, before = Landing(known.state), unit(known, "g0"), rooms(known)
    assert isinstance(whole, MoveUnit)
    a, c, d = (known.state.columns.rows[name] for name in "acd")

    def into(*rows: int) -> list[int]:
        several = iter(rows)

        def choose(resident: Resident) -> int:
            row = next(several)
            return row if landing.fits(resident, row) else -1

        return move_unit.depart(landing, whole, choose)

    assert into(c, c, c) == [c, c]
    # Node a will be empty, but is not yet.
    assert into(c, c, a) == [c, c]
    assert rooms(known) == before
    assert into(c, c, d) == [c, c, d]
    assert known.state.residents(a) == []
    landing.take_back(3)
    assert rooms(known) == before
