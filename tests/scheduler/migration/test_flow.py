"""The life of a migration job, killed anywhere, in a cluster that does what clusters do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import pytest

from koordlet.model import moment
from koordlet.scheduler.migration import cleanup, flow, job, room
from koordlet.scheduler.migration.flow import EvictPod, MakeReservation, OpenReservation
from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.picture import Picture
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.pods import OwnerReference, Pod, PodClass
from koordlet.scheduler.objects.requests import Requests
from koordlet.scheduler.reservation.spec import OwnerPattern, ReservationOwner
from koordlet.scheduler.reservation.spec import Phase as ReservationPhase

NOW = 1_800_000_000.0
CONTROLLER = ("d", "ReplicaSet", "web")
OWNERS = (
    ReservationOwner(controller=OwnerPattern("d", name="web", kind="ReplicaSet", controller=True)),
)
REFERENCES = (OwnerReference("apps/v1", "ReplicaSet", "web", "u-web", controller=True),)
REF = PodRef("d", "web-1", "u-1")


def pod(name: str, uid: str, *, on: str = "", at: float = NOW - 3600, up: bool = False) -> Pod:
    """A pod of the ReplicaSet."""
    shared = PodClass(
        namespace="d", labels={}, scheduler="s", requests=Requests({}, {}, {}),
        references=REFERENCES,
    )  # fmt: skip
    return Pod(
        namespace="d", name=name, uid=uid, pod_class=shared, priority=0, ready=up,
        created=moment.spell(at), node=on, terminating=False,
    )  # fmt: skip


class Killed(Exception):  # noqa: N818 -- what happened
    """The process has ended at a write."""


class Cluster:
    """Pods, one reservation, one job; each write may be the last of the process."""

    def __init__(self, *, kill: int = -1, after: bool = False, **more: Any) -> None:
        self.now = NOW
        self.pods = {"web-1": pod("web-1", "u-1", on="n1", up=True)}
        self.rooms: dict[str, JobReservation] = {}
        self.job = MigrationJob(
            name="j", uid="j-1", created=NOW, pod=REF, ttl=300.0,
            status=JobStatus(phase=Phase.RUNNING), **more,
        )  # fmt: skip
        self.evicted: list[str] = []
        self.made = 0
        #: UIDs of pods that came for other jobs.
        self.others: set[str] = set()
        #: Nobody schedules, evicts, replaces.
        self.places, self.evicts, self.replaces = True, True, True
        self._writes, self._kill, self._after = 0, kill, after

    @property
    def writes(self) -> int:
        """How many there were."""
        return self._writes

    def _write(self) -> bool:
        """Whether a write is done; a kill comes before it, or after it."""
        self._writes += 1
        if self._writes - 1 == self._kill and not self._after:
            raise Killed
        return self._writes - 1 == self._kill

    def picture(self) -> Picture:
        """What the job sees."""

        def members(controller: tuple[str, str, str]) -> Iterable[Pod]:
            assert controller == CONTROLLER
            return self.pods.values()

        return Picture(
            pod=lambda ref: self.pods.get(ref.name), room=self.rooms.get, members=members,
            of_other=lambda _job, pod: pod.uid in self.others,
        )  # fmt: skip

    def step(self) -> None:
        """One step of the job, as the writer does it."""
        made = flow.step(self.job, self.picture(), self.now)
        try:
            if made.status != self.job.status:
                killed = self._write()
                self.job = dataclasses.replace(self.job, status=made.status)
                if killed:
                    return
            for action in made.actions:
                self._act(action)
        except Killed:
            return

    def _act(self, action: flow.Action) -> None:
        if isinstance(action, MakeReservation):
            killed = self._write()
            if "j-1" not in self.rooms:
                self.made += 1
                self.rooms["j-1"] = JobReservation(
                    name="j-1", uid="r-1", job="j", closed=True, owners=OWNERS,
                    expires=self.now + 360,
                )  # fmt: skip
            if killed:
                raise Killed
            killed = self._write()
            self.job = dataclasses.replace(self.job, reservation="j-1")
        elif isinstance(action, OpenReservation):
            killed = self._write()
            self._change(closed=False, opened=action.since, expires=self.now + room.GIVEN)
        else:
            assert isinstance(action, EvictPod)
            killed = self._write()
            there = self.pods.get("web-1")
            if self.evicts and there is not None and not there.terminating:
                held = self.rooms.get("j-1")
                if self.job.reserves:
                    assert held is not None
                    assert held.node not in {"", "n1"}, "room before disruption"
                    assert not held.closed
                self.evicted.append(there.uid)
                there.terminating = True
        if killed:
            raise Killed

    def _change(self, **more: Any) -> None:
        if "j-1" in self.rooms:
            self.rooms["j-1"] = dataclasses.replace(self.rooms["j-1"], **more)

    def turn(self) -> None:
        """What scheduler, kubelet and ReplicaSet do meanwhile; one second passes."""
        self.now += 1
        held = self.rooms.get("j-1")
        if held is not None and self.places and not held.node:
            self._change(node="n2", phase=ReservationPhase.AVAILABLE)
        old, new = self.pods.get("web-1"), self.pods.get("web-2")
        if old is not None and old.terminating and self.replaces:
            if new is None:
                self.pods["web-2"] = pod("web-2", "u-2", at=self.now)
            elif not new.node:
                new.node = "n2"
                self._change(owner=PodRef("d", "web-2", "u-2"), phase=ReservationPhase.SUCCEEDED)
            else:
                del self.pods["web-1"]  # it took its time
        elif old is not None and old.terminating:
            del self.pods["web-1"]
        elif new is not None:
            new.ready = True
        for gone in list(cleanup.leftovers({"j-1": self.job}, self.rooms.values())):
            del self.rooms[gone.name]

    def play(self, seconds: int = 60) -> MigrationJob:
        """Until the job is over, and a little longer."""
        for _ in range(seconds):
            self.step()
            self.turn()
        return self.job


#: How many writes an undisturbed job has.
WRITES = 7


def test_an_undisturbed_job_succeeds() -> None:
    """With all conditions, in their order; the counts that the kills below stand on."""
    cluster = Cluster()
    ended = cluster.play()
    assert (ended.status.phase, ended.status.status) == (Phase.SUCCEEDED, flow.COMPLETE)
    assert ended.status.pod == PodRef("d", "web-2", "u-2")
    kinds = [condition.type for condition in ended.status.conditions]
    assert kinds == [flow.CREATED, flow.SCHEDULED, flow.EVICTION, flow.BOUND, flow.READY]
    assert all(condition.status for condition in ended.status.conditions)
    assert cluster.writes == WRITES


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kill", range(WRITES + 4))
def test_a_job_that_is_killed_at_any_write_ends_the_same(kill: int, *, after: bool) -> None:
    """Nobody is evicted twice, no reservation is made twice or left behind."""
    cluster = Cluster(kill=kill, after=after)
    ended = cluster.play()
    assert ended.status.phase is Phase.SUCCEEDED
    assert ended.status.pod == PodRef("d", "web-2", "u-2")
    assert cluster.evicted == ["u-1"]
    assert cluster.made == 1
    assert all(held.phase.over for held in cluster.rooms.values())


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kill", range(8))
def test_a_job_whose_eviction_is_refused_gives_its_room_back(kill: int, *, after: bool) -> None:
    """At its ttl, whatever happened to the process meanwhile; the pod stays."""
    cluster = Cluster(kill=kill, after=after)
    cluster.evicts = False
    ended = cluster.play(320)
    assert (ended.status.phase, ended.status.reason) == (Phase.FAILED, "Timeout")
    assert ended.status.message.startswith("Abort job caused by timeout")
    assert cluster.rooms == {}
    assert cluster.pods.keys() == {"web-1"}


def test_after_the_eviction_a_job_waits_beyond_its_ttl_and_its_room_stays() -> None:
    """The replacement may take long: 600 s at least, and the reservation outlives the job."""
    cluster = Cluster()
    cluster.replaces = False
    cluster.play(320)
    assert cluster.job.active
    assert cluster.job.status.status == flow.BOUND
    expires = cluster.rooms["j-1"].expires
    assert expires is not None
    assert expires > cluster.now + 200
    ended = cluster.play(400)
    assert (ended.status.phase, ended.status.reason) == (Phase.FAILED, "Timeout")
    assert cluster.rooms.keys() == {"j-1"}


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        ({"uid": "other"}, "MissingPod", 'Abort job caused by missing Pod "d/web-1"'),
        ({"node": "n2"}, "ForbiddenMigratePod", "on the same node as the Pod"),
    ],
)
def test_a_pod_that_changed_meanwhile_ends_the_job(
    change: dict[str, str], reason: str, message: str
) -> None:
    """A StatefulSet's next pod of the name is another pod; a reservation on its node is none."""
    cluster = Cluster()
    cluster.step()
    cluster.turn()
    for key, value in change.items():
        setattr(cluster.pods["web-1"], key, value)
    ended = cluster.play()
    assert (ended.status.phase, ended.status.reason) == (Phase.FAILED, reason)
    assert message in ended.status.message
    assert cluster.evicted == []
    assert cluster.rooms == {}


