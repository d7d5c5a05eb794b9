"""The scheduler's state and its decision about the next pod: no I/O, no clock.

Covers: the effect of each object change on queue and pod cache; one scheduling attempt; its result
after the store has answered. Does not cover: requests to the store (``binder``, ``reporter``),
which objects are watched (``event_handlers``).

Rules:
1. All state changes in calls, one after the other: nothing changes during an attempt.
2. What the store says of a pod is newer than what the scheduler has assumed of it.
3. A pod that is bound elsewhere, deleted or recreated during its binding is no longer ours to bind:
   ``bound`` and ``unbound`` name the UID, and leave pods alone that are not assumed any more.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent, changes, difference
from koordlet.scheduler.framework import dryrun, messages, profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.framework.queue import Awake, Backoff, Queue, QueuePlace, everybody
from koordlet.scheduler.gangs.gang_scheduler import GangScheduler
from koordlet.scheduler.loop import capacity_scheduler, held_place, preemptors, reservation_events
from koordlet.scheduler.loop.assumptions import Assumptions
from koordlet.scheduler.loop.fair_preemption import FairPreemption
from koordlet.scheduler.loop.metrics import SchedulerMetrics
from koordlet.scheduler.loop.outcomes import Nominations, Outcome, Refusal
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.loop.quota_scheduler import QuotaScheduler
from koordlet.scheduler.loop.recent_decisions import RecentDecisions
from koordlet.scheduler.loop.victims import Victims
from koordlet.scheduler.objects import disruption, unserved
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.plugins import conversion
from koordlet.scheduler.plugins.reservation import Reservation
from koordlet.scheduler.plugins.resources import NodeResourcesFit
from koordlet.scheduler.reservation.cache import ReservationCache

_NOWHERE: Mapping[int, framework.Verdict] = MappingProxyType({})


class Core:
    """The state of one scheduler."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        measures: SchedulerMetrics | None = None,
        spent: Callable[[], float] = time.perf_counter,
        backoff: Backoff | None = None,
        judge: unserved.UnservedKeys | None = None,
        *,
        decoder: Decoder | None = None,
        pod_cache: PodCache | None = None,
        decisions: RecentDecisions | None = None,
        front_across_priorities: bool = False,
        disrupted: dryrun.Disrupted | None = None,
        fair: FairPreemption | None = None,
    ) -> None:
        self.measures = SchedulerMetrics() if measures is None else measures
        if decoder is None:
            decoder = Decoder({}, profile.deciding(profiles.values()), judge)
        self.decoder, self.priorities = decoder, decoder.priorities
        self.pod_cache = PodCache() if pod_cache is None else pod_cache
        self.reservations = ReservationCache(
            self.pod_cache.columns, self.decoder, conversion.Chooser(profiles).ready
        )
        sorter = next((served.sorter for served in profiles.values() if served.sorter), None)
        by = {} if sorter is None else {"key": sorter.queue_key}
        self.queue = Queue(backoff=backoff, front_across_priorities=front_across_priorities, **by)
        self.budgets = disruption.DisruptionBudgets()
        self.nominated = Nominations(functools.partial(held_place.holds, self.reservations))
        self.decisions = decisions or RecentDecisions()
        self._profiles, self.disrupted, self.spent, self.fair = profiles, disrupted, spent, fair
        self.victims = Victims(
            self.pod_cache, self.budgets, self.nominated.leave, self.nominated.left
        )
        self.assumptions = Assumptions(self.pod_cache, profiles)
        self._plugins: dict[str, framework.Plugin] = {}
        for plugin in (plugin for served in profiles.values() for plugin in served.plugins):
            self._plugins[plugin.name] = plugin
            if isinstance(plugin, Reservation):
                plugin.attach(self.reservations)
        self._begin()
        self.gangs = GangScheduler(self, profiles, self.decoder.judge)
        self.quotas: QuotaScheduler = capacity_scheduler.meaning(profiles)(
            self, profiles, self.decoder.judge
        )

    def _begin(self) -> None:
        self.cycles = {
            name: Cycle(self.pod_cache.columns, profile, self.disrupted)
            for name, profile in self._profiles.items()
        }

    # What changes in the cluster.

    def node(self, old: Node | None, new: Node | None, now: float) -> None:
        """Take in a change of a node; ``new`` is ``None`` where it was deleted."""
        self.quotas.put_node(old, new)
        if new is None:
            if old is not None:
                self.pod_cache.drop(old.name)
                preemptors.node_changed(self, old.name, now)
                self.wake(ClusterEvent(ActionType.NODE_GONE, node=old), now)
            return
        what = difference(old, new) if old is not None else ActionType.NODE_NEW
        if what is not None:
            self.pod_cache.put(new)
            self.reservations.node_came(new.name)
            preemptors.node_changed(self, new.name, now)
            self.wake(ClusterEvent(what, node=new), now)

    def pod(self, old: Pod | None, new: Pod | None, now: float) -> None:
        """Take in a change of a pod; ``new`` is ``None`` where it was deleted."""
        if new is None:
            if old is not None:
                self.gangs.drop(old)
                self.quotas.drop(old)
                self._gone(old, now)
            return
        if new.terminating:
            self.budgets.ends(new.uid)
        if new.uid in self.victims:
            new.terminating = new.preempted = True
        self.gangs.put(new)
        if new.node:
            self._seen_on_node(new, now)
        else:
            self._seen_waiting(new, now)
        self.quotas.put(new)

    def _gone(self, old: Pod, now: float) -> None:
        self.nominated.drop(old.key)
        self.victims.drop(old.uid)
        self.queue.forget(old)
        known = self.pod_cache.get(old.key)
        if known is not None:
            assumed = known.key in self.pod_cache.assumed
            self.pod_cache.leave(known)
            if assumed:
                self.assumptions.undo(known)
            self.wake(ClusterEvent(ActionType.POD_GONE, pod=known), now)

    def _seen_on_node(self, new: Pod, now: float) -> None:
        known = self.pod_cache.get(new.key)
        assumed = self.pod_cache.assumed.pop(new.key, None)
        stray = assumed is not None and (assumed.node, assumed.uid) != (new.node, new.uid)
        self.pod_cache.settle(new, new.node)
        if assumed is not None and stray:
            self.assumptions.undo(assumed)
        if known is None or assumed is not None:
            self.nominated.drop(new.key, new.node)
            self._placed(new, now)
        for event in changes(known, new, moved=stray):
            self.wake(event, now)

    def _seen_waiting(self, new: Pod, now: float) -> None:
        known = self.pod_cache.get(new.key)
        if known is not None and known.uid != new.uid:
            self._gone(known, now)
        elif known is not None:
            if known.key in self.pod_cache.assumed:
                node = known.node
                new.inherit(known)
                self.pod_cache.settle(new, node)
                self.pod_cache.assumed[new.key] = new
            return
        if new.pod_class.scheduler not in self.cycles:
            return
        entry = self.queue.get(new.key)
        self.nominated.renew(new, None if entry is None else entry.pod)
        if entry is None or _decisive(entry.pod) != _decisive(new):
            self.enqueue(new, now, changed=True)
        else:
            self.queue.renew(new)

    def enqueue(self, pod: Pod, now: float, *, changed: bool = False) -> None:
        """Let a waiting pod enter the queue, or keep it before it; one that changed backs off."""
        if pod.terminating:
            self.queue.gate(pod, f"skip schedule deleting pod: {pod.key}", now)
            return
        for plugin in self.cycles[pod.pod_class.scheduler].gates:
            if why := plugin.pre_enqueue(pod):
                # The API server says so itself: SchedulingGated.
                self.queue.gate(pod, why, now)
                return
        if not (changed and self.queue.reconsider(pod, now)):
            self.queue.add(pod, now)
            self.measures.incoming("active", "PodAdd")

    def wake(self, event: ClusterEvent, now: float, awake: Awake | None = None) -> None:
        """Wake the pods that an event may help.

        ``awake``: those that it gives room; unless given, all but preemptors with victims left.
        """
        self.quotas.changed(event)
        awake = awake or preemptors.awake(self, event)
        for name in self.queue.rejectors():
            plugin = self._plugins.get(name)
            if plugin is None:
                self.queue.wake_by(name, lambda _: True, now)
            elif plugin.concerned(event) and plugin.listens & event.what:
                helps = functools.partial(plugin.helps, event)
                among = awake if isinstance(plugin, NodeResourcesFit) else everybody
                woken = self.queue.wake_by(name, helps, now, among)
                if woken:
                    self.measures.incoming("backoff", str(event.what.name), woken)

    def rouse(self, key: str, now: float) -> bool:
        """Try a waiting pod again, because something of its own has changed; whether it waits."""
        entry = self.queue.get(key)
        if entry is not None and entry.place is QueuePlace.GATED:
            self.enqueue(entry.pod, now)
        elif entry is not None:
            self.queue.rouse(key, now)
        return entry is not None

    def forget_views(self, concerned: Callable[[PodClass], bool]) -> None:
        """Forget the views of some classes: objects that they depend on have changed."""
        self.pod_cache.columns.version += 1
        for cycle in self.cycles.values():
            cycle.drop(concerned)

    def rebuild(self) -> None:
        """Rebuild all derived state from nodes and pods."""
        self.pod_cache.rebuild()
        self.reservations.rebase(self.pod_cache.columns)
        self._begin()

    def tidy(self) -> None:
        """Drop classes and columns that no pod uses any more."""
        living = self.pod_cache.classes() | {entry.pod.pod_class for entry in self.queue}
        living |= self.reservations.classes()
        if len(self.decoder) > 2 * len(living) + 64:
            self.decoder.keep(living)
        if self.pod_cache.littered(len(living)):
            self.rebuild()

    # One attempt.

    def step(self, now: float) -> Outcome | None:
        """Try the next pod; ``None``: there is none, or ``gangs.paused``."""
        preemptors.wake_by_withdrawn(self, now)
        self.quotas.settle(now)
        if (outcome := self.gangs.next(now)) is not None:
            return outcome
        if self.gangs.due():
            return self.gangs.resume(now)
        pod = self.queue.pop(now)
        return None if pod is None else self.attempt(pod, now)

    def attempt(self, pod: Pod, now: float) -> Outcome | None:
        """Try a pod that was taken from the queue; ``None``: ``gangs.paused``."""
        if why := self.why_never(pod):
            self.nominated.put(pod, "")
            self.queue.gate(pod, why, now)
            return Refusal(pod, why)
        if self.gangs.serves(pod):
            return self.gangs.attempt(pod, now)
        cycle = self.cycles[pod.pod_class.scheduler]
        began = self.spent()
        row, promised = self.choose(cycle, pod)
        ranking = None
        if row >= 0:
            ranking = self.decisions.ranking(cycle, pod, now)
            outcome = (
                reservation_events.hold(self, cycle, pod, row, now)
                if pod.reserve_pod_of
                else self._assume(cycle, pod, row, now)
            )
        else:
            outcome = self.refuse(cycle, pod, preemptors.failure(self, cycle, pod, promised), now)
        self.decisions.note(outcome, ranking, now)
        result = "unschedulable" if isinstance(outcome, Refusal) else "scheduled"
        self.measures.attempted(pod.pod_class.scheduler, result, self.spent() - began)
        return outcome

    def why_never(self, pod: Pod) -> str:
        """Why a pod is not tried at all; empty: it is."""
        return pod.pod_class.unsupported or self.gangs.unserved(pod) or self.quotas.unserved(pod)

    def choose(
        self, cycle: Cycle, pod: Pod, outside: Mapping[int, framework.Verdict] = _NOWHERE
    ) -> tuple[int, dict[int, framework.Verdict]]:
        """The best node that stays feasible with the pods that are nominated for it.

        Those that do not, with the reason, are among the nodes that preemption may help.
        ``outside``: nodes that are not looked at, and why.
        """
        before = functools.partial(self._before, pod)
        promised = {**preemptors.crowded_out(self, cycle, pod, before), **outside}
        while True:
            row = cycle.choose(pod, promised)
            guests = before(row) if row >= 0 and self.nominated else ()
            if not guests:
                return row, promised
            verdict = cycle.beside(pod, row, guests)
            if verdict is None:
                return row, promised
            if len(promised) == len(outside):
                promised = cycle.refused_beside(pod, before) | promised
            promised[row] = verdict

    def _before(self, pod: Pod, row: int) -> list[Pod]:
        node = self.pod_cache.columns.nodes[row]
        return [] if node is None else self.nominated.before(pod, node.name)

    def _assume(self, cycle: Cycle, pod: Pod, row: int, now: float) -> Outcome:
        if isinstance(outcome := self.assumptions.make(cycle, pod, row), Refusal):
            self.queue.failed(pod, now, outcome.by)
        else:
            self.keep(pod, now)
        return outcome

    def keep(self, pod: Pod, now: float) -> None:
        """Record that a pod keeps the node that it is assumed on."""
        self.nominated.drop(pod.key, pod.node)
        self.wake(ClusterEvent(ActionType.POD_NEW, pod=pod), now)

    def refuse(self, cycle: Cycle, pod: Pod, failure: framework.Failure, now: float) -> Refusal:
        """Park a pod that no node takes, or make room for it."""
        self.queue.failed(pod, now, failure.by)
        self.quotas.refused(pod, failure, now)
        rescue = cycle.rescue(pod, failure)
        if rescue.node:
            self.nominated.put(pod, rescue.node)
            return Refusal(pod, messages.joined(failure.message, rescue.message), node=rescue.node)
        preempts = cycle.profile.preempts and (pod.preempts or not pod.reserve_pod_of)
        if not (preempts and self.pod_cache.columns.rows):
            return Refusal(pod, messages.joined(failure.message, rescue.message))
        if preemptors.awaited(self, cycle, pod, failure):
            message = messages.joined(failure.message, rescue.message, preemptors.AWAITED)
            return preemptors.wait_on(self, pod, message)
        self.measures.preemptions += 1
        promised = self.nominated.by_row(pod, self.pod_cache.columns.rows)
        attempt = self.quotas.preempt(cycle, pod, failure, tuple(self.budgets.at(now)), promised)
        if isinstance(attempt, str) and self.fair is not None:
            attempt = self.fair.attempt(self, cycle, pod, failure, promised) or attempt
        if not isinstance(attempt, dryrun.Candidate):
            message = messages.joined(failure.message, rescue.message, attempt)
            return preemptors.give_up(self, pod, message)
        return preemptors.nominate(self, pod, failure.message, attempt, now)

    # What the store answers.

    def awaits(self, pod: Pod) -> bool:
        """Whether a pod is still assumed on its node."""
        known = self.pod_cache.assumed.get(pod.key)
        return known is not None and (known.uid, known.node) == (pod.uid, pod.node)

    def bound(self, pod: Pod, now: float) -> None:
        """Confirm a binding that the store has taken, or already had."""
        entry = self.queue.get(pod.key)
        if entry is not None and entry.pod.uid == pod.uid and entry.place is QueuePlace.TAKEN:
            self._placed(pod, now)

    def _placed(self, pod: Pod, now: float) -> None:
        """Record that a waiting pod has its node, whichever scheduler bound it."""
        entry = self.queue.forget(pod)
        if entry is None:
            return
        self.measures.placed(entry.attempts, now - entry.first)
        for plugin in self.cycles[entry.pod.pod_class.scheduler].after:
            plugin.post_bind(pod, pod.node)

    def unbound(self, pod: Pod, now: float, *, again: bool = True) -> bool:
        """Undo a binding that the store has not taken; whether the pod was assumed."""
        if not self.awaits(pod):
            return False
        known = self.pod_cache.assumed[pod.key]
        self.assumptions.take_back(known)
        self.gangs.binding_failed(known)
        self.wake(ClusterEvent(ActionType.POD_GONE, pod=known), now)
        if again:
            self.queue.erred(known, now)
            self.measures.attempted(known.pod_class.scheduler, "error", 0.0)
        else:
            self.queue.forget(known)
        return True

    def spared(self, victim: Pod, now: float) -> None:
        """Spare a victim that could not be deleted."""
        if self.victims.spare(victim):
            self.wake(ClusterEvent(ActionType.POD_NEW, pod=self.pod_cache.get(victim.key)), now)
            # Its room is not to be had: others must go, or other nodes are looked at.
            preemptors.node_changed(self, victim.node, now)


def _decisive(pod: Pod) -> tuple[object, ...]:
    """What of a waiting pod can change the result of an attempt."""
    return pod.uid, pod.pod_class, pod.priority, pod.gates, pod.terminating, pod.gang, pod.claims
