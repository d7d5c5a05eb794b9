"""CPU satisfaction of best-effort pods: their limit over their requests. Pure.

Covers: the limit in force, requests and use of one moment; averages; what must be released.
Does not cover: who goes (``policy.eviction.cpu_evict``), how much best-effort work may have
(``cpu_suppress``).

Rules, as the peer has them:
1. The limit is the smallest set of CPUs of a best-effort place or of a container in it, and the
   quota of these places where that is less. ``evictByAllocatable`` takes what the node offers
   instead: nothing offered counts as a thousandth, no offer at all as not known.
2. Satisfaction is limit by requests. At or below the lower percent the requests shrink until it is
   the upper one. It counts only while the limit is used up: below one core always, else from a part
   of it on.
3. Both the average of the window and the newest sample must say so; the smaller release counts. A
   window of which less than a third was seen says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from koordlet.history import series
from koordlet.model import cgroup, forms, knob, limits, meter, qos, resources, snapshot
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups as best_effort_groups

BY_ALLOCATABLE = "evictByAllocatable"
_CORE = 1000


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU sums at one moment, in thousandths of a core."""

    at: float
    limit: float
    request: float
    used: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Thresholds of satisfaction in percent (rule 2)."""

    lower: int
    upper: int
    usage: int

    @property
    def problem(self) -> str:
        """The reason that the bounds are invalid; empty where they are valid."""
        if not 0 < self.lower <= 60:
            return f"cpuEvictBESatisfactionLowerPercent {self.lower} is not in 1…60"
        if not 0 < self.upper < 100:
            return f"cpuEvictBESatisfactionUpperPercent {self.upper} is not in 1…99"
        if self.lower > self.upper:
            return "cpuEvictBESatisfactionLowerPercent is above cpuEvictBESatisfactionUpperPercent"
        return ""


def sample(now: snapshot.Snapshot, past: series.History, policy: str | None) -> Sample | str:
    """Sample this moment; a text is the reason that it is unknown."""
    there = best_effort_groups.places(now)
    used = [past.groups.last(place.group, meter.CPU) for place in there]
    if not there or None in used:
        return "the use of best-effort work is not known"
    limit = _limit(now, there)
    if policy == BY_ALLOCATABLE:
        offered = now.node.allocatable.get(resources.BATCH_CPU)
        if offered is None:
            return "the node offers no batch-cpu"
        limit = max(offered, 1)
    request = sum(
        pod.requests.get(resources.BATCH_CPU, 0)
        for pod in now.pods
        if pod.raw_qos is qos.Qos.BE and pod.active
    )
    total = 1000 * sum(cores for cores in used if cores is not None)
    return Sample(at=now.at, limit=limit, request=request, used=total)


def _limit(now: snapshot.Snapshot, there: Sequence[best_effort_groups.Place]) -> float:
    """Rule 1."""
    inside = [
        box.group
        for pod in now.pods
        if best_effort_groups.is_best_effort(pod) and pod.active
        for box in pod.containers
        if box.running and box.group is not None
    ]
    paths = [*(place.group for place in there), *inside]
    groups = [now.groups[path] for path in paths if path in now.groups]
    sets = [cpus for group in groups if (cpus := group.effective() or group.cpus()) is not None]
    count = min(map(len, sets), default=len(now.allowed))
    quota = sum(_quota(now.groups[place.group]) for place in there)
    return min(float(_CORE * count), _CORE * quota)


def _quota(group: cgroup.Group) -> float:
    """In CPUs."""
    both = group.values.get(knob.CPU_MAX.name)
    if both is not None:
        return forms.Bandwidth().measure(both) or math.inf
    text = group.values.get(knob.CPU_CFS_QUOTA.name, "")
    return int(text) / limits.cpu_period(group) if text.isdecimal() else math.inf


def release(samples: Sequence[Sample], bounds: Bounds, window: float) -> int:
    """Thousandths of a core by which requests must shrink (rules 2 and 3)."""
    if not samples or len(samples) < window / 3:
        return 0
    newest, count = samples[-1], len(samples)
    average = Sample(
        at=newest.at,
        limit=sum(sample.limit for sample in samples) / count,
        request=sum(sample.request for sample in samples) / count,
        used=sum(sample.used for sample in samples) / count,
    )
    return int(min(_one(average, bounds), _one(newest, bounds)))


def _one(seen: Sample, bounds: Bounds) -> float:
    if seen.limit <= 0 or seen.request <= 0:
        return 0.0
    if seen.limit >= _CORE and seen.used * 100 < seen.limit * bounds.usage:
        return 0.0
    satisfaction = seen.limit / seen.request
    if satisfaction * 100 > bounds.lower:
        return 0.0
    return max(0.0, seen.request * (bounds.upper / 100 - satisfaction))
