"""Which of the jobs that wait may begin, in which order, and why the others may not.

Covers: the order of jobs, what forbids one for good, the bounds of jobs at once. Pure. Does not
cover: budgets of disruptions (``disruption``), which are asked through ``asks``.

Jobs are judged one after the other, each with those that were let through before it:
* workloads with more jobs under way first, so that one is finished before the next begins;
* jobs of pods of one Job beside each other, at the place of the first of them;
* Koordinator's order of their pods (``order.rank``), younger pods first;
* older jobs first: the peer's order, newest first, lets old ones wait for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import order
from koordlet.scheduler.descheduling.evictor_settings import JobRate, MigrationSettings
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.disruption import workloads
from koordlet.scheduler.disruption.answers import Refusal
from koordlet.scheduler.disruption.workloads import Signature, WorkloadIndex
from koordlet.scheduler.migration import flow
from koordlet.scheduler.migration.job import MigrationJob, PodRef
from koordlet.scheduler.migration.job_rates import TokenBucket
from koordlet.scheduler.objects.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A job with its pod; ``None``: the pod is gone, and the job waits for its replacement."""

    job: MigrationJob
    resident: Resident | None = None
    signature: Signature | None = None
    #: What the job says of itself and the cluster does not show: reason and sentence.
    unproved: tuple[str, str] = ("", "")
    #: What protects its pod by the rules of the evictor, where its author has not asked them.
    protection: str = ""
    #: ``False``: the job would be made if its mover acted.
    acts: bool = True

    @property
    def pod(self) -> PodRef:
        """Its pod, whether the job names the UID or not."""
        ref = self.job.pod
        uid = ref.uid if self.resident is None else self.resident.pod.uid
        return PodRef(ref.namespace, ref.name, uid)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a job may begin; ``reason`` is empty where it may."""

    candidate: Candidate
    reason: str = ""
    message: str = ""

    @property
    def passes(self) -> bool:
        """Whether it may begin."""
        return not self.reason

    @property
    def final(self) -> bool:
        """Whether waiting is in vain."""
        return self.reason == flow.FORBIDDEN


class JobBounds:
    """The bounds of jobs at once, over those that are counted."""

    def __init__(self, settings: MigrationSettings, known: WorkloadIndex, now: float) -> None:
        self._settings, self._workloads, self._now = settings, known, now
        self._all = 0
        self._nodes: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()
        self._migrating: Counter[Signature] = Counter()
        #: Of these the pods that are up still.
        self._up: Counter[Signature] = Counter()
        #: When jobs of a workload, or of a namespace, left the queue; ended ones that evicted, too.
        self._begun: dict[Signature | str, list[float]] = {}

    def add(self, candidate: Candidate) -> None:
        """Count a job that is under way."""
        job, resident, signature = candidate.job, candidate.resident, candidate.signature
        self._all += 1
        self._namespaces[job.pod.namespace] += 1
        if resident is not None:
            self._nodes[resident.pod.node] += 1
        if signature is not None:
            self._migrating[signature] += 1
            self._up[signature] += resident is not None and resident.pod.up
        self._begin(job, signature, unknown=self._now)

    def add_ended(self, job: MigrationJob, signature: Signature | None) -> None:
        """Count one that is over, where it evicted its pod."""
        condition = job.status.condition(flow.EVICTION)
        if condition is not None and condition.status:
            self._begin(job, signature, unknown=0.0)

    def _begin(self, job: MigrationJob, signature: Signature | None, unknown: float) -> None:
        """A job has left the queue: when, its first condition says, or else it is ``unknown``."""
        conditions = map(job.status.condition, (flow.CREATED, flow.EVICTION))
        times = (each.since for each in conditions if each is not None and each.since)
        began = next(times, unknown)
        for key in (signature, job.pod.namespace):
            if key is not None:
                self._begun.setdefault(key, []).append(began)

    def migrating(self, signature: Signature | None) -> int:
        """The jobs of a workload that are under way."""
        return 0 if signature is None else self._migrating[signature]

    def refusals(self, candidate: Candidate) -> Iterator[tuple[str, str]]:
        """The bounds that one job more would exceed, with their numbers."""
        for reason, text in self._exceeded(candidate):
            if reason not in self._settings.skipped:
                yield reason, text

    def _exceeded(self, candidate: Candidate) -> Iterator[tuple[str, str]]:
        settings, resident = self._settings, candidate.resident
        node = "" if resident is None else resident.pod.node
        namespace = candidate.job.pod.namespace
        for name, most, count, where in (
            ("MaxMigratingGlobally", settings.max_globally, self._all, "the cluster"),
            ("MaxMigratingPerNode", settings.max_per_node, self._nodes[node], f"node {node}"),
            (
                *("MaxMigratingPerNamespace", settings.max_per_namespace),
                *(self._namespaces[namespace], f"namespace {namespace}"),
            ),
        ):
            if most is not None and count >= most:
                yield name, f"{where} has {count} pods that migrate, and {most} are allowed"
        if candidate.signature is not None:
            up = resident is not None and resident.pod.up
            yield from self._of_workload(candidate.signature, up=up)
        if not candidate.job.urgent:
            yield from self._rates(candidate.signature, namespace)

    def _of_workload(self, signature: Signature, *, up: bool) -> Iterator[tuple[str, str]]:
        settings, members = self._settings, self._workloads.members(signature)
        replicas = self._workloads.expected(members)
        down = max(0, replicas - sum(pod.up for pod in workloads.each(members)))
        per_workload = workloads.of_replicas(settings.max_per_workload, replicas)
        unavailable = workloads.of_replicas(settings.max_unavailable, replicas)
        migrating, leaving = self._migrating[signature], self._up[signature]
        if migrating >= per_workload:
            text = f"{signature} has {migrating} pods that migrate, and {per_workload} are allowed"
            yield "MaxMigratingPerWorkload", f"{text} of {replicas}"
        # One that is not up takes nothing away.
        if up and leaving + down >= unavailable:
            text = f"of {replicas} pods of {signature} {down} are not up and {leaving} migrate"
            yield "MaxUnavailablePerWorkload", f"{text}, and {unavailable} are allowed"

    def _rates(self, signature: Signature | None, namespace: str) -> Iterator[tuple[str, str]]:
        """How often jobs of the workload, and of the namespace, may begin."""
        settings = self._settings
        rate, most = settings.workload_rate, 0
        if signature is not None:
            replicas = self._workloads.expected(self._workloads.members(signature))
            most = workloads.of_replicas(rate.most or settings.max_per_workload, replicas)
            yield from self._rate(rate, most, signature, str(signature))
        rate = settings.namespace_rate
        most = 0 if rate.most is None else rate.most.number
        yield from self._rate(rate, most, namespace, f"namespace {namespace}")

    def _rate(
        self, rate: JobRate, most: int, key: Signature | str, where: str
    ) -> Iterator[tuple[str, str]]:
        if not rate.seconds or not most:
            return
        bucket = TokenBucket(rate.seconds / most, rate.burst)
        waits = bucket.wait(self._begun.get(key, ()), self._now)
        if waits:
            pace = f"a pod each {bucket.period:g} s may begin to migrate"
            yield "ObjectLimiter", f"of {where} {pace}: the next in {waits:.0f} s"


class Arbiter:
    """Lets jobs begin, one after the other."""

    def __init__(
        self,
        settings: MigrationSettings,
        bounds: JobBounds,
        running: Iterable[Candidate],
        asks: Callable[[Candidate, Pod], Refusal | None],
        forbids: Callable[[Candidate, Pod], str],
    ) -> None:
        """``asks``: the limiter; ``forbids``: why a pod never goes, its gang, what protects it."""
        self._settings, self._bounds = settings, bounds
        self._asks, self._never = asks, forbids
        #: The jobs of pods.
        self._taken: dict[PodRef, str] = {}
        for candidate in running:
            self.begin(candidate)

    def begin(self, candidate: Candidate) -> None:
        """Count a job that is under way from now on."""
        self._taken[candidate.pod] = candidate.job.name
        self._bounds.add(candidate)

    def verdicts(self, waiting: Sequence[Candidate]) -> Iterator[Verdict]:
        """A verdict for each job that waits."""
        for candidate in self._ordered(waiting):
            verdict = self.judge(candidate)
            if verdict.passes:
                self.begin(candidate)
            yield verdict

    def _ordered(self, waiting: Sequence[Candidate]) -> list[Candidate]:
        ordered = sorted(waiting, key=_key)
        places: dict[Signature, int] = {}

        def place(candidate: Candidate, own: int) -> int:
            signature = candidate.signature
            if signature is None or signature.kind != "Job":
                return own
            return places.setdefault(signature, own)

        numbered = [
            (-self._bounds.migrating(candidate.signature), place(candidate, own), own)
            for own, candidate in enumerate(ordered)
        ]
        return [ordered[own] for *_, own in sorted(numbered)]

    def judge(self, candidate: Candidate) -> Verdict:
        """Whether one job may begin now."""
        return Verdict(candidate, *next(self._refusals(candidate), ("", "")))

    def refusals(self, candidate: Candidate) -> list[tuple[str, str]]:
        """Everything that keeps it from beginning: reasons and sentences."""
        return list(self._refusals(candidate))

    def _refusals(self, candidate: Candidate) -> Iterator[tuple[str, str]]:
        job, resident = candidate.job, candidate.resident
        if other := self._taken.get(candidate.pod):
            yield flow.FORBIDDEN, f'pod {job.pod} is migrated by job "{other}"'
        if resident is None:
            yield "MissingPod", f"pod {job.pod} is not there"
            return
        if not resident.pod.node:
            return  # nothing runs yet: its place is all that changes
        if why := self._forbids(candidate, resident) or self._never(candidate, resident.pod):
            yield flow.FORBIDDEN, why
        if candidate.unproved[0]:
            yield candidate.unproved
        if resident.traits.evict or job.plan or job.leader:
            # A plan holds all its room first, and each eviction is asked about when it is due. The
            # bounds of a gang that moves whole are asked for its leader.
            return
        yield from self._bounds.refusals(candidate)
        # Whoever waits for a bound costs the limiter nothing. The server has the last word on its
        # budgets: the job waits for it, its room held.
        refusal = self._asks(candidate, resident.pod)
        if refusal is not None and refusal.reason != "PDB":
            yield refusal.reason, refusal.message

    def _forbids(self, candidate: Candidate, resident: Resident) -> str:
        job, pod_class = candidate.job, resident.pod.pod_class
        if candidate.protection:
            text = (
                f'Pod "{job.pod}" is forbidden to migrate because it does not meet the requirements'
            )
            return f"{text}: {candidate.protection}"
        if not job.reserves:
            return ""
        if not pod_class.owner[0]:
            return f"nobody would create pod {job.pod} again"
        if pod_class.scheduler not in self._settings.scheduler_names:
            return (
                f"pod {job.pod} is of scheduler {pod_class.scheduler}, which makes no"
                " reservations: schedulerNames does not list it"
            )
        return ""


def _key(candidate: Candidate) -> tuple[tuple[int, ...], float, float]:
    resident = candidate.resident
    rank: tuple[int, ...] = () if resident is None else order.rank(resident)
    younger = 0.0 if resident is None else -resident.traits.created
    return rank, younger, candidate.job.created
