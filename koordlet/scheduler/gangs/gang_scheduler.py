"""Gangs in the scheduling loop: what changes, who waits before the queue, whose turn it is.

Covers: the book fed by the core, admission again when a group has changed, outcomes of a cycle one
by one. Does not cover: the cycle itself (``attempt``), single pods (``scheduler.loop.core``).

Rules:
1. The form of a pod is served where its profile has the plugin of that form. Elsewhere the pod is
   refused by name, and never bound alone.
2. What changed since the last decision is settled before the next: members enter the queue or
   leave it as their group is admitted or not, and hear why.
3. The outcomes of a cycle are handed out one by one, before anything else is decided.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from koordlet.kubeapi.network_topology import NetworkTopology
from koordlet.kubeapi.pod_groups import PodGroup
from koordlet.scheduler.framework import profile
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.gangs import admission, gathering
from koordlet.scheduler.gangs.attempt import GroupCycle
from koordlet.scheduler.gangs.book import GangBook, GangGroup
from koordlet.scheduler.gangs.gang import GangDefaults
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.gangs.gathering import Gathering
from koordlet.scheduler.gangs.network_tree import ClusterNetwork
from koordlet.scheduler.loop.outcomes import Outcome, Refusal
from koordlet.scheduler.objects import unserved, wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins.coscheduling import (
    Coscheduling,
    CoschedulingArguments,
    GangScheduling,
)


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
        self._outcomes: deque[Outcome] = deque()
        #: Members that wait before the queue and have not heard why.
        self._gated: dict[str, None] = {}

    # What changes in the cluster.

    def put(self, pod: Pod) -> None:
        """Take in a pod as the store has it."""
        if not self._ignored(pod):
            self.book.put(pod)

    def drop(self, pod: Pod) -> None:
        """A pod has gone."""
        self.book.drop(pod)

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

    # Which pods are whose.

    def serves(self, pod: Pod) -> bool:
        """Whether a pod is decided with its gang."""
        membership = pod.gang
        if membership is None or pod.reserve_pod_of or self._ignored(pod):
            return False
        return pod.pod_class.scheduler in (self._native if membership.native else self._peers)

    def unserved(self, pod: Pod) -> str:
        """Why a member is not tried at all; empty: it is (rule 1)."""
        membership = pod.gang
        if membership is None or self._ignored(pod):
            return ""
        serves, entry = self.serves(pod), self.book.of(pod)
        gang = entry.gang if entry is not None else None
        if serves:
            if gang is None or not gang.gathers:
                return ""
            return gathering.refusal(gang, self.network)
        name = f"gang {wire.show(membership.name)} ({membership.form.value})"
        if pod.reserve_pod_of:
            return f"{name} of a reservation is not supported by this scheduler"
        plugin = GangScheduling.name if membership.native else Coscheduling.name
        scheduler = pod.pod_class.scheduler
        return f"{name} is not scheduled: profile {scheduler} has no plugin {plugin}; enable it"

    def _gathering(self, group: GangGroup) -> Gathering | None:
        """Where the members of a group go that are gathered; ``None``: none is."""
        gathers = any(entry.gang is not None and entry.gang.gathers for entry in group.entries)
        tree = self.network.tree(self._core.pod_cache.columns) if gathers else None
        return None if tree is None else Gathering(self._core, self.book, tree)

    def _ignored(self, pod: Pod) -> bool:
        """Whether the operator ignores the keys of its form; a field is never ignored."""
        return pod.gang is not None and not pod.gang.native and self._judge.ignores_keys

    def _refusal(self, pod: Pod) -> str:
        if self._ignored(pod):
            return ""
        message = admission.refusal(self.book, pod)
        if message:
            self._core.nominated.drop(pod.key)
            self._gated[pod.key] = None
        return message

    def waiting(self) -> int:
        """The number of gangs with children that are not bound."""
        return sum(len(entry.bound) < len(entry.children) for entry in self.book)

    # Deciding.

    def next(self, now: float) -> Outcome | None:
        """What is to be reported before anything else is decided; ``None``: nothing."""
        if self._network_changed:
            self._network_changed = False
            gathers = (each.key for each in self.book if each.gang and each.gang.gathers)
            self.book.unsettled.update(dict.fromkeys(gathers))
        if self.book.unsettled:
            self._settle(now)
        if self._outcomes:
            return self._outcomes.popleft()
        while self._gated:
            key = next(iter(self._gated))
            del self._gated[key]
            entry = self._core.queue.get(key)
            if entry is not None and entry.place is QueuePlace.GATED and entry.why:
                return Refusal(entry.pod, entry.why)
        return None

    def attempt(self, pod: Pod, now: float) -> Outcome:
        """Try the group of a member that was taken from the queue."""
        entry = self.book.of(pod)
        if entry is None or (why := self._refusal(pod)):
            why = self._refusal(pod)
            self._gated.pop(pod.key, None)
            self._core.queue.gate(pod, why, now)
            return Refusal(pod, why)
        group, preempts = self.book.group(entry), self.arguments.preempts
        began = self._core.spent()
        cycle = GroupCycle(
            *(self._core, self.book, group, now),
            preempts=preempts,
            gathering=self._gathering(group),
        )
        outcomes = cycle.run(pod)
        # The status of a PodGroup says what became of it.
        self.book.touched[entry.key] = None
        self._core.measures.gang_cycle(_result(outcomes), self._core.spent() - began)
        for place, outcome in enumerate(outcomes):
            # Of a group that waits the first member speaks for all.
            if not (place and isinstance(outcome, Refusal)):
                self._core.decisions.note(outcome, None, now)
        self._outcomes.extend(outcomes[1:])
        return outcomes[0]

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
        queue, roused = self._core.queue, False
        for pod in list(group.children()):
            waiting = queue.get(pod.key)
            if waiting is None or waiting.place is QueuePlace.TAKEN:
                continue
            why = admission.refusal(self.book, waiting.pod) or self._core.why_never(waiting.pod)
            if why == waiting.why:
                if not roused and waiting.place is QueuePlace.UNSCHEDULABLE:
                    # What changed may be the minimum: one member takes all the others with it.
                    queue.rouse(pod.key, now)
                    roused = True
            elif self.serves(waiting.pod):
                if why:
                    queue.gate(waiting.pod, why, now)
                    self._gated[pod.key] = None
                else:
                    self._core.enqueue(waiting.pod, now)


def _result(outcomes: Sequence[Outcome]) -> str:
    """The result of a cycle, as the metric names it."""
    refusals = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
    if len(refusals) < len(outcomes):
        return "scheduled"
    if any(refusal.reason == "SchedulerError" for refusal in refusals):
        return "error"
    return "waiting_on_preemption" if any(refusal.node for refusal in refusals) else "unschedulable"