def test_a_sibling_that_took_the_room_is_no_failure_if_the_replacement_is_up_elsewhere() -> None:
    """It was there before the eviction, and waited; the replacement found another node."""
    cluster = Cluster()
    cluster.replaces = False
    while cluster.job.status.status != flow.BOUND:
        cluster.step()
        cluster.turn()
    cluster.pods["old"] = pod("old", "u-0", on="n2", at=NOW - 60)
    cluster.rooms["j-1"] = dataclasses.replace(
        cluster.rooms["j-1"], owner=PodRef("d", "old", "u-0"), phase=ReservationPhase.SUCCEEDED
    )
    cluster.play(3)
    assert cluster.job.active
    assert cluster.job.status.message == "Reservation is already bound by another Pod"
    cluster.pods["web-2"] = pod("web-2", "u-2", on="n3", at=cluster.now, up=True)
    ended = cluster.play(3)
    assert ended.status.phase is Phase.SUCCEEDED
    assert ended.status.message == 'Pod "d/web-2" is ready on node "n3"'


def test_room_that_is_taken_before_the_eviction_fails_the_job() -> None:
    """By a pod that is not the one that is to leave."""
    cluster = Cluster()
    cluster.step()
    cluster.turn()
    cluster.rooms["j-1"] = dataclasses.replace(
        cluster.rooms["j-1"], owner=PodRef("d", "x", "u-x"), phase=ReservationPhase.SUCCEEDED
    )
    ended = cluster.play(5)
    assert ended.status.message == "Reservation is already bound by another Pod"
    assert cluster.evicted == []


