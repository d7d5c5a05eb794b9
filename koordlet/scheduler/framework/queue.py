"""The scheduling queue: active, backoff, unschedulable and gated pods.

Covers: order, backoff, moving back when something happened. Does not cover: which event helps which
pod (``scheduler.framework.Plugin.helps``), time (given with each call).

Rules:
1. Order of the active ones: higher priority (or what a QueueSort plugin orders by), then those at
   the front, then who came or was refused last earlier, whenever it was woken, then earlier
   creation, then earlier in the input. Where it is configured so, those at the front come before
   priority.
2. A pod that no node would take waits until something happens that one of its rejectors listens to,
   or for ``FORGOTTEN`` seconds. It then waits for the end of its backoff, unless nobody else is
   there to be tried.
3. A pod that met an error (its bind failed, the store did not answer) comes back after a backoff of
   its own, whatever happens meanwhile.
4. A pod is in one place at a time. What the heaps still hold of a pod that moved is skipped.
"""

from __future__ import annotations

import enum
import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.objects.pods import Pod, PodClass

#: Seconds: the first backoff, the longest, and how long a pod stays unschedulable at most.
FIRST, LONGEST, FORGOTTEN = 1.0, 10.0, 300.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds of the first backoff and of the longest."""

    first: float = FIRST
    longest: float = LONGEST

    def expiry(self, since: float, attempts: int) -> float:
        """When a pod's backoff ends, cut to whole seconds: 1, 2, 4, 8, 10, 10 … seconds later."""
        # No seconds are as many as 2 to the 64th: beyond it the longest is reached for sure.
        doubled = self.first * 2.0 ** min(attempts - 1, 64)
        wait = min(doubled, self.longest) if attempts else 0.0
        return float(math.floor(since + wait))


#: How often somebody looks for those.
_LOOK = 30.0

_Order = tuple[bool, Any, bool, float, str, int]


class QueuePlace(enum.Enum):
    """The queue that a pod waits in, as metrics name it."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    #: Nowhere: it is being tried, or bound.
    TAKEN = "taken"

    #: Places are counted at each move; Python 3.11 hashes members in Python otherwise.
    __hash__ = object.__hash__


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod in the queue, and its attempts so far."""

    pod: Pod
    #: When it came, for how long it took to find its node.
    first: float
    place: QueuePlace = QueuePlace.TAKEN
    serial: int = 0
    #: When it came to this place.
    since: float = 0.0
    #: When it came, or failed last.
    stamp: float = 0.0
    attempts: int = 0
    errors: int = 0
    #: Plugins that refused it, and what is said of it.
    by: frozenset[str] = frozenset()
    why: str = ""
    #: It is tried before its equals.
    fronted: bool = False


#: Of parked pods of one class and priority, by key, those that an event helps.
Awake = Callable[[Mapping[str, QueuedPod]], Iterable[QueuedPod]]


def everybody(several: Mapping[str, QueuedPod]) -> Iterable[QueuedPod]:
    """All of them."""
    return several.values()


