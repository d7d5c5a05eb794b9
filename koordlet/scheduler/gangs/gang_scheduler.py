"""Gangs in the scheduling loop: what changes, who waits before the queue, whose turn it is.

Covers: the book fed by the core, admission again when a group has changed, outcomes of a cycle one
by one. Does not cover: the cycle itself (``attempt``), single pods (``scheduler.loop.core``).

Rules:
1. The form of a pod is served where its profile has the plugin of that form. Elsewhere the pod is
   refused by name, and never bound alone.
2. What changed since the last decision is settled before the next: members enter the queue or
   leave it as their group is admitted or not, and hear why.
3. The outcomes of a cycle are handed out one by one, before anything else is decided.
4. Before the next decision members give back the room that is held for them where their time has
   passed, a preemptor needs it, they are children no more, or their group is strict now.
5. While a large group is decided, after each part of it as many others are tried at most as part
   of it. Another group meanwhile is decided without a pause.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence

from koordlet.kubeapi.network_topology import NetworkTopology
from koordlet.kubeapi.pod_groups import PodGroup
from koordlet.model.record import dataclass
from koordlet.scheduler.framework import profile
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.gangs import admission, gathering, rejection
from koordlet.scheduler.gangs.attempt import GroupCycle
from koordlet.scheduler.gangs.book import GangBook, GangEntry, GangGroup
from koordlet.scheduler.gangs.decisions import TURN
from koordlet.scheduler.gangs.gang import GangDefaults
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.gangs.group_members import GroupMembers, gang_key
from koordlet.scheduler.gangs.held_room import GATE, HeldRoom, take_from_node
from koordlet.scheduler.gangs.network_tree import ClusterNetwork
from koordlet.scheduler.loop.outcomes import Outcome, Refusal
from koordlet.scheduler.objects import unserved, wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins.coscheduling import (
    Coscheduling,
    CoschedulingArguments,
    GangScheduling,
)
from koordlet.scheduler.reservation.info import ReservationInfo


class GangScheduler:
    """The gangs of one scheduler."""

    def __init__(
        self, core: GangCore, profiles: Mapping[str, Profile], judge: unserved.UnservedKeys
    ) -> None:
        self._core, self._judge = core, judge
        several = profile.plugins(profiles, Coscheduling)
        self.arguments = several[0].arguments if several else CoschedulingArguments()
        self.book = GangBook(
            GangDefaults(
                wait_seconds=self.arguments.wait_seconds,
                match_policy=self.arguments.match_policy,
                gathers=self.arguments.gathers,
            )
        )
        self.network = ClusterNetwork()
        #: Whether gathered gangs have not heard of a change of the network.
        self._network_changed = False
        self._peers = {name for name, served in profiles.items() if served.find(Coscheduling)}
        self._native = {name for name, served in profiles.items() if served.find(GangScheduling)}
        for plugin in (*several, *profile.plugins(profiles, GangScheduling)):
            plugin.attach(self._refusal)
        self.held = HeldRoom(core, self.book)
        core.victims.gives_room = self._gives_room
        self._outcomes: deque[Outcome] = deque()
        #: The group that is decided with pauses, and how many others are tried before it goes on.
        self._paused: PausedCycle | None = None
        self._turns = 0
        #: Whether large groups are decided with pauses, in which ``attempt`` returns ``None``.
        self.pausing = False
        #: Members of groups that failed recently, and until when these are not tried.
        self._denied: dict[str, float] = {}
        #: Members that wait before the queue and have not heard why.
        self._gated: dict[str, None] = {}

    # What changes in the cluster.

    def put(self, pod: Pod) -> None:
        """Take in a pod as the store has it."""
        if self._ignored(pod):
            return
        self.book.put(pod)
        member, entry = self.held.get(pod.key), self.book.of(pod)
        if member is not None and (
            entry is None or entry.key != member.gang or pod.key not in entry.children
        ):
            self.held.leaving[pod.key] = rejection.CHANGED

    def drop(self, pod: Pod) -> None:
        """A pod has gone."""
        self.book.drop(pod)
        member = self.held.get(pod.key)
        if member is not None and member.bind.pod.uid == pod.uid:
            self.held.drop(pod.key)

    def put_pod_group(self, pod_group: PodGroup) -> None:
        """Take in a PodGroup of either kind."""
        self.book.put_pod_group(pod_group)

    def drop_pod_group(self, key: str) -> None:
        """A PodGroup has gone."""
        self.book.drop_pod_group(key)

    def put_network(self, topology: NetworkTopology | None) -> None:
        """Take in the network of the cluster; ``None``: it is not described any more."""
        self.network.put(topology)
        self.network_changed()

    def network_changed(self) -> None:
        """Try gangs that are gathered again: nodes may have other places in the network now."""
        self._network_changed = True

    def binding_failed(self, pod: Pod) -> None:
        """Record that a released member was not bound: its gang may be below its minimum now."""
        entry = self.book.of(pod)
        gang = entry.gang if entry is not None else None
        if entry is None or gang is None:
            return
        left = len(entry.children) - self.undecided(entry)
        if left < gang.min:
            self.book.broke(entry, pod, left)

    def undecided(self, entry: GangEntry) -> int:
        """The number of children of a gang that are neither bound nor about to be."""
        waiting = GroupMembers(self._core, self.book.group(entry)).waiting()
        return sum(gang_key(pod) == entry.key for pod in waiting)

    def reservation_gone(self, info: ReservationInfo, now: float) -> None:
        """Decide groups again as a whole of which members have yet to be bound onto a reservation.

        Those that are bound already stay.
        """
        core, owners = self._core, [pod for pod in info.owners.values() if pod.gang is not None]
        groups = {
            entry.key: self.book.group(entry) for pod in owners if (entry := self.book.of(pod))
        }
        unbound = {pod.key for pod in owners if core.awaits(pod)}
        for group in groups.values():
            members = [
                pod
                for entry in group.entries
                for pod in entry.children
                if pod in core.pod_cache.assumed
            ]
            if unbound.isdisjoint(members):
                continue
            if self._paused is not None and self._paused.cycle.group is group:
                for key in unbound.intersection(members):
                    self._paused.cycle.decisions.gives_room(core.pod_cache.assumed[key])
                continue
            for key in members:
                self.held.drop(key)
                pod = take_from_node(core, core.pod_cache.assumed[key], now)
                if pod is not None:
                    self.book.withdraw(group)
                    core.enqueue(pod, now)

    # Which pods are whose.

    def serves(self, pod: Pod) -> bool:
        """Whether a pod is decided with its gang."""
        membership = pod.gang
        if membership is None or self._ignored(pod):
            return False
        return pod.pod_class.scheduler in (self._native if membership.native else self._peers)

    def unserved(self, pod: Pod) -> str:
        """Why a member is not tried at all; empty: it is (rule 1)."""
        membership = pod.gang
        if membership is None or self._ignored(pod):
            return ""
        scheduler = pod.pod_class.scheduler
        if scheduler in (self._native if membership.native else self._peers):
            gang = self.book.gang(pod)
            return gathering.refusal(gang, self.network) if gang and gang.gathers else ""
        name = f"gang {wire.show(membership.name)} ({membership.form.value})"
        plugin = GangScheduling.name if membership.native else Coscheduling.name
        return f"{name} is not scheduled: profile {scheduler} has no plugin {plugin}; enable it"

    def _ignored(self, pod: Pod) -> bool:
        """Whether the operator ignores the keys of its form; a field is never ignored."""
        return pod.gang is not None and not pod.gang.native and self._judge.ignores_keys

    def _refusal(self, pod: Pod) -> str:
        message = admission.refusal(self.book, pod)
        if not message or self._ignored(pod):
            return ""
        self._core.nominated.put(pod, "")
        self._gated[pod.key] = None
        return message

    def waiting(self) -> int:
        """The number of gangs with children that are not bound."""
        return sum(len(entry.bound) < len(entry.children) for entry in self.book)

    # Deciding.

    @property
    def paused(self) -> bool:
        """Whether a large group is being decided."""
        return self._paused is not None

    def next(self, now: float) -> Outcome | None:
        """What is to be reported before anything else is decided; ``None``: nothing."""
        if self._network_changed:
            self._network_changed = False
            gathers = (each.key for each in self.book if each.gang and each.gang.gathers)
            self.book.unsettled.update(dict.fromkeys(gathers))
        if self.book.unsettled:
            self._settle(now)
        if self.held:
            self._give_room(now)
        if self._denied:
            self._admit_again(now)
        if self._outcomes:
            return self._outcomes.popleft()
        while self._gated:
            key = next(iter(self._gated))
            del self._gated[key]
            entry = self._core.queue.get(key)
            if entry is not None and entry.place is QueuePlace.GATED and entry.why:
                return Refusal(entry.pod, entry.why)
        return None

    def due(self) -> bool:
        """Whether the group that is being decided goes on now (rule 5)."""
        if self._paused is None:
            return False
        self._turns -= 1
        return self._turns < 0 or not len(self._core.queue)

    def attempt(self, pod: Pod, now: float) -> Outcome | None:
        """Try the group of a member that was taken from the queue; ``None``: it pauses."""
        entry = self.book.of(pod)
        if entry is None or (why := self._refusal(pod)):
            why = self._refusal(pod)
            self._gated.pop(pod.key, None)
            self._core.queue.gate(pod, why, now)
            return Refusal(pod, why)
        group = self.book.group(entry)
        if self._paused is not None and self._paused.cycle.group is group:
            self._paused.cycle.decisions.late.append(pod)
            return None
        if group.denied_until > now:
            self._denied[pod.key] = group.denied_until
            self._core.queue.failed(pod, now, frozenset((GATE,)))
            return Refusal(pod, rejection.recently(entry.key.partition("@")[0]))
        cycle = self._cycle(group, now)
        pausing = self.pausing and self._paused is None
        paused = PausedCycle(cycle, cycle.run(pod, pausing=pausing), entry.key)
        return self._go_on(paused, now)

    def resume(self, now: float) -> Outcome | None:
        """Go on with the group that pauses; ``None``: it pauses again, or there is none."""
        paused = self._paused
        return None if paused is None else self._go_on(paused, now)

    def _cycle(self, group: GangGroup, now: float) -> GroupCycle:
        return GroupCycle(self.held, self.network, group, now, self.arguments)

    def _go_on(self, paused: PausedCycle, now: float) -> Outcome | None:
        began = self._core.spent()
        try:
            next(paused.steps)
        except StopIteration as end:
            if self._paused is paused:
                self._paused = None
            paused.seconds += self._core.spent() - began
            return self._finish(paused, end.value, now)
        self._paused, self._turns = paused, TURN
        paused.seconds += self._core.spent() - began
        return None

    def _finish(self, paused: PausedCycle, outcomes: list[Outcome], now: float) -> Outcome | None:
        if not outcomes:
            return self.next(now)
        # The status of a PodGroup says what became of it.
        self.book.touched[paused.gang] = None
        result = _result(outcomes)
        if result == "unschedulable":
            paused.cycle.group.denied_until = now + self.arguments.backoff_seconds
        self._core.measures.gang_cycle(result, paused.seconds)
        for place, outcome in enumerate(outcomes):
            # Of a group that waits the first member speaks for all.
            if not (place and isinstance(outcome, Refusal)):
                self._core.decisions.note(outcome, None, now)
        self._outcomes.extend(outcomes)
        return self._outcomes.popleft()

    # Room that is held.

    def _gives_room(self, pod: Pod) -> bool:
        """Whether a victim is a member that can be decided anew instead of being deleted."""
        if pod.key in self.held:
            self.held.leaving[pod.key] = rejection.YIELDED
            return True
        return self._paused is not None and self._paused.cycle.decisions.gives_room(pod)

    def _give_room(self, now: float) -> None:
        """Let members lose the room that was held for them (rule 4)."""
        for member in self.held.due(now):
            group = self.book.group_of(member.gang)
            if group is not None:
                text = rejection.timeout(group, member.seconds)
                self.held.leaving.setdefault(member.bind.pod.key, text)
        for key, why in list(self.held.leaving.items()):
            losing = self.held.get(key)
            refusal = self.held.give_up(losing, why, now) if losing is not None else None
            self.held.leaving.pop(key, None)
            if refusal is not None:
                self._outcomes.append(refusal)

    def _admit_again(self, now: float) -> None:
        """Wake the members of groups that failed long enough ago."""
        for key, until in list(self._denied.items()):
            if until <= now:
                del self._denied[key]
                self._core.queue.rouse(key, now)

    def _settle(self, now: float) -> None:
        """Admit the members of groups that have changed, or keep them before the queue (rule 2)."""
        changed, seen = list(self.book.unsettled), set()
        self.book.unsettled.clear()
        for key in changed:
            entry = self.book.get(key)
            group = self.book.group(entry) if entry is not None else None
            if group is not None and id(group) not in seen:
                seen.add(id(group))
                self._settle_group(group, now)

    def _settle_group(self, group: GangGroup, now: float) -> None:
        queue, roused, ready = self._core.queue, False, group.ready
        have_objects = all(entry.pod_group is not None for entry in group.entries)
        for pod in list(group.children()):
            waiting = queue.get(pod.key)
            if waiting is None or waiting.place is QueuePlace.TAKEN:
                continue
            own = waiting.pod.gang
            # Of a complete group only those wait whose form has an object that is not there.
            admitted = ready and own is not None and (have_objects or not own.has_object)
            why = "" if admitted else admission.refusal(self.book, waiting.pod)
            why = why or self._core.why_never(waiting.pod)
            if why == waiting.why:
                if not roused and waiting.place is QueuePlace.UNSCHEDULABLE:
                    # What changed may be the minimum: one member takes all the others with it.
                    queue.rouse(pod.key, now)
                    roused = True
            elif self.serves(waiting.pod):
                if why:
                    # What was promised to it would be nobody's: it is not tried.
                    self._core.nominated.put(waiting.pod, "")
                    queue.gate(waiting.pod, why, now)
                    self._gated[pod.key] = None
                else:
                    self._core.enqueue(waiting.pod, now)
        if self.held and (waiting_members := self.held.of(group)):
            if group.strict and not self.arguments.reject_share:
                for member in waiting_members:
                    self.held.leaving[member.bind.pod.key] = rejection.STRICT
            else:
                self._outcomes.extend(self._cycle(group, now).complete())


@dataclass(slots=True, eq=False)
class PausedCycle:
    """The cycle of a group that is not at its end."""

    cycle: GroupCycle
    steps: Generator[None, None, list[Outcome]]
    #: The gang of its first member.
    gang: str
    #: Time that it has taken.
    seconds: float = 0.0


def _result(outcomes: Sequence[Outcome]) -> str:
    """The result of a cycle, as the metric names it."""
    refusals = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
    if len(refusals) < len(outcomes):
        return "scheduled"
    if any(refusal.reason == "SchedulerError" for refusal in refusals):
        return "error"
    return "waiting_on_preemption" if any(refusal.node for refusal in refusals) else "unschedulable"
