"""Which migration jobs may begin: the order, what forbids one, the bounds with their numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from koordlet.kubeapi.disruption_rates import CountOrPercent
from koordlet.model import moment
from koordlet.scheduler.descheduling import dump
from koordlet.scheduler.descheduling.evictor_settings import JobRate, MigrationSettings
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.answers import Defer, Deny, Refusal
from koordlet.scheduler.migration import flow
from koordlet.scheduler.migration.arbitration import Arbiter, Candidate, JobBounds
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.spec import Condition
from tests.kit import descheduling

NOW = descheduling.NOW
SERVED = {"schedulerName": "koord-scheduler"}
RATED = MigrationSettings(max_per_node=None)
FREE = dataclasses.replace(RATED, workload_rate=JobRate())


class Scene:
    """Pods of ReplicaSets on nodes, jobs of them, and what the limiter says."""

    def __init__(self, *pods: Mapping[str, Any], settings: MigrationSettings = FREE) -> None:
        nodes = [descheduling.node(f"n{number}", cpu="64") for number in (1, 2)]
        self.state: ClusterState = dump.state([*nodes, *pods], NOW)[0]
        self.settings = settings
        self.refusal: Refusal | None = None
        self.forbidden = ""
        #: The pods that the limiter was asked about.
        self.asked: list[str] = []

    def _asks(self, _candidate: Candidate, pod: Pod) -> Refusal | None:
        self.asked.append(pod.name)
        return self.refusal

    def candidate(self, pod: str, name: str = "", age: float = 10.0) -> Candidate:
        """A job of a pod."""
        for row in (0, 1):
            for resident in self.state.residents(row):
                if resident.pod.name == pod:
                    ref = PodRef(resident.pod.namespace, pod, resident.pod.uid)
                    job = MigrationJob(
                        name=name or f"job-{pod}", uid=pod, created=NOW - age, pod=ref
                    )
                    signature = self.state.workloads.signature(resident.pod.pod_class)
                    return Candidate(job=job, resident=resident, signature=signature)
        raise AssertionError(pod)

    def verdicts(
        self, waiting: Sequence[Candidate], running: Sequence[Candidate] = (),
        ended: Sequence[Candidate] = (),
    ) -> dict[str, str]:  # fmt: skip
        """By job in their order, why it may not begin; empty where it may."""
        bounds = JobBounds(self.settings, self.state.workloads, NOW)
        for candidate in ended:
            bounds.add_ended(candidate.job, candidate.signature)
        arbiter = Arbiter(
            self.settings, bounds, running, self._asks, lambda _candidate, _pod: self.forbidden
        )
        self.last = list(arbiter.verdicts(waiting))
        return {verdict.candidate.job.name: verdict.reason for verdict in self.last}


def pods(count: int, on: str = "n1", owner: str = "web", **more: Any) -> list[dict[str, Any]]:
    """Pods of one ReplicaSet."""
    spec = {**SERVED, **more.pop("spec", {})}
    owner = owner if "/" in owner or not owner else f"ReplicaSet/{owner}"
    name = owner.rpartition("/")[2] or "bare"
    return [
        descheduling.pod(f"{name}-{number}", on, owner=owner, spec=spec, **more)
        for number in range(count)
    ]


def test_one_pod_of_a_small_workload_migrates_at_a_time() -> None:
    """The peer's formula: 1 below 4 replicas, 2 up to 10, then a tenth."""
    for count, most in ((3, 1), (10, 2), (20, 2), (30, 3)):
        scene = Scene(*pods(count))
        verdicts = scene.verdicts([scene.candidate(f"web-{number}") for number in range(count)])
        assert sum(not reason for reason in verdicts.values()) == most
        refused = scene.last[-1]
        assert refused.reason == "MaxMigratingPerWorkload"
        assert f"{most} are allowed of {count}" in refused.message


@pytest.mark.parametrize(
    ("settings", "reason", "where"),
    [
        ({"max_globally": 1}, "MaxMigratingGlobally", "the cluster has 1"),
        ({"max_per_node": 1}, "MaxMigratingPerNode", "node n1 has 1"),
        ({"max_per_namespace": 1}, "MaxMigratingPerNamespace", "namespace default has 1"),
    ],
)
def test_each_bound_names_where_it_is_reached(
    settings: dict[str, Any], reason: str, where: str
) -> None:
    """Jobs under way count, and those that were just let through."""
    scene = Scene(*pods(1, owner="a"), *pods(1, owner="b"), *pods(1, owner="c"),
                  settings=dataclasses.replace(FREE, **settings))  # fmt: skip
    running = [scene.candidate("a-0")]
    verdicts = scene.verdicts([scene.candidate("b-0"), scene.candidate("c-0")], running)
    assert set(verdicts.values()) == {reason}
    assert scene.last[0].message.startswith(where)
    scene.settings = dataclasses.replace(scene.settings, skipped=frozenset({reason}))
    assert scene.verdicts([scene.candidate("b-0")], running) == {"job-b-0": ""}


