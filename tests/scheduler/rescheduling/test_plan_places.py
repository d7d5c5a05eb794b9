"""All members of a gang have their places before anybody moves, and none is left over for half."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.rescheduling import plan_flow, plan_places, plan_step
from koordlet.scheduler.rescheduling.move_plan import MovePlan, PlanPlace
from koordlet.scheduler.rescheduling.plan_status import PlanPhase
from koordlet.scheduler.rescheduling.plan_step import PlanPicture
from koordlet.scheduler.reservation.spec import Phase as RoomPhase
from tests.scheduler.migration.test_flow import Killed, pod
from tests.scheduler.rescheduling.test_plan_flow import BIG, MOVES, Cluster, plan, started

MEMBERS = tuple(PlanPlace(PodRef("d", f"k{n}", f"u-k{n}"), f"f{n}") for n in (1, 2))
NAMES = ("big", "k1", "k2")


class Ganged(Cluster):
    """The pod is of a gang of three, of whom two fit as they are: all are bound, or nobody."""

    def __init__(self, **killed: int | bool) -> None:
        super().__init__(plan(members=MEMBERS), **killed)  # type: ignore[arg-type]
        self.pods |= {place.pod.name: pod(place.pod.name, place.pod.uid) for place in MEMBERS}
        self.places: dict[str, JobReservation] = {}
        #: Places for which there is no room.
        self.full: set[int] = set()

    def picture(self) -> PlanPicture:
        """What the plan sees."""
        return dataclasses.replace(super().picture(), room=self.places.get)

    def _act(self, action: plan_step.Action) -> None:
        match action:
            case plan_step.HoldPlace(number):
                name, node = plan_places.name(self.plan, number), self.plan.places[number].node
                node = "" if number in self.full else node
                self.places.setdefault(name, JobReservation(name=name, uid=name, node=node))
                self.log.append(f"hold {number}")
            case plan_step.DropPlace(held):
                self.places.pop(held.name, None)
            case _:
                super()._act(action)

    def happen(self) -> None:
        """The scheduler binds the gang once each member has its place, one after the other."""
        super().happen()
        left = [move for move in MOVES if move.pod.name in self.pods]
        whole = len(self.places) == 3 or any(self.pods[n].node for n in NAMES if n in self.pods)
        if left or not whole or not self.pods.keys() >= set(NAMES):
            return
        for number, place in enumerate(self.plan.places):
            held = self.places.get(plan_places.name(self.plan, number))
            if held is not None and not held.phase.over:
                member = self.pods[place.pod.name]
                self.pods[place.pod.name] = dataclasses.replace(member, node=place.node)
                used = dataclasses.replace(held, owner=place.pod, phase=RoomPhase.SUCCEEDED)
                self.places[held.name] = used
                return

    def nodes(self) -> list[str]:
        """Where the members are."""
        return [self.pods[name].node for name in NAMES]


def test_no_pod_leaves_before_each_member_has_its_place_and_it_ends_when_all_are_bound() -> None:
    """The places of the others are held where they fit, and each has a name of its own."""
    cluster = Ganged()
    over = cluster.run()
    assert set(cluster.log[:6]) == {
        *("job p0", "job p1", "job p2", "hold 0", "hold 1", "hold 2"),
    }
    assert sorted(cluster.places) == ["plan-u", "plan-u-1", "plan-u-2"]
    assert (over.status.phase, over.status.message) == (
        *(PlanPhase.DONE, "d/big and 2 more of its gang have nodes n1, f1, f2"),
    )
    assert cluster.nodes() == ["n1", "f1", "f2"]


def test_without_a_place_for_one_member_nobody_leaves_and_the_others_are_given_back() -> None:
    """The message names the member."""
    cluster = Ganged()
    cluster.full = {2}
    over = cluster.run()
    assert (over.status.phase, over.status.reason) == (PlanPhase.FAILED, "NoRoom")
    assert "d/k2: no place on node f2 yet" in over.status.message
    assert started(cluster)()
    assert cluster.places == {}


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_write_all_are_bound_in_the_end(after: bool) -> None:
    """No place is held twice, and none is left."""
    whole = Ganged()
    whole.run()
    for kill in range(whole.writes):
        cluster = Ganged(kill=kill, after=after)
        assert cluster.run().status.phase is PlanPhase.DONE
        assert cluster.nodes() == ["n1", "f1", "f2"]
        assert {held.phase for held in cluster.places.values()} == {RoomPhase.SUCCEEDED}


def test_ended_at_any_write_it_keeps_no_place_that_nobody_has() -> None:
    """What its members have taken is theirs; who has left goes on until the replacement is up."""
    whole, kept = Ganged(), set()
    whole.run()
    for ended in range(whole.writes):
        cluster = Ganged(kill=ended, after=True)
        try:
            while True:
                cluster.step()
                cluster.happen()
        except Killed:
            cluster.plan = dataclasses.replace(cluster.plan, aborts=True)
        cluster.run()
        kept.add(sum(held.owner is not None for held in cluster.places.values()))
        assert all(held.owner is not None for held in cluster.places.values())
        actions = plan_flow.step(cluster.plan, cluster.picture(), cluster.now).actions
        assert actions == ()
    assert 0 in kept


@pytest.mark.parametrize(
    ("name", "change", "phase", "reason"),
    [
        ("k1", None, PlanPhase.FAILED, "BeneficiaryGone"),
        ("k1", {"uid": "another"}, PlanPhase.FAILED, "BeneficiaryGone"),
        ("k2", {"node": "n9"}, PlanPhase.ABORTED, "NotNeeded"),
    ],
)
def test_it_ends_when_a_member_is_gone_or_elsewhere(
    name: str, change: dict[str, str] | None, phase: PlanPhase, reason: str
) -> None:
    """Room for the rest of the gang is of no use; all of it is given back."""
    cluster = Ganged()
    cluster.run(started(cluster, "p0"))
    member = cluster.pods.pop(name)
    if change is not None:
        cluster.pods[name] = dataclasses.replace(member, **change)  # type: ignore[arg-type]
    over = cluster.run()
    assert (over.status.phase, over.status.reason) == (phase, reason)
    assert (cluster.places, started(cluster, "p0")()) == ({}, True)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("expired", [False, True])
def test_nobody_moves_once_a_place_is_gone(number: int, *, expired: bool) -> None:
    """The rest would move in vain. What a member draws on is no loss, though its node is late."""
    cluster = Ganged()
    cluster.run(started(cluster, "p0"))
    name, ref = plan_places.name(cluster.plan, number), cluster.plan.places[number].pod
    held = cluster.places.pop(name)
    if expired:
        cluster.places[name] = dataclasses.replace(held, phase=RoomPhase.FAILED)
    over = cluster.run()
    assert (over.status.phase, over.status.reason) == (PlanPhase.FAILED, "PlaceGone")
    assert over.status.message.startswith(f"{ref} has no place on node")
    assert started(cluster, "p0")()
    assert all(each.phase.over for each in cluster.places.values())
    drawn = dataclasses.replace(held, phase=RoomPhase.SUCCEEDED, owner=ref)
    cluster.places = {plan_places.name(cluster.plan, n): drawn for n in range(3) if n == number}
    assert ref.name not in plan_places.lost(cluster.plan, cluster.picture())


@pytest.mark.parametrize("place", MEMBERS)
def test_a_member_that_is_bound_before_the_others_ends_nothing(place: PlanPlace) -> None:
    """They are bound one after the other; before the plan began it is not needed any more."""
    name = place.pod.name
    cluster = Ganged()
    cluster.run(started(cluster, "p0"))
    cluster.pods[name] = dataclasses.replace(cluster.pods[name], node=place.node)
    assert plan_places.over(cluster.plan, cluster.picture()) is None
    fresh = MovePlan(name="p", uid="u", pod=BIG, node="n1", members=MEMBERS)
    over = plan_places.over(fresh, cluster.picture())
    why = f"pod {place.pod} has node {place.node} already"
    assert over == (PlanPhase.ABORTED, "NotNeeded", why)
