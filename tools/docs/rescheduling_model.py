"""A cluster whose pods come and go, minute by minute, and the plans that begin by themselves.

Covers: the model of ``rescheduling_week``. Does not cover: which plans begin
(``rescheduling.plan_start``), which pods move (``make_room``), when each may go
(``disruption.limiter``): these are what runs here.

Nodes have 32 CPUs and 128 GiB, and there are three kinds of pods. Services have more replicas by
day than by night, and lose the newest first; they may move. Jobs come at any time, end after hours,
and may not move. Large pods (``LARGE``) come now and then; each waits until a node has room for it.
The scheduler places each pod minute by minute, by its default profile, which spreads.

A plan is carried out as ``plan_flow`` does it: room for all is held first, then one pod a minute
moves where the limiter lets it; ``TTL`` ends it. Room is found at once, and no request fails.
"""

from __future__ import annotations

import bisect
import dataclasses
import heapq
import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from koordlet.kubeapi.disruption_rates import CountOrPercent, RateLimit
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import dump, landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import PodTraits
from koordlet.scheduler.disruption.answers import Allow, Clock, Mover
from koordlet.scheduler.disruption.front_tokens import FrontTokens
from koordlet.scheduler.disruption.limiter import ClusterHealth, Limiter
from koordlet.scheduler.disruption.settings import DefaultRate, DisruptionSettings, PlanSettings
from koordlet.scheduler.disruption.tracker import DisruptionTracker
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.objects.eviction_marks import Leaving
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import plan_check, plan_start
from koordlet.scheduler.rescheduling.make_room import RoomPlanner
from koordlet.scheduler.rescheduling.move_plan import STARTER, TTL, MovePlan
from koordlet.scheduler.rescheduling.plan_status import PlanPhase, PlanStatus
from koordlet.scheduler.rescheduling.room_plan import RoomPlan

_NOW, _MINUTE, _HOUR, _DAY = 1_800_000_000.0, 60.0, 3600.0, 86400.0
_GIB = 1 << 30
#: CPUs of a node, and its GiB for each.
_CPUS, _RATIO = 32, 4
#: CPUs and GiB of pods.
_SIZES = ((0.5, 2), (1, 4), (1, 8), (2, 4), (2, 8), (4, 8), (4, 24))
_JOB_SIZES = ((1, 2), (2, 8), (4, 8), (8, 32))
LARGE = (20, 80)
#: Hours for which jobs and large pods run, in the mean.
_JOB_HOURS, _LARGE_HOURS = 4.0, 8.0
#: Four pods of a controller may be disrupted in a day: two by the background.
_RATE = DefaultRate(0, RateLimit(CountOrPercent(4), _DAY))


@dataclass(slots=True)
class _Service:
    """A workload whose replicas follow the hour of the day."""

    like: Pod
    most: int
    swing: float
    phase: float
    #: The oldest first.
    pods: list[Pod] = dataclasses.field(default_factory=list)

    def wanted(self, at: float) -> int:
        """Its replicas at a moment."""
        day = math.sin(2 * math.pi * at / _DAY + self.phase)
        return round(self.most * (1 - self.swing * (1 - day) / 2))


@dataclass(slots=True)
class _PlanUnderWay:
    """A plan, and the room that it holds."""

    plan: MovePlan
    room: RoomPlan
    pod: Pod | None
    began: float
    made: int = 0
    #: Of the move of a place; -1: of the pod that waits.
    holds: dict[int, Pod] = dataclasses.field(default_factory=dict)


