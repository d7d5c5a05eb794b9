"""Whom the co-location peers would evict, and in which order. Pure.

Covers: candidates of best-effort features and of those that ask for consent; what a pod uses.
Does not cover: how many of them go (``release_round``), how much is short (the policies).

The orders, compared key by key:
* best-effort features: of two that both have one the lower priority; the larger size, so that
  who uses anything comes before who uses nothing; of two that use nothing the later name; UID
* features with consent: eviction priority, priority, its label, the larger size, UID

Best-effort features take pods of the class BE by label and do not ask for consent; what is not
known of them counts as nothing. The others take consenting pods up to a priority, and of these only
whose size is known. A pod whose ``eviction-policy`` does not list the feature is left; so are
critical and static ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from koordlet.history import series
from koordlet.model import meter, pod, qos, resources, snapshot
from koordlet.policy.eviction import ranking

#: How much of what is short a pod gives back; ``None`` while nobody knows.
Size = Callable[[pod.Pod], int | None]
#: Counters that are older say nothing about now: the peer believes no older ones.
FRESH_SECONDS = 10.0


def best_effort(
    now: snapshot.Snapshot, feature: str, key: Callable[[pod.Pod], float]
) -> list[pod.Pod]:
    """Pods of the class BE, the first to go first; ``key`` is what is larger in those."""
    found = [one for one in now.pods if one.raw_qos is qos.Qos.BE and _may(one, feature)]

    def compared(one: pod.Pod, other: pod.Pod) -> int:
        return _compared(one, other, key)

    return sorted(found, key=functools.cmp_to_key(compared))


def consenting(now: snapshot.Snapshot, feature: str, bound: int, size: Size) -> list[pod.Pod]:
    """Pods up to a priority that consented, the first to go first."""
    found = [
        (one, amount)
        for one in now.pods
        if one.wishes.eviction.enabled and one.priority_value <= bound and _may(one, feature)
        if (amount := size(one)) is not None
    ]
    found.sort(key=lambda each: (*_standing(each[0]), -each[1], each[0].uid))
    return [one for one, _ in found]


def _standing(one: pod.Pod) -> tuple[int, int, int]:
    label = one.priority_value if one.sub_priority is None else one.sub_priority
    return one.wishes.eviction.priority, one.priority_value, label


def _may(one: pod.Pod, feature: str) -> bool:
    allowed = one.wishes.eviction.allows(feature)
    return one.active and allowed and not ranking.spared(one)


def _compared(one: pod.Pod, other: pod.Pod, key: Callable[[pod.Pod], float]) -> int:
    if one.priority is not None and other.priority is not None and one.priority != other.priority:
        return -1 if one.priority < other.priority else 1
    mine, theirs = key(one), key(other)
    if mine != theirs:
        return -1 if mine > theirs else 1
    if not mine and one.key != other.key:
        return -1 if one.key > other.key else 1
    return -1 if one.uid < other.uid else 1


def memory(now: snapshot.Snapshot, past: series.History) -> Size:
    """Bytes of memory without page cache, which is what goes with a pod."""

    def size(one: pod.Pod) -> int | None:
        for what in (meter.MEMORY_ANON, meter.WORKING_SET, meter.MEMORY):
            found = _counted(one, now, past, what)
            if found is not None:
                return int(found)
        return _reported(one, now, resources.MEMORY)

    return size


def cpu(now: snapshot.Snapshot, past: series.History) -> Size:
    """Thousandths of a core in use."""

    def size(one: pod.Pod) -> int | None:
        found = _counted(one, now, past, meter.CPU)
        return _reported(one, now, resources.CPU) if found is None else int(found * 1000)

    return size


def _counted(
    one: pod.Pod, now: snapshot.Snapshot, past: series.History, what: meter.Meter
) -> float | None:
    if one.group is None:
        return None
    age = past.groups.age(what, now.at)
    return None if age is None or age > FRESH_SECONDS else past.groups.last(one.group, what)


def _reported(one: pod.Pod, now: snapshot.Snapshot, resource: str) -> int | None:
    told = None if now.metric is None else now.metric.pods.get(one.key)
    return None if told is None else told.get(resource)
