"""A gang that waits gets room for all that it lacks, one member beside the other, or none."""

from __future__ import annotations

import random
from typing import Any

import pytest

from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import gang_room
from koordlet.scheduler.rescheduling.move_plan import PlanMove
from koordlet.scheduler.rescheduling.plan_check import MOVER, PlanCheck
from koordlet.scheduler.rescheduling.room_plan import PlannedMove, RoomPlan
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit import gangs
from tests.kit.descheduling import NOW, Body, node, pod
from tests.kit.room_scene import RATE, moves, rooms


def group(minimum: int, key: str = "") -> Body:
    """Gang ``k``; with a key of the topology its members share a domain."""
    constraints = {"topology": [{"key": key}]} if key else {}
    return gangs.own_group("k", minimum, schedulingConstraints=constraints)


def members(*cpus: str, on: str = "") -> list[Body]:
    """Members ``k0``, ``k1`` …, without a node, or on one."""
    more: dict[str, Any] = {"on": on} if on else {}
    prefix = "b" if on else "k"
    return [gangs.own(f"{prefix}{n}", "k", cpu=cpu, **more) for n, cpu in enumerate(cpus)]


def plan_for(*bodies: Body, name: str = "k0") -> RoomPlan | str:
    """The plan for a member and its gang, which may be made; the cluster is as before."""
    scene = LimitedDump(bodies, NOW)
    before = rooms(scene)
    wanted = waiting(scene, name)
    made = gang_room.find(scene.state, scene.limiter, MOVER, wanted)
    assert rooms(scene) == before
    if isinstance(made, RoomPlan):
        assert objection(scene, wanted, made) == ("", "")
        assert rooms(scene) == before
    return made


def waiting(scene: LimitedDump, name: str) -> Pod:
    """A member that waits, as the book of gangs knows it."""
    return next(
        entry.children[f"d/{name}"] for entry in scene.state.gangs if f"d/{name}" in entry.children
    )


def objection(scene: LimitedDump, wanted: Pod, made: RoomPlan, **other: str) -> tuple[str, str]:
    """What the check of a plan says of it; ``other``: nodes of members by name."""
    several = [
        PlanMove(PodRef("default", m.pod.name), m.origin, m.target, m.after, m.gang)
        for m in made.moves
    ]
    beside = [(each, other.get(each.name, name)) for each, name in made.members]
    check = PlanCheck(scene.state, scene.limiter)
    return check.objection(wanted, other.get(wanted.name, made.node), several, beside)


def places(made: RoomPlan | str) -> dict[str, str]:
    """The node of each other member."""
    assert isinstance(made, RoomPlan), made
    return {each.name: name for each, name in made.members}


def crowd(*targets: str) -> list[Body]:
    """Nodes of 4 CPUs, two with a pod of 2; and targets of 3, each with room for one of those."""
    return [
        *(node(name, cpu="4") for name in "abc"),
        *(node(name, cpu="3") for name in targets),
        pod("a0", "a", cpu="2"),
        pod("b0", "b", cpu="2"),
    ]


def test_all_that_a_gang_lacks_get_room_one_beside_the_other() -> None:
    """One fits as it is; the second mover does not go where the first has gone."""
    bodies = [*crowd("t", "u"), group(3), *members("4", "4", "4", "4")]
    made = plan_for(*bodies)
    assert moves(made) == [("a0", "a", "t"), ("b0", "b", "u")]
    assert isinstance(made, RoomPlan)
    # The first four by name, and no more than it lacks.
    assert (made.node, places(made)) == ("c", {"k1": "a", "k2": "b"})
    scene = LimitedDump(bodies, NOW)
    # A node with room for one of them is no place for two.
    assert objection(scene, waiting(scene, "k0"), made, k1="c")[0] == "NoRoom"
    # Whoever is asked for is among them.
    assert places(plan_for(*bodies, name="k3")).keys() == {"k0", "k1"}
    # Members on nodes count: two are lacking then, and one has to move.
    some = [*crowd("t", "u"), node("d"), group(3), *members("1", on="d"), *members("4", "4")]
    assert len(moves(plan_for(*some))) == 1


def test_half_a_gang_gets_no_room() -> None:
    """The second mover has no place: nothing is made for the member that would fit, either."""
    made = plan_for(*crowd("t"), group(3), *members("4", "4", "4"))
    assert isinstance(made, str)
    assert made.startswith("no room for 3 members of gang d/k: on no node are there at most 5 pods")


def test_a_gang_that_fits_as_it_is_gets_no_plan() -> None:
    """It waits for something else."""
    made = plan_for(*crowd("t"), group(2), *members("4", "2"))
    assert made == "d/k0 and what its gang lacks fit as they are"


def test_what_the_moves_for_a_member_free_is_its_own() -> None:
    """The second mover would fit beside the first member, whose place holds all that was freed."""
    bodies = [
        node("a", cpu="6"),
        node("b", cpu="4"),
        node("t", cpu="3"),
        pod("a0", "a", cpu="3"),
        pod("b0", "b", cpu="2"),
        group(2),
        *members("4", "4"),
    ]
    assert isinstance(plan_for(*bodies), str)
    made = plan_for(*bodies, node("u", cpu="2"))
    assert moves(made) == [("a0", "a", "t"), ("b0", "b", "u")]
    # Nor does another member: the place of the first holds what the pod has left, and not half.
    rack = node("a", cpu="8", labels={"rack": "x"})
    large = [rack, node("t", cpu="5"), pod("a0", "a", cpu="5"), group(2, "rack")]
    assert isinstance(plan_for(*large, *members("4", "4")), str)
    scene = LimitedDump([*large, *members("4", "4")], NOW)
    wanted, other = waiting(scene, "k0"), waiting(scene, "k1")
    move = PlannedMove(scene.state.residents(0)[0].pod, "a", "t", 1.0, None)
    both = RoomPlan("a", (move,), ((other, "a"),))
    assert objection(scene, wanted, both)[0] == "NoRoom"