class Week:
    """One cluster over time."""

    def __init__(self, nodes: int, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 -- the same each time
        self._at, self._began, self._number, self._nodes = 0.0, 0.0, 0, nodes
        self.state: ClusterState = dump.state(_nodes(nodes), _NOW)[0]
        self._traits: dict[str, PodTraits] = {}
        self.state.traits = self._traits
        self.state.workloads.of("default")
        self._cycle = Cycle(self.state.columns, self.state.profile("default-scheduler"))
        rates = DisruptionSettings(defaults=(_RATE,))
        self.limiter = Limiter(rates, self.state.workloads, DisruptionBudgets(), self._health)
        self._tracker = DisruptionTracker(self.limiter, FrontTokens())
        self._start = plan_start.PlanStart()
        self._under_way: _PlanUnderWay | None = None
        decoder = Decoder({})
        self._services = [
            _Service(
                decoder.decode(_body(f"s{number}", *self._chance.choice(_SIZES)), 0),
                most=self._chance.randint(15, 45),
                swing=self._chance.uniform(0.1, 0.5),
                phase=self._chance.gauss(0, 0.5),
            )
            for number in range(nodes * 3 // 10)
        ]
        self._jobs = [decoder.decode(_body("jobs", *size, movable=False), 0) for size in _JOB_SIZES]
        self._large = decoder.decode(_body("large", *LARGE, movable=False), 0)
        self._service_of: dict[str, _Service] = {}
        self._waiting: list[Pod] = []
        #: When pods end: time, number, the pod.
        self._ends: list[tuple[float, int, Pod]] = []
        self._came: dict[str, float] = {}
        self.waits: list[float] = []
        self.plans: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        #: When pods were moved.
        self.moves: list[float] = []
        #: By UID of a replacement: when it came.
        self._replaced: dict[str, float] = {}
        #: Seconds between two moves of what is one pod to its user.
        self.again: list[float] = []

    # The cluster.

    def _health(self) -> ClusterHealth:
        pods, pending = len(self._traits), len(self._waiting)
        return ClusterHealth(nodes=self._nodes, pods=pods + pending, pending=pending)

    def _clock(self) -> Clock:
        return Clock(wall=_NOW + self._at, steady=self._at)

    def _new(self, like: Pod) -> Pod:
        self._number += 1
        name = f"{like.name}-{self._number}"
        created = moment.spell(_NOW + self._at)
        return dataclasses.replace(like, name=name, uid=name, created=created, node="")

    def _place(self, pod: Pod, row: int) -> None:
        self.state.columns.place(pod, row)
        self._traits[pod.uid] = PodTraits(uid=pod.uid, created=_NOW + self._at)
        self._tracker.pod(None, pod, self._clock())

    def _remove(self, pod: Pod, by: str = "") -> None:
        """A pod ends; ``by``: the mover that evicts it."""
        if by:
            leaving = Leaving("Eviction", by, _NOW + self._at)
            ends = dataclasses.replace(pod, terminating=True, leaving=leaving)
            self._tracker.pod(pod, ends, self._clock())
        self.state.columns.remove(pod)
        del self._traits[pod.uid]
        self._tracker.pod(pod, None, self._clock())

    def minute(self) -> None:
        """Let a minute pass."""
        self._at += _MINUTE
        self.state.now = self._clock()
        while self._ends and self._ends[0][0] <= self._at:
            self._remove(heapq.heappop(self._ends)[2])
        if self._at % 600 == 0:
            self._scale()
        for like, a_minute, hours in self._arrivals():
            for _ in range(_poisson(self._chance, a_minute)):
                self._come(like, hours)
        self._schedule()
        if self._under_way is not None:
            self._advance(self._under_way)
        else:
            self._begin()

    def _scale(self) -> None:
        for service in self._services:
            change = service.wanted(self._at) - len(service.pods)
            for _ in range(change):
                pod = self._new(service.like)
                self._service_of[pod.uid] = service
                service.pods.append(pod)
                self._waiting.append(pod)
            for _ in range(-change):
                pod = service.pods.pop()
                del self._service_of[pod.uid]
                if pod.node:
                    self._remove(pod)
                else:
                    self._waiting.remove(pod)

    def _arrivals(self) -> Iterator[tuple[Pod, float, float]]:
        """Kinds of pods, how many come a minute, the hours for which they run."""
        for like in self._jobs:
            yield like, self._nodes * 1.5 / len(self._jobs) / (_JOB_HOURS * 60), _JOB_HOURS
        yield self._large, self._nodes * 0.01 / (_LARGE_HOURS * 60), _LARGE_HOURS

    def _come(self, like: Pod, hours: float) -> None:
        pod = self._new(like)
        self._waiting.append(pod)
        # Its life begins with its node: until then its end is that of the one before it.
        self._came[pod.uid] = self._chance.expovariate(1 / (hours * _HOUR))

    def _schedule(self) -> None:
        left = []
        for pod in self._waiting:
            row = self._cycle.choose(pod)
            if row < 0:
                pod.stored_condition = plan_start.REFUSED, "", "", 0
                left.append(pod)
            else:
                self._land(pod, row)
        self._waiting = left

    def _land(self, pod: Pod, row: int) -> None:
        """A pod gets its node."""
        self._place(pod, row)
        life = self._came.pop(pod.uid, None)
        if life is not None:
            heapq.heappush(self._ends, (self._at + life, self._number, pod))
        if pod.pod_class is self._large.pod_class:
            self.waits.append(_NOW + self._at - moment.parse(pod.created))

    # Plans.

    def _begin(self) -> None:
        due = self._start.due(self._waiting, (), self.limiter.settings.plans, self._clock())
        if due is None:
            return
        planner = RoomPlanner(self.state, self.limiter, plan_check.STARTED)
        room = planner.empty_node() if due.pod is None else planner.make_room(due.pod)
        kind = "empty" if due.pod is None else "room"
        if isinstance(room, str):
            self.plans[f"{kind}: none"] += 1
            return
        ref = None if due.pod is None else PodRef("default", due.pod.name, due.pod.uid)
        plan = MovePlan(
            name=f"{kind}-{self._number}", uid=str(self._number), pod=ref, acts=True,
            node=room.node, starter=STARTER, status=PlanStatus(phase=PlanPhase.MOVING),
        )  # fmt: skip
        self._under_way = _PlanUnderWay(plan, room, due.pod, self._at)
        self._hold(self._under_way)

    def _hold(self, under_way: _PlanUnderWay) -> None:
        """Hold the room of moves whose others are done, and the place of the pod that waits."""
        rows, made = self.state.columns.rows, under_way.made
        for place, move in enumerate(under_way.room.moves):
            if (
                place >= made
                and place not in under_way.holds
                and max(move.after, default=-1) < made
            ):
                under_way.holds[place] = landing.ghost(move.pod)
                self.state.columns.place(under_way.holds[place], rows[move.target])
        if under_way.pod is not None and -1 not in under_way.holds:
            under_way.holds[-1] = landing.ghost(under_way.pod)
            self.state.columns.place(under_way.holds[-1], rows[under_way.room.node])

    def _advance(self, under_way: _PlanUnderWay) -> None:
        """Make the next move where the limiter lets it."""
        moves, pod = under_way.room.moves, under_way.pod
        if pod is not None and pod.node:
            self._end(under_way, "not needed")
        elif under_way.made == len(moves):
            self._end(under_way, "done")
            if pod is not None:
                self._waiting.remove(pod)
                self._land(pod, self.state.columns.rows[under_way.room.node])
        elif self._at - under_way.began >= TTL:
            self._end(under_way, "timeout")
        elif moves[under_way.made].pod.uid not in self._traits:
            self._end(under_way, "pod gone")
        else:
            self._ask(under_way, moves[under_way.made].pod)

    def _ask(self, under_way: _PlanUnderWay, pod: Pod) -> None:
        mover, now = Mover(name=under_way.plan.mover, acts=True), self._clock()
        answer = self.limiter.may_evict(pod, plan_check.CAUSE, mover, now)
        if not isinstance(answer, Allow):
            self.refusals[answer.reason] += 1
            return
        self.limiter.begin(pod, plan_check.CAUSE, mover, now)
        self.limiter.accepted(pod, now)
        self._remove(pod, mover.name)
        held = under_way.holds.pop(under_way.made)
        row = self.state.columns.remove(held)
        service = self._service_of.pop(pod.uid)
        replacement = self._new(service.like)
        service.pods[service.pods.index(pod)] = replacement
        self._service_of[replacement.uid] = service
        self._place(replacement, row)
        self.moves.append(self._at)
        if pod.uid in self._replaced:
            self.again.append(self._at - self._replaced.pop(pod.uid))
        self._replaced[replacement.uid] = self._at
        under_way.made += 1
        self._hold(under_way)

    def _end(self, under_way: _PlanUnderWay, outcome: str) -> None:
        kind = under_way.plan.name.partition("-")[0]
        self.plans[f"{kind}: {outcome}"] += 1
        if outcome != "done":
            self.plans[f"{kind}: moves in vain"] += under_way.made
        for held in under_way.holds.values():
            self.state.columns.remove(held)
        self._under_way = None

    # What is seen.

    def begin(self, settings: PlanSettings) -> None:
        """Count from now on, with plans as they are configured."""
        self.limiter.configure(dataclasses.replace(self.limiter.settings, plans=settings))
        self._began = self._at
        self.waits.clear()

    def point(self) -> list[float]:
        """Hours, then what ``rescheduling_week`` draws; moves of a day, of a thousand pods."""
        columns = self.state.columns
        spare = (columns.allocatable - columns.requested)[:2, : self._nodes]
        free = np.maximum(spare / np.array([[1000], [_GIB * _RATIO]]), 0)
        usable = free.min(axis=0)
        stranded = (free - usable).sum(axis=1) / (self._nodes * _CPUS) * 100
        waiting = sum(pod.pod_class is self._large.pod_class for pod in self._waiting)
        recent = len(self.moves) - bisect.bisect(self.moves, self._at - _DAY)
        values = (usable.max(), *stranded, waiting, recent / max(1, len(self._service_of)) * 1000)
        return [
            round((self._at - self._began) / _HOUR),
            *(round(float(value), 2) for value in values),
        ]

    def summary(self) -> dict[str, Any]:
        """What the whole time gave and cost."""
        now = _NOW + self._at
        large = (pod for pod in self._waiting if pod.pod_class is self._large.pod_class)
        still = [now - moment.parse(pod.created) for pod in large]
        waits = sorted(each / _MINUTE for each in (*self.waits, *still))
        return {
            "movable": len(self._service_of),
            "large": len(waits),
            "waiting": len(still),
            "waitMinutes": [round(waits[len(waits) * part // 100]) for part in (50, 90, 99)],
            "moves": len(self.moves),
            "movedAgain": len(self.again),
            "soonestAgainHours": round(min(self.again, default=0.0) / _HOUR, 1),
            "plans": dict(sorted(self.plans.items())),
            "refusals": dict(sorted(self.refusals.items())),
        }


def _nodes(count: int) -> list[dict[str, Any]]:
    room = {"cpu": str(_CPUS), "memory": f"{_CPUS * _RATIO}Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    return [
        {
            "kind": "Node",
            "metadata": {"name": f"n{number}"},
            "status": {"allocatable": room, "conditions": ready},
        }
        for number in range(count)
    ]


def _body(owner: str, cpus: float, gib: int, *, movable: bool = True) -> dict[str, Any]:
    """A pod that runs, of a controller of that name."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
    notes = {} if movable else {"annotations": {"koordlet.io/movable": "false"}}
    asks = {"requests": {"cpu": f"{round(cpus * 1000)}m", "memory": f"{gib}Gi"}}
    return {
        "kind": "Pod",
        "metadata": {
            "name": owner, "namespace": "default", "uid": owner, **notes,
            "ownerReferences": [{**reference, "controller": True}],
        },
        "spec": {"nodeName": "-", "containers": [{"name": "c", "resources": asks}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }  # fmt: skip


def _poisson(chance: random.Random, mean: float) -> int:
    count, left = 0, math.exp(-mean)
    product = chance.random()
    while product > left:
        count += 1
        product *= chance.random()
    return count
