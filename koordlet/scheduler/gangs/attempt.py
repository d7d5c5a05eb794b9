"""One scheduling cycle for a group of gangs: all of it is decided before anything leaves memory.

Covers: what is tried, and what follows: release, waiting, preemption, refusal. Does not cover: who
may enter the queue (``admission``), who takes part (``group_members``), each decision
(``decisions``), each outcome (``group_outcomes``), single pods (``scheduler.loop.core``).

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
6. Where no gang of the group is strict, or each lacks no more of its minimum than
   ``podGroupRejectPercentage`` allows, the decided members wait and their room is held.
7. A large group is decided with pauses in which other pods have their turn (``decisions``); one
   confined to a topology domain, gathered, or with reservations as members, without.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework import messages
from koordlet.scheduler.gangs import (
    admission,
    preemption,
    rejection,
    resource_gap,
    topology,
)
from koordlet.scheduler.gangs.book import GangGroup
from koordlet.scheduler.gangs.decisions import GroupDecisions
from koordlet.scheduler.gangs.gathering import Gathering
from koordlet.scheduler.gangs.group_members import GroupMembers
from koordlet.scheduler.gangs.group_outcomes import GroupOutcomes
from koordlet.scheduler.gangs.held_room import HeldRoom
from koordlet.scheduler.gangs.network_tree import ClusterNetwork
from koordlet.scheduler.gangs.trial import FailedMember, GroupTrial
from koordlet.scheduler.loop.outcomes import Bind, Outcome, Refusal
from koordlet.scheduler.objects.disruption import Protection
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins.coscheduling import CoschedulingArguments


class GroupCycle:
    """One cycle for one group."""

    def __init__(
        self,
        held: HeldRoom,
        network: ClusterNetwork,
        group: GangGroup,
        now: float,
        arguments: CoschedulingArguments,
    ) -> None:
        self._core, self._book, self._held, self._now = held.core, held.book, held, now
        self.group, self._network, self._arguments = group, network, arguments
        self.decisions = self._decisions_of(group)
        self._members = self.decisions.members
        self._outcomes = GroupOutcomes(held, group, now)

    def run(self, first: Pod, *, pausing: bool) -> Generator[None, None, list[Outcome]]:
        """Decide about all pending members; ``first`` has left the queue already."""
        core = self._core
        members = self._members.take([first, *self._held.misfits(self.group, self._now)], self._now)
        schedulers = sorted({pod.pod_class.scheduler for pod in self._members.waiting()})
        if len(schedulers) > 1:
            names = " and ".join(f'"{name}"' for name in schedulers)
            why = "all pods in a single pod group should have the same .spec.schedulerName set"
            return self._outcomes.refused(members, GroupTrial(), f"{why}, got: {names}", error=True)
        nominations = {pod.key: pod.nominated for pod in members}
        for pod in members if core.nominated else ():
            # The room that was promised to each is room for all.
            core.nominated.drop(pod.key)
        trial = self._members.too_few(members) or self._short(members)
        whole = self._topology_key() or self.decisions.gathers
        if trial is None and (whole or any(pod.reserve_pod_of for pod in members)):
            trial = self._try(members)
        elif trial is None:
            trial = GroupTrial()
            yield from self.decisions.steps(trial, members, pausing=pausing)
            if trial.visible:
                members = self._present(trial)
            if trial.outdated:
                return self._begin_anew(trial, members)
        if trial.enough:
            return self._outcomes.release(trial)
        if trial.waits and (trial.binds or self._held.of(self.group)):
            return self._wait(members, trial)
        self.decisions.take_back(trial)
        return self._failed(members, trial, nominations)

    def complete(self) -> list[Outcome]:
        """Release members that wait where the minimum was lowered to what there is."""
        return self._outcomes.release(GroupTrial()) if self._members.enough() else []

    def _present(self, trial: GroupTrial) -> list[Pod]:
        """The members that are still there after pauses; of others nothing is left to say."""
        queue = self._core.queue

        def there(pod: Pod) -> bool:
            entry = queue.get(pod.key)
            return entry is not None and entry.pod.uid == pod.uid

        trial.failed[:] = [failed for failed in trial.failed if there(failed.pod)]
        trial.skipped[:] = filter(there, trial.skipped)
        several = (bind.pod for bind in trial.binds), (failed.pod for failed in trial.failed)
        members = [pod for pods in (*several, trial.skipped) for pod in pods]
        return self._members.ordered(members, self._now)

    def _begin_anew(self, trial: GroupTrial, members: list[Pod]) -> list[Outcome]:
        """Let the members enter the queue again: they are of another group now."""
        self.decisions.take_back(trial)
        for pod in members:
            self._core.enqueue(pod, self._now)
        return []

    def _wait(self, members: list[Pod], trial: GroupTrial) -> list[Outcome]:
        """Hold the room of the decided members, unless two groups block each other.

        Then the younger one gives way: whose first waiting member was decided later.
        """
        own = [*self._held.pods(self.group), *(bind.pod for bind in trial.binds)]
        other = self._blocked(own)
        if other is None:
            return self._hold(members, trial)
        if self._held.since(other) < self._held.since(self.group):
            self.decisions.take_back(trial)
            message = rejection.gave_way(self.group, other)
            outcomes = self._outcomes.refused(members, trial, message)
            outcomes += self._held.lose(self.group, message, self._now)
            for pod in GroupMembers(self._core, other).past_gates():
                self._core.queue.rouse(pod.key, self._now)
            return outcomes
        message = rejection.gave_way(other, self.group)
        gone = self._held.lose(other, message, self._now)
        never = [failed for failed in trial.failed if failed.never]
        again = self.decisions.place([each.pod for each in trial.failed if not each.never])
        trial.binds += again.binds
        trial.failed = [*again.failed, *never]
        released = self._outcomes.release(trial) if again.enough else self._hold(members, trial)
        return released + gone

    def _hold(self, members: list[Pod], trial: GroupTrial) -> list[Outcome]:
        """Hold the room of as many decided members as the share of the cluster allows."""
        share = self._arguments.hold_share
        within = self._held.within((bind.pod for bind in trial.binds), share)
        texts: dict[str, str] = {}
        beyond = GroupTrial(visible=trial.visible)
        for bind in trial.binds:
            pod, gang = bind.pod, self._book.gang(bind.pod)
            if isinstance(bind, Bind) and gang is not None and pod.key in within:
                self._held.put(bind, gang.key, gang.wait_seconds, self._now)
            else:
                beyond.binds.append(bind)
                texts[pod.key] = rejection.beyond_share(self.group, share)
        self.decisions.take_back(beyond)
        waiting = self._held.of(self.group)
        for member in waiting:
            where, seconds = member.bind.node, member.seconds
            texts[member.bind.pod.key] = rejection.waiting(
                self.group, trial, len(waiting), where, seconds
            )
        return self._outcomes.refused(members, trial, rejection.message(self.group, trial), texts)

    def _decisions_of(self, group: GangGroup) -> GroupDecisions:
        """The decisions about a group: what its gangs may lack is what their mode says."""
        tolerated = self._arguments.reject_share if group.strict else 1.0
        gathering = Gathering.of(self._held, self._network, group)
        return GroupDecisions(self._held, group, self._now, tolerated, gathering)

    def _blocked(self, decided: Sequence[Pod]) -> GangGroup | None:
        """A group that waits with its room held, while each keeps the other from being complete."""
        others = [group for group in self._held.groups() if group is not self.group]
        theirs = [self._held.pods(group) for group in others]
        if not others or not self.decisions.fits_without(pod for pods in theirs for pod in pods):
            return None
        pairs = zip(others, theirs, strict=True)
        return next(
            (
                group
                for group, pods in pairs
                if self.decisions.fits_without(pods)
                and self._decisions_of(group).fits_without(decided)
            ),
            None,
        )

    def _failed(
        self, members: list[Pod], trial: GroupTrial, nominations: Mapping[str, str]
    ) -> list[Outcome]:
        """Refuse the group, or make room for the whole of it."""
        core, message = self._core, rejection.message(self.group, trial)
        if not self._may_preempt(members, trial):
            return self._outcomes.refused(members, trial, message)
        if preemption.awaited(core.pod_cache.columns, members):
            for pod in members:
                core.nominated.put(pod, nominations.get(pod.key, ""))
            message = messages.joined(message, preemption.TERMINATING)
            return self._outcomes.refused(members, trial, message, places=nominations)
        core.measures.preemptions += 1
        protection = Protection(tuple(core.budgets.at(self._now)))
        room = preemption.attempt(
            *(core, self._book, self.group, members, protection),
            trial=lambda: self._placements(members),
        )
        if isinstance(room, str):
            return self._outcomes.refused(members, trial, messages.joined(message, room))
        return self._make_room(members, trial, room)

    def _may_preempt(self, members: list[Pod], trial: GroupTrial) -> bool:
        wants = self._arguments.preempts and all(pod.preempts for pod in members)
        possible = not any(failed.error or failed.never for failed in trial.failed)
        served = (self._core.cycles[pod.pod_class.scheduler].profile.preempts for pod in members)
        return wants and self.group.strict and bool(trial.failed) and possible and all(served)

    def _placements(self, members: list[Pod]) -> tuple[preemption.Placement, ...] | None:
        """Where the members would go now; nothing stays assumed."""
        trial = self.decisions.place(members)
        chosen = preemption.placements(trial.binds) if trial.enough else None
        self.decisions.take_back(trial)
        return chosen

    def _make_room(
        self, members: list[Pod], trial: GroupTrial, room: preemption.GroupPreemption
    ) -> list[Outcome]:
        """Nominate the members for their nodes, and send the victims away."""
        core = self._core
        core.measures.victims.observe(len(room.victims))
        nodes = {placement.node for placement in room.placements}
        waited = nodes & core.victims.leaving.keys()
        fresh = core.victims.take(room.victims, self._now)
        for victim in fresh:
            core.wake(ClusterEvent(ActionType.POD_ENDING, pod=victim), self._now)
        places = {placement.pod.key: placement.node for placement in room.placements}
        for placement in room.placements:
            for other in core.nominated.outrank(placement.pod, placement.node):
                if placement.node in waited:
                    core.queue.rouse(other.key, self._now)
        outcomes = self._outcomes.refused(members, trial, preemption.WAITING, places=places)
        first = outcomes[0]
        if isinstance(first, Refusal):
            group = admission.named(self.group.ids)
            outcomes[0] = replace(first, victims=fresh, leaving=room.victims, group=group)
        return outcomes

    # Deciding.

    def _short(self, members: list[Pod]) -> GroupTrial | None:
        """A trial that failed before it began, as the sums say; ``None``: they may suffice."""
        alike = {pod.pod_class: pod for pod in members}
        if self._topology_key() or any(map(self.decisions.why_never, alike.values())):
            return None
        gap = resource_gap.first(self._core, members, self._members.needs(members))
        if gap is None:
            return None
        place, message, plugin = gap
        by = frozenset((plugin,))
        failed = [FailedMember(members[place], message, by=by)]
        # One of each class hears of the events that may help.
        failed += [
            FailedMember(pod, message, by=by)
            for pod_class, pod in alike.items()
            if pod_class is not members[place].pod_class
        ]
        return GroupTrial(failed=failed, before=place)

    def _try(self, members: list[Pod]) -> GroupTrial:
        """Decide in all nodes, in the network's tree, or in the best topology domain."""
        key, [entry, *_] = self._topology_key(), self.group.entries
        if not key or self.decisions.gathers:
            return self.decisions.place(members)
        bound = [(pod, entry.children[pod].node) for pod in sorted(entry.bound)]
        return topology.attempt(self.decisions, self._core.pod_cache.columns, key, members, bound)

    def _topology_key(self) -> str:
        gang = self.group.entries[0].gang
        return gang.topology_key if gang is not None else ""
