"""The result of a cycle for a group while it can still be taken back.

Covers: members that were decided and that failed, counts by gang. Does not cover: deciding
(``attempt``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from koordlet.kubeapi.pod_groups import MatchPolicy
from koordlet.model.record import dataclass
from koordlet.scheduler.framework import Failure, Verdict
from koordlet.scheduler.gangs.book import GangEntry, GangGroup
from koordlet.scheduler.gangs.gang import Obstacle
from koordlet.scheduler.loop import reservation_events
from koordlet.scheduler.loop.assumptions import Assumptions
from koordlet.scheduler.loop.outcomes import Bind, Hold, Refusal
from koordlet.scheduler.objects.pods import Pod


@dataclass(frozen=True, slots=True)
class FailedMember:
    """A member that was not decided, and why."""

    pod: Pod
    message: str
    #: Why no node took it; ``None``: it failed for another reason.
    failure: Failure | None = None
    #: The plugins that refused it.
    by: frozenset[str] = frozenset()
    #: An error, which says nothing about nodes.
    error: bool = False
    #: It is never tried, and waits before the queue.
    never: bool = False


@dataclass(slots=True)
class GangTally:
    """The members of one gang in this cycle."""

    entry: GangEntry
    #: Assumed before this cycle, and shown on a node by the store.
    waiting: int
    bound: int
    decided: int = 0
    #: Not tried yet.
    left: int = 0

    def enough(self, group: GangGroup, *, more: int = 0) -> bool:
        """Whether the gang has its minimum, with so many more."""
        gang = self.entry.gang
        waiting = self.waiting + self.decided + more
        if gang is None:
            return group.satisfied
        return gang.valid(waiting=waiting, bound=self.bound, satisfied=group.satisfied)

    def needed(self, group: GangGroup) -> int:
        """How many must be decided at least."""
        gang = self.entry.gang
        if gang is None or self.enough(group):
            return 0
        counts = gang.match_policy is MatchPolicy.WAITING_AND_RUNNING
        return gang.min - self.waiting - (self.bound if counts else 0)

    def missing(self, group: GangGroup, *, more: int = 0) -> float:
        """The share of the minimum that is neither decided nor bound, with so many more."""
        if self.enough(group, more=more):
            return 0.0
        gang = self.entry.gang
        return (self.needed(group) - self.decided - more) / gang.min if gang and gang.min else 1.0


@dataclass(slots=True)
class GroupTrial:
    """What became of the members: a result that can still be taken back."""

    binds: list[Bind | Hold] = field(default_factory=list)
    failed: list[FailedMember] = field(default_factory=list)
    #: Not tried, as the minimum was out of reach.
    skipped: list[Pod] = field(default_factory=list)
    #: How many were decided before the first that failed.
    before: int = 0
    enough: bool = False
    #: Too few were decided, and not by so much that these may not wait for the rest.
    waits: bool = False
    #: Others were decided meanwhile, and have met those that are decided here.
    visible: bool = False
    #: Meanwhile the members have come into another group.
    outdated: bool = False

    @property
    def obstacle(self) -> Obstacle | None:
        """The first member that was not decided, and why; ``None``: all were."""
        first = self.failed[0] if self.failed else None
        return Obstacle(first.pod.key, first.message, first.error) if first else None


class AssumingCore(reservation_events.ReservingCore, Protocol):
    """The parts of ``loop.core.Core`` that let a pod have its room."""

    assumptions: Assumptions


def assume(core: AssumingCore, pod: Pod, row: int) -> Bind | Hold | Refusal:
    """Let a member, or a reservation as a member, have its room on a node."""
    cycle = core.cycles[pod.pod_class.scheduler]
    if pod.reserve_pod_of:
        return reservation_events.reserve(core, cycle, pod, row)
    return core.assumptions.make(cycle, pod, row)


def take_back(core: AssumingCore, pod: Pod) -> None:
    """Undo ``assume``."""
    if pod.reserve_pod_of:
        reservation_events.take_back(core, pod)
    else:
        core.assumptions.take_back(pod)


class GroupTrials(Protocol):
    """The parts of ``decisions.GroupDecisions`` that try members."""

    def decide(self, members: list[Pod]) -> GroupTrial:
        """Decide one member after another; what is decided is assumed."""

    def take_back(self, trial: GroupTrial) -> None:
        """Undo all decisions."""

    def confine(self, outside: Mapping[int, Verdict]) -> None:
        """Look at the other nodes alone."""
