"""Eviction candidates and their order, as Koordinator has them. Pure.

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
from koordlet.model import meter, qos, resources, snapshot
from koordlet.model import pod as pods
from koordlet.policy.eviction import ranking

#: How much of what is short a pod gives back; ``None`` while nobody knows.
Size = Callable[[pods.Pod], int | None]
#: Counters that are older say nothing about now: the peer believes no older ones.
FRESH_SECONDS = 10.0


def best_effort(
    now: snapshot.Snapshot, feature: str, key: Callable[[pods.Pod], float]
) -> list[pods.Pod]:
    """Pods of the class BE in eviction order; larger ``key`` first."""
    eligible = [pod for pod in now.pods if pod.raw_qos is qos.Qos.BE and _may(pod, feature)]

    def compared(pod: pods.Pod, other: pods.Pod) -> int:
        return _compared(pod, other, key)

    return sorted(eligible, key=functools.cmp_to_key(compared))


def consenting(now: snapshot.Snapshot, feature: str, bound: int, size: Size) -> list[pods.Pod]:
    """Consenting pods up to a priority, in eviction order."""
    sized = [
        (pod, amount)
        for pod in now.pods
        if pod.wishes.eviction.enabled and pod.priority_value <= bound and _may(pod, feature)
        if (amount := size(pod)) is not None
    ]

    def order(pair: tuple[pods.Pod, int]) -> tuple[int, int, int, int, str]:
        pod, amount = pair
        label = pod.priority_value if pod.sub_priority is None else pod.sub_priority
        return pod.wishes.eviction.priority, pod.priority_value, label, -amount, pod.uid

    sized.sort(key=order)
    return [pod for pod, _ in sized]


def _may(pod: pods.Pod, feature: str) -> bool:
    allowed = pod.wishes.eviction.allows(feature)
    return pod.active and allowed and not ranking.spared(pod)


def _compared(pod: pods.Pod, other: pods.Pod, key: Callable[[pods.Pod], float]) -> int:
    if pod.priority is not None and other.priority is not None and pod.priority != other.priority:
        return -1 if pod.priority < other.priority else 1
    mine, theirs = key(pod), key(other)
    if mine != theirs:
        return -1 if mine > theirs else 1
    if not mine and pod.key != other.key:
        return -1 if pod.key > other.key else 1
    return -1 if pod.uid < other.uid else 1


def memory(now: snapshot.Snapshot, past: series.History) -> Size:
    """Size of a pod in bytes of memory without page cache."""

    def size(pod: pods.Pod) -> int | None:
        for what in (meter.MEMORY_ANON, meter.WORKING_SET, meter.MEMORY):
            amount = _counted(pod, now, past, what)
            if amount is not None:
                return int(amount)
        return _reported(pod, now, resources.MEMORY)

    return size


def cpu(now: snapshot.Snapshot, past: series.History) -> Size:
    """Size of a pod in thousandths of a core in use."""

    def size(pod: pods.Pod) -> int | None:
        cores = _counted(pod, now, past, meter.CPU)
        return _reported(pod, now, resources.CPU) if cores is None else int(cores * 1000)

    return size


def _counted(
    pod: pods.Pod, now: snapshot.Snapshot, past: series.History, what: meter.Meter
) -> float | None:
    if pod.group is None:
        return None
    return past.groups.recent(pod.group, what, now.at, FRESH_SECONDS)


def _reported(pod: pods.Pod, now: snapshot.Snapshot, resource: str) -> int | None:
    reported = None if now.metric is None else now.metric.pods.get(pod.key)
    return None if reported is None else reported.get(resource)