@pytest.mark.parametrize("skipped", ["MaxMigratingPerWorkload", "MaxUnavailablePerWorkload"])
def test_a_bound_of_workloads_that_is_skipped_leaves_the_other(skipped: str) -> None:
    """Both are reached by one of three replicas that migrates."""
    free = dataclasses.replace(FREE, skipped=frozenset({skipped}))
    scene = Scene(*pods(3), settings=free)
    (other,) = {"MaxMigratingPerWorkload", "MaxUnavailablePerWorkload"} - {skipped}
    verdicts = scene.verdicts([scene.candidate("web-1")], [scene.candidate("web-0")])
    assert verdicts == {"job-web-1": other}
    scene.settings = dataclasses.replace(free, skipped=frozenset({skipped, other}))
    assert scene.verdicts([scene.candidate("web-1")], [scene.candidate("web-0")]) == {
        "job-web-1": ""
    }


def test_pods_that_are_not_up_count_as_unavailable() -> None:
    """Four replicas may miss two; two of them are down."""
    down = {"conditions": [{"type": "Ready", "status": "False"}]}
    two = [
        descheduling.pod(f"down-{number}", "n2", owner="ReplicaSet/web", spec=SERVED, status=down)
        for number in (0, 1)
    ]
    scene = Scene(*pods(2), *two)
    verdicts = scene.verdicts([scene.candidate("web-0")])
    assert verdicts == {"job-web-0": "MaxUnavailablePerWorkload"}
    assert "of 4 pods of ReplicaSet/web 2 are not up" in scene.last[0].message
    # One that is not up takes nothing away.
    assert scene.verdicts([scene.candidate("down-0")]) == {"job-down-0": ""}


def moved(scene: Scene, name: str, since: float, *, evicted: bool = True) -> Candidate:
    """The job of a pod, which is over, and evicted so long ago."""
    condition = Condition(
        type="Eviction", status=evicted, reason="", changed=moment.spell(NOW - since)
    )
    ended = scene.candidate(name)
    status = JobStatus(phase=Phase.SUCCEEDED, conditions=(condition,))
    return dataclasses.replace(ended, job=dataclasses.replace(ended.job, status=status))


@pytest.mark.parametrize(
    ("count", "rate", "ago", "waits"),
    [
        # Usually one of three in five minutes, two of ten, a tenth of more: evenly over the time.
        (3, None, [100], 200),
        (3, None, [300], 0),
        (10, None, [100], 50),
        (10, None, [160], 0),
        (40, None, [60], 15),
        (40, None, [80, 75], 0),
        # As is configured: a percentage, a burst, none.
        (10, JobRate(seconds=60, most=CountOrPercent(30, percent=True)), [5], 15),
        (10, JobRate(seconds=60, most=CountOrPercent(3), burst=2), [5], 0),
        (10, JobRate(seconds=60, most=CountOrPercent(3), burst=2), [6, 5], 14),
        (10, JobRate(), [1], 0),
    ],
)
def test_jobs_of_a_workload_begin_at_its_rate(
    count: int, rate: JobRate | None, ago: list[float], waits: int
) -> None:
    """The peer's tokens; a job that evicted nobody gave its own back, and others have their own."""
    settings = RATED if rate is None else dataclasses.replace(RATED, workload_rate=rate)
    scene = Scene(*pods(count), *pods(3, owner="other"), settings=settings)
    ended = [moved(scene, f"web-{place}", each) for place, each in enumerate(ago)]
    verdicts = scene.verdicts([scene.candidate(f"web-{count - 1}")], ended=ended)
    assert list(verdicts.values()) == (["ObjectLimiter"] if waits else [""])
    assert not waits or scene.last[0].message.endswith(f"the next in {waits} s")
    assert scene.verdicts([scene.candidate("other-0")], ended=ended) == {"job-other-0": ""}
    kept = [moved(scene, f"web-{place}", 1, evicted=False) for place in range(2)]
    assert scene.verdicts([scene.candidate("web-2")], ended=kept) == {"job-web-2": ""}


def test_a_job_that_is_over_and_does_not_say_when_it_evicted_keeps_nobody_waiting() -> None:
    """It might have been at any time; as now it would hold the rate until it is deleted."""
    scene = Scene(*pods(10), settings=RATED)
    condition = Condition(type="Eviction", status=True, reason="", changed="")
    ended = scene.candidate("web-0")
    status = JobStatus(phase=Phase.SUCCEEDED, conditions=(condition,))
    ended = dataclasses.replace(ended, job=dataclasses.replace(ended.job, status=status))
    assert scene.verdicts([scene.candidate("web-1")], ended=[ended]) == {"job-web-1": ""}


def test_a_job_that_is_under_way_took_its_token_when_it_left_the_queue() -> None:
    """Its first condition says when; one that has none began a moment ago."""
    scene = Scene(*pods(10), settings=RATED)
    for since, reason in ((None, "ObjectLimiter"), (100.0, "ObjectLimiter"), (151.0, "")):
        running = scene.candidate("web-0")
        if since is not None:
            made = Condition(
                type="ReservationCreated", status=True, reason="", changed=moment.spell(NOW - since)
            )
            job = dataclasses.replace(running.job, status=JobStatus(conditions=(made,)))
            running = dataclasses.replace(running, job=job)
        assert scene.verdicts([scene.candidate("web-1")], [running]) == {"job-web-1": reason}


