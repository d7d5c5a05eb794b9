"""One scheduling cycle for a group of gangs: all of it is decided before anything leaves memory.

Covers: who takes part and in which order, the decisions, release or refusal of the whole.
Does not cover: who may enter the queue (``admission``), single pods (``scheduler.loop.core``).

Rules:
1. All pending children of all gangs of the group leave the queue together. Order: higher priority,
   topology index, the time of the first attempt, name.
2. Each is decided among those that were decided before it: they are assumed, so amounts, ports,
   neighbours, spreading, CPUs, devices and reservations all see them.
3. A member that fits nowhere does not end the cycle while the others may still reach the minimum.
   An error does.
4. Every gang has enough: the decided members go to binding at once, and what is beyond the minimum
   is refused as ordinary pods are. Else everything is taken back, and every member hears of the
   first that failed.
5. Members that failed wait for the events that help them; the others wait for those members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from koordlet.kubeapi.pod_groups import MatchPolicy
from koordlet.scheduler import framework
from koordlet.scheduler.framework import messages
from koordlet.scheduler.gangs import admission, preemption, resource_gap, topology
from koordlet.scheduler.gangs.book import GangBook, GangGroup
from koordlet.scheduler.gangs.gang import Obstacle
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.gangs.trial import FailedMember, GangTally, GroupTrial
from koordlet.scheduler.loop.outcomes import Bind, Outcome, Refusal
from koordlet.scheduler.objects.disruption import Protection
from koordlet.scheduler.objects.pods import Pod, PodClass

#: Written with the binding of each member that is released with others.
_MARKS = (
    "internal.scheduling.koordinator.sh/bind-gang",
    "scheduling.koordinator.sh/bind-gang",
)


class GroupCycle:
    """One cycle for one group."""

    def __init__(
        self, core: GangCore, book: GangBook, group: GangGroup, now: float, *, preempts: bool
    ) -> None:
        self._core, self._book, self._group, self._now = core, book, group, now
        self._preempts = preempts
        #: The nodes outside of the topology domain that is tried.
        self._outside: dict[int, framework.Verdict] = {}
        #: Why members are never tried, empty where they are.
        self._never: dict[str, str] = {}
        #: By class: the version of the columns at which no node took it, and what was said.
        self._unplaced: dict[PodClass, tuple[int, FailedMember]] = {}

    def run(self, first: Pod) -> list[Outcome]:
        """Decide about all pending members; ``first`` has left the queue already."""
        members = self._members(first)
        schedulers = sorted({pod.pod_class.scheduler for pod in self._waiting()})
        if len(schedulers) > 1:
            names = " and ".join(f'"{name}"' for name in schedulers)
            why = "all pods in a single pod group should have the same .spec.schedulerName set"
            return self._refused(members, GroupTrial(), f"{why}, got: {names}", error=True)
        self._never = {pod.key: self._core.why_never(pod) for pod in members}
        nominations = {pod.key: pod.nominated for pod in members}
        for pod in members:
            # The room that was promised to each is room for all.
            self._core.nominated.drop(pod.key)
        trial = self._too_few(members) or self._short(members) or self._try(members)
        if trial.enough:
            return self._release(trial)
        self.take_back(trial)
        return self._failed(members, trial, nominations)

    def _failed(
        self, members: list[Pod], trial: GroupTrial, nominations: Mapping[str, str]
    ) -> list[Outcome]:
        """Refuse the group, or make room for the whole of it."""
        core, message = self._core, self._rejection(trial)
        if not self._may_preempt(members, trial):
            return self._refused(members, trial, message)
        if preemption.awaited(core.pod_cache.columns, members):
            for pod in members:
                core.nominated.put(pod, nominations[pod.key])
            message = messages.joined(message, preemption.TERMINATING)
            return self._refused(members, trial, message, places=nominations)
        core.measures.preemptions += 1
        protection = Protection(tuple(core.budgets.at(self._now)))
        room = preemption.attempt(
            *(core, self._book, self._group, members, protection),
            trial=lambda: self._placements(members),
        )
        if isinstance(room, str):
            return self._refused(members, trial, messages.joined(message, room))
        return self._make_room(members, trial, room)

    def _may_preempt(self, members: list[Pod], trial: GroupTrial) -> bool:
        wants = self._preempts and all(pod.preempts for pod in members) and bool(trial.failed)
        served = (self._core.cycles[pod.pod_class.scheduler].profile.preempts for pod in members)
        possible = not any(failed.error or failed.never for failed in trial.failed)
        return wants and possible and all(served)

    def _placements(self, members: list[Pod]) -> tuple[preemption.Placement, ...] | None:
        """Where the members would go now; nothing stays assumed."""
        trial = self.decide(members)
        chosen = preemption.placements(trial.binds) if trial.enough else None
        self.take_back(trial)
        return chosen

    def _make_room(
        self, members: list[Pod], trial: GroupTrial, room: preemption.GroupPreemption
    ) -> list[Outcome]:
        """Nominate the members for their nodes, and send the victims away."""
        core = self._core
        core.measures.victims.observe(len(room.victims))
        fresh = core.victims.take(room.victims, self._now)
        places = {placement.pod.key: placement.node for placement in room.placements}
        for placement in room.placements:
            for other in core.nominated.behind(placement.pod, placement.node):
                core.nominated.drop(other.key)
                other.nominated = ""
            placement.pod.nominated = placement.node
            core.nominated.put(placement.pod, placement.node)
        outcomes = self._refused(members, trial, preemption.WAITING, places=places)
        first = outcomes[0]
        if isinstance(first, Refusal):
            group = admission.named(self._group.ids)
            outcomes[0] = replace(first, victims=fresh, leaving=room.victims, group=group)
        return outcomes

    # Who takes part.

    def _waiting(self) -> list[Pod]:
        """The children without a node, whichever scheduler they name."""
        assumed = self._core.pod_cache.assumed
        return [
            pod
            for entry in self._group.entries
            for key, pod in entry.children.items()
            if key not in entry.bound and key not in assumed
        ]

    def _members(self, first: Pod) -> list[Pod]:
        queue, members = self._core.queue, [first]
        for child in self._waiting():
            taken = queue.take(child.key) if child.key != first.key else None
            if taken is not None:
                members.append(taken)
        return sorted(members, key=self._order)

    def _order(self, pod: Pod) -> tuple[int, float, float, str]:
        entry = self._core.queue.get(pod.key)
        index = pod.gang.index if pod.gang is not None else None
        return (
            -pod.priority,
            float("inf") if index is None else index,
            entry.first if entry is not None else self._now,
            pod.key,
        )

    def _tallies(self, members: list[Pod]) -> dict[str, GangTally]:
        assumed = self._core.pod_cache.assumed
        tallies = {}
        for entry in self._group.entries:
            waiting = sum(key in assumed and key not in entry.bound for key in entry.children)
            tallies[entry.key] = GangTally(entry, waiting, len(entry.bound))
        for pod in members:
            tallies[_gang(pod)].left += 1
        return tallies

    def _needs(self, members: list[Pod]) -> dict[str, int]:
        """By gang: how many of the members must be decided."""
        tallies = self._tallies(members).values()
        return {tally.entry.key: tally.needed(self._group) for tally in tallies}

    # Deciding.

    def _too_few(self, members: list[Pod]) -> GroupTrial | None:
        """A trial that failed as too few take part; names a member that waits before the queue."""
        tallies = self._tallies(members).values()
        if all(tally.enough(self._group, more=tally.left) for tally in tallies):
            return None
        taking_part = {pod.key for pod in members}
        absent = (pod for pod in self._waiting() if pod.key not in taking_part)
        queued = ((pod, self._core.queue.get(pod.key)) for pod in absent)
        failed = [FailedMember(pod, entry.why, never=True) for pod, entry in queued if entry]
        return GroupTrial(failed=failed)

    def _short(self, members: list[Pod]) -> GroupTrial | None:
        """A trial that failed before it began, as the sums say; ``None``: they may suffice."""
        if any(self._never.values()) or self._topology_key():
            return None
        gap = resource_gap.first(self._core, members, self._needs(members))
        if gap is None:
            return None
        place, message, plugin = gap
        by = frozenset((plugin,))
        failed = [FailedMember(members[place], message, by=by)]
        # One of each class hears of the events that may help.
        others = {pod.pod_class: pod for pod in members if pod is not members[place]}
        failed += [
            FailedMember(pod, message, by=by)
            for pod_class, pod in others.items()
            if pod_class is not members[place].pod_class
        ]
        return GroupTrial(failed=failed, before=place)

    def _try(self, members: list[Pod]) -> GroupTrial:
        """Decide in all nodes, or in the topology domain that takes the most members."""
        columns, [entry, *_] = self._core.pod_cache.columns, self._group.entries
        key = self._topology_key()
        if not key:
            return self.decide(members)
        bound = [(pod, entry.children[pod].node) for pod in sorted(entry.bound)]
        try:
            domains = topology.domains(columns, key, bound)
        except ValueError as error:
            return GroupTrial(failed=[FailedMember(members[0], str(error), error=True)])
        best: tuple[tuple[bool, int], dict[int, framework.Verdict]] | None = None
        for rows in domains.values():
            self._confine(topology.outside(columns, rows))
            trial = self.decide(members)
            self.take_back(trial)
            score = trial.enough, len(trial.binds)
            if best is None or score > best[0]:
                best = score, self._outside
        if best is None:
            message = f"no node has the label {key}: 0/0 placements are available"
            return GroupTrial(failed=[FailedMember(members[0], message, error=True)])
        self._confine(best[1])
        trial = self.decide(members)
        if trial.failed and not trial.enough:
            first = trial.failed[0]
            words = f"0/{len(domains)} placements are available, first placement status"
            trial.failed[0] = replace(first, message=f"{words}: {first.message}")
        return trial

    def _topology_key(self) -> str:
        gang = self._group.entries[0].gang
        return gang.topology_key if gang is not None else ""

    def _confine(self, outside: dict[int, framework.Verdict]) -> None:
        """Look at the other nodes alone; what failed elsewhere may fit there."""
        self._outside = outside
        self._unplaced.clear()

    def decide(self, members: list[Pod]) -> GroupTrial:
        """Decide one member after another; what is decided is assumed."""
        trial, group = GroupTrial(), self._group
        tallies = self._tallies(members)
        for place, pod in enumerate(members):
            tally = tallies[_gang(pod)]
            tally.left -= 1
            outcome = self._decide(pod)
            if isinstance(outcome, Bind):
                trial.binds.append(outcome)
                tally.decided += 1
                continue
            if not trial.failed:
                trial.before = len(trial.binds)
            trial.failed.append(outcome)
            if outcome.error or not tally.enough(group, more=tally.left):
                trial.skipped = members[place + 1 :]
                return trial
        patient = len(trial.binds) > 1 and all(bind.patience for bind in trial.binds)
        trial.enough = not patient and all(tally.enough(group) for tally in tallies.values())
        return trial

    def _decide(self, pod: Pod) -> Bind | FailedMember:
        core = self._core
        if why := self._never[pod.key]:
            return FailedMember(pod, why, never=True)
        version = core.pod_cache.columns.version
        known = self._unplaced.get(pod.pod_class)
        if known is not None and known[0] == version:
            # An equal has failed, and nothing has changed since.
            return replace(known[1], pod=pod)
        cycle = core.cycles[pod.pod_class.scheduler]
        row, promised = core.choose(cycle, pod, self._outside)
        if row < 0:
            failure = cycle.failure(pod, promised)
            failed = FailedMember(pod, failure.message, failure, failure.by)
            self._unplaced[pod.pod_class] = core.pod_cache.columns.version, failed
            return failed
        core.decisions.ranking(cycle, pod, self._now)
        outcome = core.assumptions.make(cycle, pod, row)
        if isinstance(outcome, Refusal):
            error = outcome.reason == "SchedulerError"
            return FailedMember(pod, outcome.message, by=outcome.by, error=error)
        return outcome

    def take_back(self, trial: GroupTrial) -> None:
        """Undo all decisions."""
        for bind in reversed(trial.binds):
            self._core.assumptions.take_back(bind.pod)

    # What follows.

    def _release(self, trial: GroupTrial) -> list[Outcome]:
        """Let the decided members go, and refuse the others as ordinary pods."""
        outcomes: list[Outcome] = []
        self._group.obstacle, marks = trial.obstacle, self._marks(len(trial.binds))
        if trial.binds:
            self._book.satisfy(self._group.entries[0])
        for bind in trial.binds:
            # One plugin's consent is enough: the others would wait for a group that is complete.
            patience = 0.0 if len(trial.binds) > 1 else bind.patience
            outcomes.append(
                Bind(bind.pod, bind.node, {**bind.marks, **marks}, patience, bind.plugins)
            )
            self._core.keep(bind.pod, self._now)
        outcomes += [self._beyond(failed) for failed in trial.failed]
        return outcomes

    def _beyond(self, failed: FailedMember) -> Refusal:
        """Refuse a member beyond the minimum; it may preempt where the gang has enough with it."""
        core, pod = self._core, failed.pod
        if failed.never:
            core.queue.gate(pod, failed.message, self._now)
            return Refusal(pod, failed.message)
        entry = self._book.of(pod)
        gang = entry.gang if entry is not None else None
        alone = gang is None or gang.match_policy is not MatchPolicy.ONLY_WAITING
        if alone and failed.failure is not None:
            cycle = core.cycles[pod.pod_class.scheduler]
            return core.refuse(cycle, pod, failed.failure, self._now)
        core.queue.failed(pod, self._now, failed.by)
        return Refusal(pod, failed.message)

    def _marks(self, number: int) -> Mapping[str, str]:
        native = any(entry.gang is not None and entry.gang.native for entry in self._group.entries)
        if native or number < 2:
            return {}
        ids = ",".join(self._group.ids)
        return {
            **{f"{prefix}-group-id": ids for prefix in _MARKS},
            **{f"{prefix}-member-count": str(number) for prefix in _MARKS},
        }

    def _rejection(self, trial: GroupTrial) -> str:
        native = any(entry.gang is not None and entry.gang.native for entry in self._group.entries)
        errors = [failed for failed in trial.failed if failed.error]
        if errors:
            return f"failed to schedule other pod from a pod group: {errors[0].message}"
        if native:
            confined = trial.failed and "placements are available" in trial.failed[0].message
            waiting = "waiting for minCount pods from a gang to be scheduled"
            return trial.failed[0].message if confined else waiting
        ids = admission.named(self._group.ids)
        why = "its members that are not bound yet being too few for its match policy"
        if trial.failed:
            first = trial.failed[0]
            why = f'member Pod "{first.pod.key}" is unschedulable with reason "{first.message}"'
        elif trial.binds:
            why = "plugins that let every member wait"
        count = trial.before if trial.failed else len(trial.binds)
        return f'GangGroup "{ids}" gets rejected due to {why}, alreadyWaitForBound: {count}'

    def _refused(
        self,
        members: list[Pod],
        trial: GroupTrial,
        message: str,
        *,
        error: bool = False,
        places: Mapping[str, str] = MappingProxyType({}),
    ) -> list[Outcome]:
        """Refuse every member (rule 5); the group has the backoff of its most tried member.

        ``places``: the nodes that members are nominated for.
        """
        self._group.obstacle = trial.obstacle or Obstacle(members[0].key, message, error)
        queue = self._core.queue
        outcomes: list[Outcome] = []
        failed = {each.pod.key: each for each in trial.failed}
        entries = [entry for pod in members if (entry := queue.get(pod.key)) is not None]
        attempts = max((entry.attempts for entry in entries), default=1)
        reason = "SchedulerError" if error or any(each.error for each in trial.failed) else ""
        for pod in members:
            its = failed.get(pod.key)
            if its is not None and its.never:
                queue.gate(pod, its.message, self._now)
                outcomes.append(Refusal(pod, its.message))
                continue
            gate = "GangScheduling" if pod.gang is not None and pod.gang.native else "Coscheduling"
            by = its.by if its is not None else frozenset()
            queue.failed(pod, self._now, by or frozenset((gate,)))
            node = pod.nominated = places.get(pod.key, "")
            outcomes.append(Refusal(pod, message, reason or "Unschedulable", node=node))
        for entry in entries:
            entry.attempts = attempts
        return outcomes


def _gang(pod: Pod) -> str:
    return pod.gang.key if pod.gang is not None else ""
