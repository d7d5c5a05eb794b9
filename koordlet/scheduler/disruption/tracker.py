"""What pods show of themselves, debited: ends that the system caused, replacements, departures.

Covers: the cause of each end, once for each UID, also of pods that were ending at the start.
Does not cover: evictions that were asked for here (``limiter``), reading pods that vanished
(``loop.disruption_rate_controller``).

Rules:
1. An end is a disruption from the start of the termination on, by the condition DisruptionTarget,
   or by the note of an agent that deletes the pod.
2. An end without either is a user's or a controller's, and counts nowhere. It is the
   controller's where as many pods are left as it wants.
3. A pod that vanishes without having been seen to end may have failed, as when its kubelet evicts
   it: whoever covers it asks the store.
4. An eviction of a mover that is not known here was asked for before a restart, or by another
   replica: it is in flight like any other, by the annotation that names the mover.
"""

from __future__ import annotations

from collections import deque

from koordlet.kubeapi import pod_annotations
from koordlet.kubeapi.disruption_rates import Disruption
from koordlet.model.record import dataclass
from koordlet.scheduler.disruption import workloads
from koordlet.scheduler.disruption.answers import Clock, Mover
from koordlet.scheduler.disruption.front_tokens import FrontTokens
from koordlet.scheduler.disruption.limiter import Limiter
from koordlet.scheduler.disruption.pace import Eviction
from koordlet.scheduler.objects.eviction_marks import Leaving
from koordlet.scheduler.objects.pods import Pod

USER, CONTROLLER = "User", "Controller"
#: Evictions under pressure that are remembered, of all nodes.
_MOST_PRESSED = 4096
#: Pods that vanished and are still to be read.
_MOST_VANISHED = 1000


@dataclass(frozen=True, slots=True)
class Pressed:
    """A pod that left its node because of the node's pressure."""

    pod: Pod
    at: float


class DisruptionTracker:
    """Takes in each change of a pod."""

    def __init__(self, limiter: Limiter, fronts: FrontTokens) -> None:
        self._limiter, self._fronts = limiter, fronts
        #: Pods whose end is recorded, by UID.
        self._ending: set[str] = set()
        #: Covered pods that vanished (rule 3).
        self.vanished: list[Pod] = []
        #: Whom nodes under pressure sent away, the newest last.
        self.pressed: deque[Pressed] = deque(maxlen=_MOST_PRESSED)

    def pod(self, old: Pod | None, new: Pod | None, now: Clock) -> None:
        """A pod comes, changes or goes."""
        known = self._limiter.workloads
        if new is None or (old is not None and old.uid != new.uid):
            if old is not None:
                self._gone(old, now.steady)
            if new is None:
                return
        if not new.node:
            return
        known.put(new)
        if new.leaving is not None and new.leaving.at and new.uid not in self._ending:
            self._ending.add(new.uid)
            self.record(new, new.leaving)
            self._adopt(new, new.leaving, now)
            signature = known.signature(new.pod_class)
            if new.leaving.front and signature is not None:
                self._fronts.give(signature, new.leaving.at)
        if new.up and self._limiter.pace.waits:
            self._limiter.pace.up(new, known.signature(new.pod_class))

    def _adopt(self, pod: Pod, leaving: Leaving, now: Clock) -> None:
        """Count an eviction that was asked for before a restart, or by another replica (rule 4)."""
        pace = self._limiter.pace
        if not leaving.by or pod.uid in pace:
            return
        since = Clock(wall=leaving.at, steady=now.steady - max(0.0, now.wall - leaving.at))
        pace.begin(
            Eviction(
                uid=pod.uid,
                node=pod.node,
                signature=self._limiter.workloads.signature(pod.pod_class),
                namespace=pod.namespace,
                mover=Mover(name=leaving.by, acts=True),
                since=since,
                shadow=False,
            )
        )

    def _gone(self, old: Pod, steady: float) -> None:
        self._limiter.workloads.drop(old)
        self._limiter.pace.gone(old.uid, steady)
        if old.uid in self._ending:
            self._ending.discard(old.uid)
        elif old.node and len(self.vanished) < _MOST_VANISHED:
            several = self._limiter.rates.covering(old.pod_class)
            if any(held.stored is not None for held, _ in several):
                self.vanished.append(old)

    def record(self, pod: Pod, leaving: Leaving) -> None:
        """Debit the end of a pod (rules 1 and 2)."""
        signature = self._limiter.workloads.signature(pod.pod_class)
        cause = leaving.cause
        if not cause:
            cause = USER
            if signature is not None:
                members = self._limiter.workloads.members(signature)
                left = sum(not other.terminating for other in workloads.each(members))
                cause = CONTROLLER if left >= self._limiter.workloads.expected(members) else USER
        counts = bool(leaving.cause)
        entry = Disruption(
            pod=pod.name,
            uid=pod.uid,
            at=leaving.at,
            cause=cause,
            by=leaving.by if counts else "",
            accepted=counts,
            controller="" if signature is None else str(signature),
        )
        self._limiter.rates.record(pod, entry)
        if cause == pod_annotations.NODE_PRESSURE:
            self.pressed.append(Pressed(pod, leaving.at))
        if counts and signature is not None:
            self._limiter.pace.disrupted(signature, leaving.at)