def test_a_namespace_has_a_rate_where_one_is_configured_and_an_annotated_job_passes() -> None:
    """Of the job, as the peer has it: other bounds hold for it."""
    rate = JobRate(seconds=60, most=CountOrPercent(2))
    scene = Scene(*pods(3), *pods(3, owner="other"),
                  settings=dataclasses.replace(FREE, namespace_rate=rate))  # fmt: skip
    ended = [moved(scene, "web-0", 10)]
    waiting = scene.candidate("other-0")
    assert scene.verdicts([waiting], ended=ended) == {"job-other-0": "ObjectLimiter"}
    assert "of namespace default a pod each 30 s" in scene.last[0].message
    assert scene.verdicts([waiting], ended=[moved(scene, "web-0", 30)]) == {"job-other-0": ""}
    urgent = dataclasses.replace(waiting, job=dataclasses.replace(waiting.job, urgent=True))
    assert scene.verdicts([urgent], ended=ended) == {"job-other-0": ""}
    scene.settings = dataclasses.replace(scene.settings, max_per_namespace=1)
    bound = scene.verdicts([urgent], [scene.candidate("web-1")])
    assert bound == {"job-other-0": "MaxMigratingPerNamespace"}


def test_what_waiting_cannot_change_is_final() -> None:
    """A second job, a pod that nobody creates again, a scheduler without reservations, a gang."""
    scene = Scene(
        *pods(3), *pods(1, owner=""), *pods(1, owner="x", spec={"schedulerName": "other"})
    )
    other = scene.candidate("web-0", "first")
    for candidate, words in (
        (scene.candidate("web-0", "second"), 'is migrated by job "first"'),
        (scene.candidate("bare-0"), "nobody would create pod default/bare-0 again"),
        (scene.candidate("x-0"), "schedulerNames does not list it"),
    ):
        scene.verdicts([candidate], [other])
        assert scene.last[0].final
        assert words in scene.last[0].message
    scene.forbidden = "gang a/b needs it"
    assert scene.verdicts([scene.candidate("web-1")]) == {"job-web-1": flow.FORBIDDEN}


def test_the_limiter_is_asked_and_a_budget_is_left_to_the_server() -> None:
    """A job waits for a budget with its room held, and for anything else before that."""
    scene = Scene(*pods(3))
    for refusal, reason in (
        (Deny("CoolDown", "later"), "CoolDown"),
        (Defer("PDB", "none"), ""),
    ):
        scene.refusal = refusal
        assert scene.verdicts([scene.candidate("web-0")]) == {"job-web-0": reason}
    # Of three one migrates at a time: who waits for that costs the limiter nothing.
    scene.asked.clear()
    scene.verdicts([scene.candidate(f"web-{number}") for number in range(3)])
    assert scene.asked == ["web-0"]


def test_the_annotation_of_a_pod_passes_all_bounds_but_a_job_that_is_there() -> None:
    """As the peer has it."""
    free = {"descheduler.alpha.kubernetes.io/evict": "true"}
    scene = Scene(*pods(3, annotations=free))
    running = [scene.candidate("web-0")]
    assert scene.verdicts([scene.candidate("web-1")], running) == {"job-web-1": ""}
    again = scene.verdicts([scene.candidate("web-0", "again")], running)
    assert again == {"again": flow.FORBIDDEN}


def test_the_order_is_workload_under_way_then_the_peers_order_of_pods_then_age() -> None:
    """An old job does not starve behind newer ones."""
    scene = Scene(
        *pods(2, owner="a", priority=10), *pods(1, owner="b", priority=1), *pods(2, owner="c")
    )
    waiting = [
        scene.candidate("a-0", age=5), scene.candidate("a-1", age=50), scene.candidate("b-0"),
        scene.candidate("c-1"),
    ]  # fmt: skip
    verdicts = scene.verdicts(waiting, [scene.candidate("c-0")])
    assert list(verdicts) == ["job-c-1", "job-b-0", "job-a-1", "job-a-0"]


def test_the_pods_of_one_job_are_beside_each_other_where_the_first_of_them_is() -> None:
    """A Job is moved as one, in its turn among all others."""
    scene = Scene(
        *pods(1, owner="Job/low", priority=1), *pods(1, owner="mid", priority=2),
        descheduling.pod("low-9", "n1", owner="Job/low", spec={**SERVED, "priority": 9}),
        *pods(1, owner="Job/high", priority=5),
    )  # fmt: skip
    waiting = [scene.candidate(name) for name in ("high-0", "low-9", "mid-0", "low-0")]
    assert list(scene.verdicts(waiting)) == ["job-low-0", "job-low-9", "job-mid-0", "job-high-0"]
