"""What migration jobs leave behind: reservations that nobody will use, jobs long over.

Covers: finding them, at any time, of what is there. Does not cover: deleting them
(``loop.migration_leftovers``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from koordlet.scheduler.migration import flow, room
from koordlet.scheduler.migration.job import MigrationJob, Phase
from koordlet.scheduler.migration.room import JobReservation

#: A job that is over is deleted so long after its end at the latest: with a ttl, and without.
_AFTER_TTL, _WITHOUT_TTL = 300.0, 1800.0
#: Failed ones are kept for whoever asks why.
HISTORY, MOST_HISTORY = 24 * 3600.0, 1000


def leftovers(
    jobs: Mapping[str, MigrationJob],
    rooms: Iterable[JobReservation],
    is_awaited: Callable[[JobReservation], bool] = lambda _room: False,
) -> Iterator[JobReservation]:
    """Reservations that nobody will use: their job is gone, or ended and nobody is to come.

    ``jobs``: by UID. That of a job that evicted its pod and failed stays until its own time is
    over; that of one whose replacement went elsewhere as long as another pod is to come.
    """
    for held in rooms:
        job = jobs.get(held.name)
        if not held.job or not held.leftover:
            continue
        if job is None or (
            not held.phase.over
            and (
                job.status.phase is Phase.ABORTED
                or (job.status.phase is Phase.SUCCEEDED and not is_awaited(held))
                or (job.status.phase is Phase.FAILED and not has_evicted(job))
            )
        ):
            yield held


def has_evicted(job: MigrationJob) -> bool:
    """Whether the pod of a job is gone by its eviction."""
    condition = job.status.condition(flow.EVICTION)
    return condition is not None and condition.status


def forgotten(jobs: Iterable[MigrationJob], now: float) -> Iterator[MigrationJob]:
    """Jobs that were over long enough ago; of the failed ones the newest are kept for a day."""
    failed = []
    for job in jobs:
        if job.active:
            continue
        if job.status.phase is Phase.FAILED and now - job.created < HISTORY:
            failed.append(job)
            continue
        after = _WITHOUT_TTL if job.ttl is None else job.ttl + _AFTER_TTL
        if now - job.created >= max(after, room.GIVEN):
            yield job
    failed.sort(key=lambda job: job.created, reverse=True)
    yield from failed[MOST_HISTORY:]
