"""Evictions in flight, and those of the last minutes: by whom, of which node and workload.

Covers: when an eviction is over, counting, the time of each workload's last move, how often each
workload was disrupted in a day. Does not cover: the bounds (``limiter``).

Rules:
1. An eviction is in flight from the question on until the pod is gone and either its replacement
   is up or five minutes have passed. A pod without a controller, or one that was called back, has
   no replacement.
2. A replacement is a pod of the same workload that came after the eviction and is up; each stands
   for one eviction.
3. What a mover in shadow would have done counts for movers in shadow alone.
4. What is remembered is bounded: workloads that were disrupted longest ago are forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator

from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.disruption.answers import Clock, Mover
from koordlet.scheduler.disruption.workloads import Signature
from koordlet.scheduler.objects.pods import Pod

FIVE_MINUTES = 300.0
_DAY = 86400.0
_MOST_SIGNATURES = 4096


@dataclass(slots=True, eq=False, kw_only=True)
class Eviction:
    """One eviction, from the question on."""

    uid: str
    node: str
    signature: Signature | None
    namespace: str
    mover: Mover
    since: Clock
    shadow: bool
    #: When its pod was gone, monotonic; ``None``: it is still there.
    gone: float | None = None
    replaced: bool = False
    #: When a pod of its workload was moved before it, monotonic.
    before: float | None = None

    def follow(self, last: float | None) -> None:
        """It comes after another move of its workload."""
        self.before = last

    def end(self, now: float) -> None:
        """Its pod is gone."""
        if self.gone is None:
            self.gone = now

    def replace(self) -> None:
        """Its replacement is up."""
        self.replaced = True

    def flies(self, now: float) -> bool:
        """Whether it is in flight (rule 1)."""
        if self.gone is None:
            return True
        if self.replaced or self.signature is None or self.mover.reclaims:
            return False
        return now - self.gone < FIVE_MINUTES


class Pace:
    """All evictions that still bound others."""

    def __init__(self) -> None:
        self._recent: deque[Eviction] = deque()
        self._by_uid: dict[str, Eviction] = {}
        #: Pods that stand for an eviction already, by UID.
        self._replacements: set[str] = set()
        self._moved: OrderedDict[tuple[Signature, bool], float] = OrderedDict()
        self._disrupted: OrderedDict[Signature, deque[float]] = OrderedDict()
        #: Another one whenever evictions come, go, end or are replaced.
        self.revision = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    @property
    def waits(self) -> bool:
        """Whether any eviction may wait for a replacement."""
        return bool(self._by_uid)

    @property
    def leaving(self) -> frozenset[str]:
        """The UIDs of pods whose eviction was asked for or accepted, and that are still there."""
        return frozenset(
            uid for uid, each in self._by_uid.items() if each.gone is None and not each.shadow
        )

    def leaves(self, uid: str) -> bool:
        """Whether a pod is one of those that are leaving."""
        eviction = self._by_uid.get(uid)
        return eviction is not None and eviction.gone is None and not eviction.shadow

    def begin(self, eviction: Eviction) -> None:
        """An eviction is asked for."""
        self.revision += 1
        if eviction.shadow:
            eviction.end(eviction.since.steady)  # nothing goes: as if it were gone at once
        self._recent.append(eviction)
        self._by_uid[eviction.uid] = eviction
        if eviction.signature is not None and not eviction.mover.reclaims:
            key = eviction.signature, eviction.shadow
            eviction.follow(self._moved.pop(key, None))
            self._moved[key] = eviction.since.steady
            _bound(self._moved)

    def withdraw(self, uid: str) -> None:
        """It was refused, or lapsed: nothing was evicted."""
        eviction = self._by_uid.pop(uid, None)
        if eviction is None:
            return
        self.revision += 1
        self._recent.remove(eviction)
        signature = eviction.signature
        if signature is not None:
            earlier = [each.since.steady for each in self._recent if each.signature == signature]
            if eviction.before is not None:
                earlier.append(eviction.before)
            if earlier:
                self._moved[signature, eviction.shadow] = max(earlier)
            else:
                self._moved.pop((signature, eviction.shadow), None)

    def gone(self, uid: str, now: float, *, replaced: bool = False) -> None:
        """A pod is gone, and its replacement is up where that is so."""
        self.revision += 1
        self._replacements.discard(uid)
        eviction = self._by_uid.get(uid)
        if eviction is not None:
            eviction.end(now)
            if replaced:
                eviction.replace()

    def up(self, pod: Pod, signature: Signature | None) -> None:
        """A pod is up: it may replace one that was evicted (rule 2)."""
        if signature is None or pod.uid in self._replacements:
            return
        try:
            created = moment.parse(pod.created)
        except ValueError:
            return
        for eviction in self._by_uid.values():
            # Objects have whole seconds.
            after = created >= int(eviction.since.wall)
            if eviction.signature == signature and not eviction.replaced and after:
                self.revision += 1
                eviction.replace()
                self._replacements.add(pod.uid)
                return

    def expire(self, now: float) -> None:
        """Forget what bounds nothing any more."""
        while self._recent and not self._bounds(self._recent[0], now):
            eviction = self._recent.popleft()
            if self._by_uid.get(eviction.uid) is eviction:
                del self._by_uid[eviction.uid]
        if not self._by_uid:
            self._replacements.clear()

    @staticmethod
    def _bounds(eviction: Eviction, now: float) -> bool:
        window = FIVE_MINUTES
        if eviction.mover.limit is not None:
            window = max(window, eviction.mover.limit.window_seconds)
        return eviction.flies(now) or now - eviction.since.steady < window

    # Counting.

    def in_flight(
        self, now: float, *, shadow: bool, where: Callable[[Eviction], bool] | None = None
    ) -> int:
        """The number of evictions in flight."""
        several = self._visible(shadow=shadow)
        return sum(each.flies(now) and (where is None or where(each)) for each in several)

    def flying(self, signature: Signature, now: float, *, shadow: bool) -> frozenset[str]:
        """The UIDs of a workload's pods in flight."""
        several = self._visible(shadow=shadow)
        return frozenset(
            each.uid for each in several if each.signature == signature and each.flies(now)
        )

    def since(
        self, moment_: float, *, shadow: bool, where: Callable[[Eviction], bool]
    ) -> list[float]:
        """The times of evictions later than a moment, the oldest first."""
        several = self._visible(shadow=shadow)
        return [
            each.since.steady for each in several if each.since.steady > moment_ and where(each)
        ]

    def last_move(self, signature: Signature, *, shadow: bool) -> float | None:
        """When a pod of a workload was last moved, monotonic."""
        times = [
            at
            for key in ((signature, False), *([(signature, True)] if shadow else []))
            if (at := self._moved.get(key)) is not None
        ]
        return max(times, default=None)

    def _visible(self, *, shadow: bool) -> Iterator[Eviction]:
        return (each for each in self._recent if shadow or not each.shadow)

    # Fairness.

    def disrupted(self, signature: Signature, at: float) -> None:
        """Count a disruption of a workload, whoever caused it."""
        times = self._disrupted.pop(signature, None) or deque()
        times.append(at)
        while times[0] <= at - _DAY:
            times.popleft()
        self._disrupted[signature] = times
        _bound(self._disrupted)

    def in_a_day(self, signature: Signature, now: float) -> int:
        """The disruptions of a workload in the last 24 hours."""
        return sum(at > now - _DAY for at in self._disrupted.get(signature, ()))


def _bound(
    table: OrderedDict[tuple[Signature, bool], float] | OrderedDict[Signature, deque[float]],
) -> None:
    while len(table) > _MOST_SIGNATURES:
        table.popitem(last=False)
