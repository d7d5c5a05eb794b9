"""Rooms that plans hold in a crowded cluster, by their jobs and for those that are to fit.

Covers: whose each room is, what it keeps from everybody else, what is free. Does not cover: steps
of plans and jobs, who takes a room, assertions.
"""

from __future__ import annotations

from koordlet.scheduler.migration.job import MigrationJob, PodRef
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import plan_places
from koordlet.scheduler.rescheduling.move_plan import MovePlan, PlanPlace
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit import descheduling
from tests.kit.crowded_cluster import CPUS, Crowd


class HeldRooms(Crowd):
    """The cluster with plans, their jobs and what they hold."""

    def __init__(self, staying: frozenset[str] = frozenset()) -> None:
        super().__init__(staying)
        self.rooms: dict[str, JobReservation] = {}
        self.jobs: dict[str, MigrationJob] = {}
        self.plans: dict[str, MovePlan] = {}

    def pod(self, ref: PodRef) -> Pod | None:
        """The pod of a name."""
        return self.pods.get(ref.name)

    def leaving(self, plan: MovePlan, number: int) -> list[Pod]:
        """Those whose room a place of a plan takes over, while they are there."""
        several = ((self.pod(move.pod), move.pod.uid) for move in plan.leaving(number))
        return [pod for pod, uid in several if pod is not None and pod.uid == uid]

    def place_of(self, ref: PodRef) -> tuple[MovePlan, int] | None:
        """The plan that has a place for a pod, and its number."""
        several = (
            (plan, number)
            for plan in self.plans.values()
            for number, place in enumerate(plan.places)
            if place.pod == ref
        )
        return next(several, None)

    def plan_of(self, held: JobReservation) -> tuple[MovePlan, int]:
        """The plan that holds a room, by a job (-1) or as one of its places."""
        several = (
            (plan, number)
            for plan in self.plans.values()
            for number in range(-1, len(plan.places))
            if (held.job and self.jobs[held.job].plan == plan.uid)
            or (number >= 0 and held.name == plan_places.name(plan, number))
        )
        return next(several)

    def place(self, held: JobReservation) -> PlanPlace:
        """The place that a room is which no job has."""
        plan, number = self.plan_of(held)
        return plan.places[number]

    def holds(self, held: JobReservation) -> int:
        """The CPUs that a reservation keeps from everybody else."""
        if held.owner is not None or held.phase.over:
            return 0
        if held.job:
            return self.size(self.jobs[held.job].pod.name)
        plan, number = self.plan_of(held)
        freed = sum(self.size(move.pod.name) for move in plan.leaving(number))
        there = sum(self.size(pod.name) for pod in self.leaving(plan, number))
        return max(self.size(plan.places[number].pod.name), freed) - there

    def free(self, node: str) -> int:
        """What nobody has or holds of a node."""
        pods = sum(self.size(pod.name) for pod in self.pods.values() if pod.node == node)
        return CPUS - pods - sum(self.holds(r) for r in self.rooms.values() if r.node == node)

    def scene(self) -> LimitedDump:
        """The cluster as the search sees it: reservations are pods that belong to their node."""
        bodies = self.bodies() + [
            descheduling.pod(f"room-{held.name}", held.node, cpu=str(much), owner="DaemonSet/room")
            for held in self.rooms.values()
            if held.node and (much := self.holds(held))
        ]
        return LimitedDump(bodies, self.now)
