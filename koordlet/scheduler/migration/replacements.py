"""Which job a replacement came for: each counts for one.

Covers: replacements that jobs name, rooms that wait for one. Does not cover: which pods may be
replacements (``flow``).

Several pods of one controller may leave at once, and each room is open to all that come instead. A
job's own status says which it has, once it is written; until then it is remembered here.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.scheduler.migration.job import JobStatus, MigrationJob
from koordlet.scheduler.objects.pods import Pod


class Replacements:
    """The replacements of the jobs of one cluster."""

    def __init__(self) -> None:
        self._jobs: Mapping[str, MigrationJob] = {}
        #: The UID of the job that a pod replaces the pod of, by its own.
        self._job_of: dict[str, str] = {}

    def see(self, jobs: Mapping[str, MigrationJob]) -> None:
        """Take in the jobs as they are now, by UID."""
        self._jobs = jobs
        under_way = {uid for uid, job in jobs.items() if job.active}
        # One that is over has written its own down, or never will.
        self._job_of = {pod: job for pod, job in self._job_of.items() if job in under_way}
        for job in jobs.values():
            self.name(job, job.status)

    def name(self, job: MigrationJob, status: JobStatus) -> None:
        """A job names its replacement, or is about to."""
        if status.pod is not None:
            self._job_of.setdefault(status.pod.uid, job.uid)

    def of_other(self, job: MigrationJob, pod: Pod) -> bool:
        """Whether a pod came for another job than this one."""
        # A room has the UID of its job as its name.
        other = self._jobs.get(pod.drawn_name)
        waits = other is not None and other.uid != job.uid and other.active
        return waits or self._job_of.get(pod.uid, job.uid) != job.uid
