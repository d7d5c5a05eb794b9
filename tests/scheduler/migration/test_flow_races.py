"""The life of a job beside others: watches that are late, siblings, an owner that changes."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.scheduler.migration import flow
from koordlet.scheduler.migration.job import Phase
from koordlet.scheduler.objects.eviction_marks import Leaving
from koordlet.scheduler.objects.pods import OwnerReference
from koordlet.scheduler.reservation.spec import Phase as ReservationPhase
from tests.scheduler.migration.test_flow import REFERENCES, Cluster, pod


@pytest.mark.parametrize("drawn", ["", "somebody's"])
def test_a_replacement_that_was_placed_elsewhere_ends_the_job(drawn: str) -> None:
    """Nobody took the room of the job. It may have a Reservation that has nothing to do with jobs.

    A pod that came for another job does not count.
    """
    cluster = Cluster()
    cluster.replaces = False
    while cluster.job.status.status != flow.BOUND:
        cluster.step()
        cluster.turn()
    other = pod("other", "u-3", on="n3", at=cluster.now, up=True)
    cluster.others = {"u-3"}
    cluster.pods |= {"other": other, "web-9": pod("web-9", "u-2", on="n3", at=cluster.now)}
    cluster.play(3)
    assert cluster.job.active
    cluster.pods["web-9"] = pod("web-9", "u-2", on="n3", at=cluster.now, up=True)
    cluster.pods["web-9"].draws_on = drawn
    ended = cluster.play(3)
    assert ended.status.phase is Phase.SUCCEEDED
    assert ended.status.message == 'Pod "d/web-9" is ready on node "n3"'


@pytest.mark.parametrize("ends", [1, 350])
def test_a_replacement_elsewhere_that_takes_long_to_be_ready_ends_the_job(ends: int) -> None:
    """The room is opened anew meanwhile, for longer: who came after the first time still came."""
    cluster = Cluster()
    cluster.replaces = False
    while not cluster.evicted:
        cluster.step()
        cluster.turn()
    ending = cluster.pods["web-1"] = pod("web-1", "u-1", on="n1")
    ending.terminating = True
    slow = cluster.pods["web-2"] = pod("web-2", "u-2", on="n3", at=cluster.now)
    for second in range(400):
        cluster.step()
        cluster.now += 1
        if second == ends:
            del cluster.pods["web-1"]
    slow.ready = True
    assert cluster.play(3).status.phase is Phase.SUCCEEDED


def test_a_replacement_that_came_before_the_room_of_a_deleted_pod_was_open_ends_the_job() -> None:
    """A user was faster than the scheduler: the pod ends, and the next one waits for the room."""
    cluster = Cluster()
    cluster.replaces = cluster.evicts = cluster.places = False
    cluster.play(3)
    cluster.pods["web-1"].terminating = True
    cluster.pods["web-1"].leaving = Leaving("", "", cluster.now)
    cluster.pods["web-2"] = pod("web-2", "u-2", at=cluster.now)
    cluster.now += 5
    room = dataclasses.replace(cluster.rooms["j-1"], node="n2", phase=ReservationPhase.AVAILABLE)
    cluster.rooms["j-1"] = room
    while cluster.rooms["j-1"].closed:
        cluster.step()
        cluster.now += 1
    cluster.replaces = True
    assert cluster.play(10).status.phase is Phase.SUCCEEDED


def test_nobody_is_evicted_before_the_watch_shows_that_the_room_is_open() -> None:
    """The replacement comes a moment later, and must find it open."""
    cluster = Cluster()
    while not cluster.rooms or cluster.rooms["j-1"].closed:
        assert cluster.evicted == []
        cluster.step()
        cluster.turn()
    # Of the step that opened it, nothing else was done.
    assert cluster.evicted == []
    cluster.play(3)
    assert cluster.evicted == ["u-1"]


def test_sibling_created_in_the_second_of_the_opening_is_no_replacement() -> None:
    """It was up before; who is evicted in a later second has its replacement later."""
    cluster = Cluster()
    cluster.replaces = False
    for _ in range(20):
        cluster.step()
        if "j-1" in cluster.rooms and (opened := cluster.rooms["j-1"].opened):
            cluster.pods.setdefault("old", pod("old", "u-0", on="n3", at=opened, up=True))
        cluster.turn()
    assert (cluster.job.active, cluster.evicted) == (True, ["u-1"])
    assert cluster.job.status.reason == "WaitForPodBindReservation"


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize(
    "references",
    [
        (),
        (dataclasses.replace(REFERENCES[0], controller=False),),
        (dataclasses.replace(REFERENCES[0], name="next"),),
    ],
)
def test_a_pod_whose_owner_changes_stays_and_its_room_is_given_back(
    references: tuple[OwnerReference, ...], *, asked: bool
) -> None:
    """Orphaned or adopted: nothing that comes instead may use the room of the old owner.

    ``asked``: a budget has refused the eviction until then.
    """
    cluster = Cluster()
    cluster.evicts = False
    cluster.play(5 if asked else 1)
    assert bool(cluster.job.status.condition(flow.EVICTION)) == asked
    assert cluster.rooms["j-1"].node == "n2"
    there = cluster.pods["web-1"]
    there.pod_class = dataclasses.replace(there.pod_class, references=references)
    cluster.evicts = True
    ended = cluster.play(5)
    assert (ended.status.phase, ended.status.reason) == (Phase.FAILED, "ForbiddenMigratePod")
    why = 'what replaces it may not use Reservation "j-1"'
    assert ended.status.message == f'Pod "d/web-1" has lost or changed its owner: {why}'
    assert (cluster.evicted, cluster.rooms) == ([], {})
