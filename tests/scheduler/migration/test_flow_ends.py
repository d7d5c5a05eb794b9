"""How jobs end that find no room, lose it, or are about a pod that waits for a node itself."""

from __future__ import annotations

import pytest

from koordlet.model import moment
from koordlet.scheduler.migration import flow, job, room
from koordlet.scheduler.migration.flow import Step
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.picture import Picture
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.spec import Condition, OwnerPattern, ReservationOwner
from koordlet.scheduler.reservation.spec import Phase as ReservationPhase
from tests.scheduler.migration.test_flow import NOW, OWNERS, REF, pod

SCHEDULED = {"type": "Scheduled", "status": "True", "reason": "Scheduled"}
UNPLACED = {
    "type": "Scheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes",
}  # fmt: skip
TEMPLATE = {"spec": {"containers": [{"name": "c"}]}}
EXPIRED = {"type": "Ready", "status": "False", "reason": "Expired"}


def running(status: JobStatus | None = None) -> MigrationJob:
    """A job whose reservation was made long ago."""
    made = Condition(type=flow.CREATED, status=True, reason="", changed=moment.spell(NOW - 60))
    usual = JobStatus(phase=Phase.RUNNING, conditions=(made,))
    return MigrationJob(
        name="j", uid="j-1", created=NOW - 60, pod=REF, reservation="j-1", status=status or usual
    )


def step(known: MigrationJob, held: JobReservation | None, there: Pod | None) -> Step:
    """What becomes of it."""
    picture = Picture(
        pod=lambda _ref: there, room=lambda _name: held, members=lambda _controller: ()
    )
    return flow.step(known, picture, NOW)


@pytest.mark.parametrize(
    ("conditions", "reason", "message"),
    [
        # It was placed nowhere, and its time is not over.
        ([UNPLACED], "Unschedulable", "0/3 nodes"),
        ([UNPLACED, EXPIRED], "ReservationExpired", "Reservation expired"),
        ([SCHEDULED, EXPIRED], "ReservationExpired", "Reservation expired"),
        ([EXPIRED], "ReservationExpired", "Reservation expired"),
        ([], "ReservationExpired", "Reservation expired"),
    ],
)
def test_a_reservation_that_failed_ends_the_job_with_what_it_says(
    conditions: list[dict[str, str]], reason: str, message: str
) -> None:
    """As the object has it: its phase alone does not tell."""
    body = {
        "metadata": {"name": "j-1", "uid": "r-1", "annotations": {room.JOB: "j"}},
        "spec": {"template": TEMPLATE, "owners": [{"object": {"name": "web-1"}}]},
        "status": {"phase": "Failed", "conditions": conditions},
    }
    ended = step(running(), room.read(body), pod("web-1", "u-1", on="n1")).status
    assert (ended.phase, ended.reason, ended.message) == (Phase.FAILED, reason, message)


def test_room_that_another_pod_has_forbids_the_job() -> None:
    """Nobody is evicted: of the eviction the job says nothing."""
    held = JobReservation(
        name="j-1", uid="r-1", job="j", node="n2", owners=OWNERS,
        phase=ReservationPhase.SUCCEEDED, owner=PodRef("d", "other", "u-9"),
    )  # fmt: skip
    ended = step(running(), held, pod("web-1", "u-1", on="n1")).status
    assert (ended.phase, ended.reason) == (Phase.FAILED, "ForbiddenMigratePod")
    assert ended.message == "Reservation is already bound by another Pod"
    assert (ended.status, ended.node) == (flow.SCHEDULED, "n2")
    assert ended.condition(flow.EVICTION) is None


def test_the_job_of_a_pod_that_waits_says_so_and_ends_when_it_has_a_node() -> None:
    """Room is for the pod itself; one that leaves ends the job."""
    owners = (ReservationOwner(object=OwnerPattern("d", name="web-1", kind="Pod", uid="u-1")),)
    held = JobReservation(
        name="j-1", uid="r-1", job="j", node="n2", owners=owners,
        phase=ReservationPhase.AVAILABLE,
    )  # fmt: skip
    waiting = step(running(), held, pod("web-1", "u-1")).status
    condition = waiting.condition("PodScheduled")
    assert condition is not None
    assert (condition.status, condition.reason) == (False, "Unschedulable")
    assert (waiting.phase, waiting.status) == (Phase.RUNNING, "PodScheduled")
    ended = step(running(waiting), held, pod("web-1", "u-1", on="n2")).status
    assert (ended.phase, ended.status, ended.reason) == (Phase.SUCCEEDED, "Complete", "")
    condition = ended.condition("PodScheduled")
    assert condition is not None
    assert (condition.status, condition.reason) == (True, "")
    gone = step(running(waiting), held, None).status
    assert (gone.phase, gone.reason) == (Phase.FAILED, "MissingPod")