@pytest.mark.parametrize(
    ("phase", "reason"),
    [(ReservationPhase.FAILED, "ReservationExpired"), (None, "MissingReservation")],
)
def test_a_reservation_that_is_lost_ends_the_job(
    phase: ReservationPhase | None, reason: str
) -> None:
    """Expired, or deleted by somebody; nobody is evicted then."""
    cluster = Cluster()
    cluster.places = False
    cluster.play(3)
    if phase is None:
        del cluster.rooms["j-1"]
    else:
        cluster.rooms["j-1"] = dataclasses.replace(cluster.rooms["j-1"], phase=phase)
    ended = cluster.play(10)
    assert (ended.status.phase, ended.status.reason) == (Phase.FAILED, reason)
    assert cluster.evicted == []


def test_a_node_that_serves_nobody_is_said_and_waited_for() -> None:
    """The job stays Running with the scheduler's message, until its ttl."""
    cluster = Cluster()
    cluster.places = False
    cluster.play(2)
    cluster.rooms["j-1"] = dataclasses.replace(cluster.rooms["j-1"], message="0/3 nodes")
    running = cluster.play(2).status
    assert (running.phase, running.status, running.reason) == (
        Phase.RUNNING, flow.SCHEDULED, "Unschedulable",
    )  # fmt: skip
    assert running.message == "0/3 nodes"
    assert cluster.play(320).status.reason == "Timeout"
    assert cluster.rooms == {}


