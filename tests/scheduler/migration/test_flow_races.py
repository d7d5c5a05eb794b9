"""The life of a job where one watch is behind another: room that a scheduler learns of late."""

from __future__ import annotations

from koordlet.scheduler.migration import flow
from koordlet.scheduler.migration.job import Phase
from tests.scheduler.migration.test_flow import Cluster, pod


def test_a_replacement_that_was_placed_before_the_scheduler_knew_of_its_room_ends_the_job() -> None:
    """Nobody took the reservation. One that draws on another came for somebody else."""
    cluster = Cluster()
    cluster.replaces = False
    while cluster.job.status.status != flow.BOUND:
        cluster.step()
        cluster.turn()
    other = pod("other", "u-3", on="n3", at=cluster.now, up=True)
    other.draws_on = "of-another-job"
    cluster.pods |= {"other": other, "web-9": pod("web-9", "u-2", on="n3", at=cluster.now)}
    cluster.play(3)
    assert cluster.job.active
    cluster.pods["web-9"] = pod("web-9", "u-2", on="n3", at=cluster.now, up=True)
    ended = cluster.play(3)
    assert ended.status.phase is Phase.SUCCEEDED
    assert ended.status.message == 'Pod "d/web-9" is ready on node "n3"'


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