@pytest.mark.parametrize(
    ("mode", "usual", "reserves"),
    [
        ("", "ReservationFirst", True),
        ("", "EvictDirectly", False),
        ("ReservationFirst", "EvictDirectly", True),
        ("EvictDirectly", "ReservationFirst", False),
    ],
)
def test_a_job_without_a_mode_goes_as_is_configured(
    mode: str, usual: str, *, reserves: bool
) -> None:
    """The peer's ``defaultJobMode`` holds for jobs made by hand, too."""
    spec = {"podRef": REF.body(), **({"mode": mode} if mode else {})}
    body = {"metadata": {"name": "j", "uid": "j-1"}, "spec": spec}
    assert job.read(body, usual).reserves is reserves


def test_a_replacement_that_is_gone_again_is_no_success() -> None:
    """The job waits for the next one."""
    held = JobReservation(
        name="j-1", uid="r-1", job="j", node="n2", owners=OWNERS, opened=NOW - 30,
        phase=ReservationPhase.SUCCEEDED, owner=PodRef("d", "web-2", "u-2"),
    )  # fmt: skip
    left = Condition(
        type=flow.EVICTION, status=True, reason="EvictComplete", changed=moment.spell(NOW - 20)
    )
    status = JobStatus(phase=Phase.RUNNING, conditions=(left,), node="n2")
    waits = step(running(status), held, None).status
    assert (waits.phase, waits.status) == (Phase.RUNNING, flow.BOUND)
    assert waits.reason == "WaitForPodBindReservation"


@pytest.mark.parametrize(
    ("since", "awaited", "owner", "phase"),
    [
        (20, False, None, Phase.SUCCEEDED),
        (20, True, None, Phase.RUNNING),
        # One watch may be behind the other.
        (2, False, None, Phase.RUNNING),
        (20, False, PodRef("d", "web-2", "u-2"), Phase.SUCCEEDED),
        (20, True, PodRef("d", "web-2", "u-2"), Phase.RUNNING),
    ],
)
def test_a_job_whose_workload_was_scaled_in_after_the_eviction_is_over(
    since: float, owner: PodRef | None, phase: Phase, *, awaited: bool
) -> None:
    """Nothing comes instead, whoever took the room: ten minutes would be waited in vain."""
    held = JobReservation(
        name="j-1", uid="r-1", job="j", node="n2", owners=OWNERS, opened=NOW - 30, owner=owner,
        phase=ReservationPhase.AVAILABLE, expires=NOW + 870,
    )  # fmt: skip
    left = Condition(
        type=flow.EVICTION, status=True, reason="EvictComplete", changed=moment.spell(NOW - since)
    )
    picture = Picture(
        pod=lambda _ref: None, room=lambda _name: held, members=lambda _controller: (),
        awaited=lambda _room: awaited,
    )  # fmt: skip
    known = running(JobStatus(phase=Phase.RUNNING, conditions=(left,), node="n2"))
    ended = flow.step(known, picture, NOW).status
    assert ended.phase is phase
    if phase is Phase.SUCCEEDED:
        assert (ended.status, ended.reason, ended.pod) == ("Complete", "", None)
        assert ended.message == (
            'Pod "d/web-1" has been evicted: its controller wants no other pod instead'
        )


@pytest.mark.parametrize("terminating", [False, True])
def test_a_refused_eviction_is_told_until_the_pod_goes(*, terminating: bool) -> None:
    """Whoever else deletes it: what the server once refused says nothing any more."""
    held = JobReservation(
        name="j-1", uid="r-1", job="j", node="n2", owners=OWNERS, opened=NOW - 30,
        phase=ReservationPhase.AVAILABLE, expires=NOW + 870,
    )  # fmt: skip
    there = pod("web-1", "u-1", on="n1")
    there.terminating = terminating
    picture = Picture(
        pod=lambda _ref: there, room=lambda _name: held, members=lambda _controller: (),
        refusals={"j-1": "PDB: not now"},
    )  # fmt: skip
    made = flow.step(running(), picture, NOW)
    condition = made.status.condition(flow.EVICTION)
    assert condition is not None
    reason = "Evicting" if terminating else "FailedEvict"
    assert (condition.reason, condition.message == "PDB: not now") == (reason, not terminating)
    assert made.actions == (() if terminating else (flow.EvictPod(there),))