def test_without_a_reservation_a_job_ends_when_its_pod_is_gone() -> None:
    """The peer's EvictDirectly."""
    cluster = Cluster(mode="EvictDirectly")
    ended = cluster.play()
    assert (ended.status.phase, ended.status.message) == (
        Phase.SUCCEEDED, 'Pod "d/web-1" has been evicted',
    )  # fmt: skip
    assert cluster.made == 0


@pytest.mark.parametrize("turns", range(7))
def test_whoever_ends_a_job_gets_its_room_back(turns: int) -> None:
    """By the annotation; unless the replacement uses the room already."""
    cluster = Cluster()
    for _ in range(turns):
        cluster.step()
        cluster.turn()
    if cluster.job.active:
        cluster.job = dataclasses.replace(cluster.job, aborts=True)
        assert cluster.play(5).status.phase is Phase.ABORTED
    assert all(held.phase.over for held in cluster.rooms.values())


@pytest.mark.parametrize("changed", [None, "0001-01-01T00:00:00Z"])
@pytest.mark.parametrize("kind", [flow.CREATED, flow.EVICTION, flow.BOUND])
def test_a_condition_without_a_time_of_its_own_stops_nobody(kind: str, changed: str | None) -> None:
    """Whoever may patch a status may leave the time out: other jobs go on, this one ends."""
    cluster = Cluster()
    reservation = {"name": "r"}
    condition = {"type": kind, "status": "True", "lastTransitionTime": changed}
    meta = {"name": "j", "uid": "j-1", "creationTimestamp": moment.spell(NOW)}
    body = {
        "metadata": meta,
        "spec": {
            "podRef": REF.body(),
            "ttl": "300s",
            "reservationOptions": {"reservationRef": reservation},
        },
        "status": {"phase": "Running", "conditions": [condition]},
    }
    cluster.job = job.decode(body)
    for _ in range(20):
        cluster.step()
        cluster.now += 60.0

    assert cluster.job.status.phase is Phase.FAILED


def test_a_paused_job_does_nothing_and_a_bad_one_says_why() -> None:
    """Neither is lost."""
    cluster = Cluster(paused=True)
    assert cluster.play(400).active
    assert cluster.writes == 0
    bad = MigrationJob(name="j", uid="j", pod=PodRef("", ""), fault="spec.mode 'X' is none of …")
    assert flow.step(bad, cluster.picture(), NOW).status.reason == "InvalidJob"


@pytest.mark.parametrize(("ends", "phase"), [(True, Phase.SUCCEEDED), (False, Phase.FAILED)])
def test_a_replacement_that_is_seen_before_the_end_of_its_pod_is_waited_for(
    phase: Phase, *, ends: bool
) -> None:
    """Of two watches one is behind; a pod that really stays loses its job, and is not evicted."""
    cluster = Cluster()
    cluster.evicts = False
    while cluster.rooms.get("j-1") is None or cluster.rooms["j-1"].closed:
        cluster.step()
        cluster.turn()
    cluster.pods["web-2"] = pod("web-2", "u-2", on="n2", at=cluster.now)
    taken: dict[str, Any] = {
        "owner": PodRef("d", "web-2", "u-2"), "phase": ReservationPhase.SUCCEEDED,
    }  # fmt: skip
    cluster.rooms["j-1"] = dataclasses.replace(cluster.rooms["j-1"], **taken)
    for _ in range(3):
        cluster.step()
        cluster.turn()
    assert cluster.job.active
    cluster.pods["web-1"].terminating = ends
    assert cluster.play(20).status.phase is phase
    assert cluster.evicted == []
