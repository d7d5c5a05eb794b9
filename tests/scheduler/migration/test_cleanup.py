"""What is forgotten of jobs that are over, and which reservations nobody holds any more."""

from __future__ import annotations

from koordlet.scheduler.migration import cleanup
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.room import JobReservation

NOW = 1_800_000_000.0
REF = PodRef("d", "web-1", "u-1")


def test_jobs_are_forgotten_and_failed_ones_kept_for_a_day() -> None:
    """At most a thousand of them, the newest."""

    def job(phase: Phase, age: float, ttl: float | None = 300.0) -> MigrationJob:
        status = JobStatus(phase=phase)
        return MigrationJob(
            name=f"{phase}-{age}", uid="", created=NOW - age, pod=REF, ttl=ttl, status=status
        )

    several = [
        job(Phase.SUCCEEDED, 500), job(Phase.SUCCEEDED, 1000), job(Phase.SUCCEEDED, 1000, None),
        job(Phase.RUNNING, 10**6), job(Phase.FAILED, 80_000), job(Phase.FAILED, 90_000),
    ]  # fmt: skip
    gone = [each.name for each in cleanup.forgotten(several, NOW)]
    assert gone == ["Succeeded-1000", "Failed-90000"]
    many = [job(Phase.FAILED, float(age)) for age in range(1003)]
    assert [each.created for each in cleanup.forgotten(many, NOW)] == [
        NOW - 1000,
        NOW - 1001,
        NOW - 1002,
    ]


def test_the_reservation_of_a_job_that_is_gone_is_deleted() -> None:
    """Those of others are left alone, whatever their name."""
    ours = JobReservation(name="a", uid="a", job="gone")
    used = JobReservation(name="b", uid="b", job="gone", owner=REF)
    theirs = JobReservation(name="c", uid="c")
    assert list(cleanup.leftovers({}, [ours, used, theirs])) == [ours]


def test_the_room_of_a_job_whose_replacement_went_elsewhere_stays_while_a_pod_is_to_come() -> None:
    """One that has an owner is in use."""
    status = JobStatus(phase=Phase.SUCCEEDED)
    over = {uid: MigrationJob(name=uid, uid=uid, pod=REF, status=status) for uid in ("a", "b")}
    free = JobReservation(name="a", uid="a", job="a")
    used = JobReservation(name="b", uid="b", job="b", owner=REF)
    assert list(cleanup.leftovers(over, [free, used], lambda _room: False)) == [free]
    assert list(cleanup.leftovers(over, [free, used], lambda _room: True)) == []