def racks(*more: Body) -> list[Body]:
    """In rack x one member fits and one does not, however many move; in rack y two moves help."""
    bodies = [
        *(node(name, cpu="4", labels={"rack": name[0]}) for name in ("x0", "x1", "y0", "y1")),
        *(node(name, cpu="3") for name in ("t", "u")),
        pod("x1-0", "x1", cpu="2", annotations={"koordlet.io/movable": "false"}),
        pod("y0-0", "y0", cpu="2"),
        pod("y1-0", "y1", cpu="2"),
    ]
    return [*bodies, *more]


def test_all_members_get_room_in_the_domain_where_all_have_it() -> None:
    """Half of it would cost less elsewhere."""
    waits = members("4", "4")
    made = plan_for(*racks(), group(2, "rack"), *waits)
    assert [origin for _, origin, _ in moves(made)] == ["y0", "y1"]
    assert (isinstance(made, RoomPlan) and made.node, places(made)) == ("y0", {"k1": "y1"})
    # Without a key one fits as it is, and one move is enough.
    assert len(moves(plan_for(*racks(), group(2), *waits))) == 1
    # Of two domains the one that costs less, whatever its name.
    third = [node(name, cpu="4", labels={"rack": "z"}) for name in ("z0", "z1")]
    made = plan_for(*racks(*third, pod("z1-0", "z1", cpu="2")), group(2, "rack"), *waits)
    assert moves(made)[0][:2] == ("z1-0", "z1")
    assert len(moves(made)) == 1
    # Where members are in a domain, the others come there, or nowhere.
    there = node("x9", cpu="1", labels={"rack": "x"})
    stuck = plan_for(*racks(there), group(3, "rack"), *members("1", on="x9"), *waits)
    assert isinstance(stuck, str)


def test_places_in_two_domains_or_of_strangers_help_no_gang() -> None:
    """A plan by hand is checked as one that was found."""
    scene = LimitedDump([*racks(), group(2, "rack"), *members("4", "4")], NOW)
    wanted = waiting(scene, "k0")
    made = gang_room.find(scene.state, scene.limiter, MOVER, wanted)
    assert isinstance(made, RoomPlan)
    reason, why = objection(scene, wanted, made, k1="x0")
    assert (reason, why) == ("GangStays", "no move helps d/k0: rack would be x and y")
    assert objection(scene, wanted, made, k1="y0")[0] == "NoRoom"
    alone = RoomPlan(made.node, made.moves)
    assert objection(scene, wanted, alone)[1] == "no move helps d/k0: its gang d/k lacks 2 members"
    stranger = RoomPlan(made.node, made.moves, ((made.moves[0].pod, "y1"),))
    assert objection(scene, wanted, stranger)[1].endswith("default/y0-0 is not of its gang")


def test_budgets_are_asked_for_the_moves_of_all_members() -> None:
    """One disruption in an hour is enough for one member and not for two."""
    bodies = [*crowd("t", "u"), RATE]
    assert len(moves(plan_for(*bodies, group(2), *members("4", "4")))) == 1
    assert isinstance(plan_for(*bodies, group(3), *members("4", "4", "4")), str)


@pytest.mark.parametrize(
    ("bodies", "why"),
    [
        ([group(3), *members("4", "4")], "its gang lacks 3 members, and 2 of them are there"),
        ([group(40), *members(*["4"] * 40)], "its gang lacks 40 members, and a plan is for 32"),
        (
            [
                gangs.pod_group("k", 2, groups=["d/k", "d/other"]),
                gangs.pod_group("other", 1, groups=["d/k", "d/other"]),
                *(gangs.labelled(name, "k", cpu="4") for name in ("k0", "k1")),
            ],
            "its gang waits together with gang d/other",
        ),
    ],
)
def test_no_room_is_made_that_a_gang_could_not_take(bodies: list[Body], why: str) -> None:
    """The reason names what is lacking."""
    made = plan_for(*crowd("t", "u"), *bodies)
    assert isinstance(made, str)
    assert made.startswith(f"no move helps d/k0: {why}")


def test_each_plan_that_is_found_may_be_made() -> None:
    """Random clusters: the check, which looks at all places at once, objects to none."""
    choose, long = random.Random(5), 0
    for _ in range(60):
        nodes = {f"n{n}": choose.choice((4, 6, 8)) for n in range(6)}
        bodies = [
            node(name, cpu=str(cpus), labels={"rack": choose.choice("xy")}, pods=20)
            for name, cpus in nodes.items()
        ]
        for name in nodes:
            several = [choose.randint(1, 2) for _ in range(choose.randint(1, 3))]
            bodies += [
                pod(f"{name}-{number}", name, cpu=str(size), owner=f"ReplicaSet/{name}")
                for number, size in enumerate(several[: nodes[name] // 2])
            ]
        sizes = [str(choose.randint(4, 6)) for _ in range(choose.randint(2, 3))]
        made = plan_for(*bodies, group(len(sizes), choose.choice(("", "rack"))), *members(*sizes))
        long += isinstance(made, RoomPlan) and len(made.moves) > 1
    assert long > 5