class Queue:
    """The scheduling queue: pods that wait for a node."""

    def __init__(
        self,
        key: Callable[[Pod], Any] = lambda pod: -pod.priority,
        backoff: Backoff | None = None,
        *,
        front_across_priorities: bool = False,
    ) -> None:
        self._key, self._across = key, front_across_priorities
        self._backing = Backoff() if backoff is None else backoff
        self._entries: dict[str, QueuedPod] = {}
        #: What each is ordered by (when its backoff ends, first), then its serial and itself.
        self._active: list[tuple[Any, ...]] = []
        self._backoff: list[tuple[Any, ...]] = []
        self._erred: list[tuple[Any, ...]] = []
        #: Unschedulable ones, by rejector, then by class and priority.
        self._by: dict[str, dict[tuple[PodClass, int], dict[str, QueuedPod]]] = {}
        self._counts = dict.fromkeys(QueuePlace, 0)
        self._serial = 0
        self._looked = -math.inf

    def __len__(self) -> int:
        return self._counts[QueuePlace.ACTIVE]

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._entries.values())

    def count(self, place: QueuePlace) -> int:
        """The number of pods in a place."""
        return self._counts[place]

    def get(self, key: str) -> QueuedPod | None:
        """The entry of a pod; ``None`` where it is not in the queue."""
        return self._entries.get(key)

    def add(self, pod: Pod, now: float = 0.0) -> None:
        """Add a pod to the active queue."""
        entry = self._moved(pod, QueuePlace.ACTIVE, now)
        heapq.heappush(self._active, (self._order(entry), entry.serial, entry))

    def gate(self, pod: Pod, why: str, now: float = 0.0) -> None:
        """Keep a pod out of the queue until it is added again."""
        self._moved(pod, QueuePlace.GATED, now).why = why

    def front(self, key: str, now: float) -> None:
        """Let a pod be tried before its equals, for as long as it waits."""
        entry = self._entries[key]
        entry.fronted = True
        if entry.place is QueuePlace.ACTIVE:
            self.add(entry.pod, now)

    def renew(self, pod: Pod) -> None:
        """Replace a pod by its newer value, in the same place."""
        entry = self._entries[pod.key]
        parked = entry.place is QueuePlace.UNSCHEDULABLE
        if parked:
            self._index(entry, add=False)
        entry.pod = pod
        if parked:
            self._index(entry, add=True)

    def reconsider(self, pod: Pod, now: float) -> bool:
        """Wake a pod that was changed, after its backoff; whether it has been tried before."""
        entry = self._entries.get(pod.key)
        if entry is None or entry.pod.uid != pod.uid:
            return False
        if entry.place not in {QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE}:
            return False
        self.renew(pod)
        self.rouse(pod.key, now)
        return True

    def pop(self, now: float = 0.0) -> Pod | None:
        """The next pod; pods in backoff only when the active queue is empty."""
        self.flush(now)
        if not len(self):
            # Whoever was here was taken out of its turn, as a gang's members are.
            self._active.clear()
        while heap := self._active or self._backoff:
            *_, serial, entry = heapq.heappop(heap)
            if entry.serial == serial:
                return self._taken(entry)
        return None

    def take(self, key: str) -> Pod | None:
        """Take a pod out of its turn; ``None`` where it does not wait for one."""
        entry = self._entries.get(key)
        if entry is None or entry.place is QueuePlace.TAKEN or entry.place is QueuePlace.GATED:
            return None
        return self._taken(entry)

    def rouse(self, key: str, now: float) -> None:
        """Wake one parked pod."""
        entry = self._entries.get(key)
        if entry is not None and entry.place is QueuePlace.UNSCHEDULABLE:
            self._wake([entry], now)

    def _taken(self, entry: QueuedPod) -> Pod:
        self._leave(entry, QueuePlace.TAKEN)
        entry.attempts += 1
        return entry.pod

    def failed(self, pod: Pod, now: float, by: frozenset[str] = frozenset()) -> None:
        """Park a pod that no node takes until an event that its rejecting plugins listen to."""
        # Refused by nobody in particular: whatever happens may help.
        entry = self._moved(pod, QueuePlace.UNSCHEDULABLE, now, by or frozenset(("",)))
        entry.attempts, entry.errors, entry.stamp = entry.attempts or 1, 0, now

    def erred(self, pod: Pod, now: float) -> None:
        """Retry a pod after a backoff: an error that is not about nodes."""
        entry = self._moved(pod, QueuePlace.BACKOFF, now)
        entry.errors, entry.stamp = entry.errors + 1, now
        until = self._backing.expiry(now, entry.errors)
        heapq.heappush(self._erred, (until, self._order(entry), entry.serial, entry))

    def forget(self, pod: Pod) -> QueuedPod | None:
        """Remove a pod that has its node or is deleted."""
        entry = self._entries.pop(pod.key, None)
        if entry is not None:
            self._leave(entry, QueuePlace.TAKEN)
            self._counts[QueuePlace.TAKEN] -= 1
        return entry

    def rejectors(self) -> tuple[str, ...]:
        """The plugins that parked pods wait for."""
        return tuple(name for name, known in self._by.items() if known)

    def wake_by(
        self,
        name: str,
        helps: Callable[[PodClass], bool],
        now: float,
        among: Awake = everybody,
    ) -> int:
        """Wake the pods of a rejecting plugin that an event helps; asked of each class, not pod."""
        alike = self._by.get(name, {}).items()
        helped = [several for (pod_class, _), several in alike if helps(pod_class)]
        return self._wake([entry for several in helped for entry in among(several)], now)

    def wake(self, helps: Callable[[Pod], bool], now: float) -> int:
        """Wake the pods that an event may help, whichever plugin rejected them."""
        return self._wake([entry for entry in self._unschedulable() if helps(entry.pod)], now)

    def _unschedulable(self) -> list[QueuedPod]:
        return [queued for queued in self if queued.place is QueuePlace.UNSCHEDULABLE]

    def _wake(self, entries: list[QueuedPod], now: float) -> int:
        for entry in entries:
            until = self._backing.expiry(entry.since, entry.attempts)
            if until < math.floor(now):
                self.add(entry.pod, now)
                continue
            self._leave(entry, QueuePlace.BACKOFF)
            entry.since = now
            heapq.heappush(self._backoff, (until, self._order(entry), entry.serial, entry))
        return len(entries)

    def flush(self, now: float) -> None:
        """Activate pods whose backoff has ended, and pods that have waited too long."""
        second = math.floor(now)
        for heap in (self._backoff, self._erred):
            while heap and heap[0][0] < second:
                *_, serial, entry = heapq.heappop(heap)
                if entry.serial == serial:
                    self.add(entry.pod, now)
        if now - self._looked > _LOOK or now < self._looked:
            self._looked = now
            for entry in self._unschedulable():
                # A clock that was set back must not keep anybody waiting for that much longer.
                if not 0 <= now - entry.since <= FORGOTTEN:
                    self.add(entry.pod, now)

    def _moved(
        self, pod: Pod, place: QueuePlace, now: float, by: frozenset[str] = frozenset()
    ) -> QueuedPod:
        entry = self._entries.get(pod.key)
        if entry is None or entry.pod.uid != pod.uid:
            if entry is not None:
                self.forget(entry.pod)
            entry = self._entries[pod.key] = QueuedPod(pod, now, stamp=now)
            self._counts[QueuePlace.TAKEN] += 1
        self._leave(entry, place)
        entry.pod, entry.since, entry.by, entry.why = pod, now, by, ""
        if place is QueuePlace.UNSCHEDULABLE:
            self._index(entry, add=True)
        return entry

    def _order(self, entry: QueuedPod) -> _Order:
        pod, behind = entry.pod, not entry.fronted
        first = behind and self._across
        return first, self._key(pod), behind, entry.stamp, pod.created or "~", pod.position

    def _leave(self, entry: QueuedPod, place: QueuePlace) -> None:
        if entry.place is QueuePlace.UNSCHEDULABLE:
            self._index(entry, add=False)
        self._counts[entry.place] -= 1
        self._counts[place] += 1
        self._serial += 1
        entry.place, entry.serial = place, self._serial

    def _index(self, entry: QueuedPod, *, add: bool) -> None:
        alike = entry.pod.pod_class, entry.pod.priority
        for name in entry.by:
            classes = self._by.setdefault(name, {})
            if add:
                classes.setdefault(alike, {})[entry.pod.key] = entry
            else:
                several = classes.get(alike, {})
                several.pop(entry.pod.key, None)
                if not several:
                    classes.pop(alike, None)
