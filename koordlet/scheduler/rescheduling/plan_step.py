"""What one step of a plan sees of the cluster, and what it decides: values.

Covers: the picture, the actions. Does not cover: which follow (``plan_flow``), doing them
(``loop.plan_controller``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from koordlet.model.record import dataclass
from koordlet.scheduler.migration.job import MigrationJob, PodRef
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling.move_plan import MovePlan
from koordlet.scheduler.rescheduling.plan_status import PlanStatus, PlanWorth


@dataclass(frozen=True, slots=True)
class FindMoves:
    """Look for the moves, and write them into the plan."""


@dataclass(frozen=True, slots=True)
class HoldPlace:
    """Create the reservation of a pod that is to fit, over the room of those that leave."""

    number: int


@dataclass(frozen=True, slots=True)
class MakeJob:
    """Create the job of a move."""

    place: int


@dataclass(frozen=True, slots=True)
class ReleaseJob:
    """Let a job evict its pod."""

    job: MigrationJob


@dataclass(frozen=True, slots=True)
class EndJob:
    """End a job that has evicted nobody."""

    job: MigrationJob


@dataclass(frozen=True, slots=True)
class DropPlace:
    """Delete the reservation of a pod that was to fit."""

    room: JobReservation


Action = FindMoves | HoldPlace | MakeJob | ReleaseJob | EndJob | DropPlace


@dataclass(frozen=True, slots=True)
class PlanStep:
    """What a plan should be now, or what is to be done by what it is."""

    status: PlanStatus
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPicture:
    """What plans see of the cluster."""

    #: The living pod of a namespace and name.
    pod: Callable[[PodRef], Pod | None]
    job: Callable[[str], MigrationJob | None]
    room: Callable[[str], JobReservation | None]
    #: Why the moves of a plan could not be made now: reason and sentence; empty: they could.
    check: Callable[[MovePlan], tuple[str, str]]
    #: What a plan gains and costs.
    worth: Callable[[MovePlan], PlanWorth | None] = lambda _plan: None
    #: Why the last action of a plan was in vain, by its UID.
    refusals: Mapping[str, str] = field(default_factory=dict)
