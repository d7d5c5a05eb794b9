"""What is remembered of migration jobs while they are carried out, and may be lost.

Covers: writes that the watch has yet to show, when the next action is due, what a job's pod is
like. Pure. Does not cover: jobs themselves (``migration.job``), reading pods
(``migration_controller``).
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling.traits import PodTraits
from koordlet.scheduler.migration.job import MigrationJob
from koordlet.scheduler.objects.pods import Pod

#: Pods that are asked about at one look: the jobs under way wait meanwhile.
_ASKED = 100


@dataclass(slots=True)
class JobMemory:
    """What is remembered of a job, and may be lost."""

    #: Written from this revision: the watch has yet to show what became of it.
    stale: str = ""
    #: Monotonic; no action before.
    next: float = 0.0
    refusal: str = ""
    traits: PodTraits | None = None
    #: What protects its pod, as far as that was asked.
    protection: str = ""

    def pause(self, until: float, refusal: str) -> None:
        """Nothing is tried before."""
        self.next, self.refusal = until, refusal

    def written(self, revision: str) -> None:
        """What was decided on is the past."""
        self.stale = revision

    def knows(self, pod: Pod) -> bool:
        """Whether the traits are those of this pod, and not of one that had its name before."""
        return self.traits is not None and self.traits.uid == pod.uid

    def learn(self, known: PodTraits, protection: str = "") -> None:
        """Keep the traits of its pod, and what protects it: nothing is in vain any more."""
        self.traits, self.protection = known, protection
        self.pause(0.0, "")


class JobMemories:
    """What is remembered of the jobs of one cluster."""

    def __init__(self) -> None:
        self._by_uid: dict[str, JobMemory] = {}

    def of(self, job: MigrationJob) -> JobMemory:
        """What is remembered of a job."""
        return self._by_uid.setdefault(job.uid, JobMemory())

    def keep(self, several: Iterable[str]) -> None:
        """Forget all jobs but those of these UIDs."""
        for uid in self._by_uid.keys() - set(several):
            del self._by_uid[uid]

    def is_stale(self, job: MigrationJob) -> bool:
        """Whether the watch has yet to show what was written."""
        memory = self._by_uid.get(job.uid)
        return memory is not None and memory.stale == job.revision != ""

    def is_due(self, job: MigrationJob, now: float) -> bool:
        """Whether an action may be tried."""
        memory = self._by_uid.get(job.uid)
        return memory is None or now >= memory.next

    def refusals(self) -> dict[str, str]:
        """Why the last action of a job was in vain, by its UID."""
        return {uid: memory.refusal for uid, memory in self._by_uid.items() if memory.refusal}

    def to_ask(self, pods: Iterable[tuple[MigrationJob, Pod]]) -> list[MigrationJob]:
        """The jobs whose pods are to be read next; last those that failed, the latest at the end.

        Pods that cannot be read, however many, hold up no other.
        """
        unknown = [job for job, pod in pods if not self.of(job).knows(pod)]
        return sorted(unknown, key=lambda job: self.of(job).next)[:_ASKED]
