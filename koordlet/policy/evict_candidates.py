"""Whom the co-location peers would evict, in which order, and how many until enough is released.

Covers: candidates of best-effort features and of the others, their orders, counting releases, pods
that were chosen before and are still here.
Does not cover: how much must be released (``memory_evict`` and its siblings).

Rules, as the peer has them unless said:
1. Best-effort features take pods of the class BE by label. Of two with different priorities the
   lower goes; else the one that uses more, one that uses anything before one that uses nothing, and
   of two that use nothing the later name. Consent is not asked for.
2. The other features take pods up to a priority that consented (``eviction-enabled``): by eviction
   priority, priority, priority label, then by size, the larger first.
3. A pod whose ``eviction-policy`` does not list the feature is left; so are critical and static ones.
4. Chosen pods that are still here count as released before anybody else is chosen.
5. Releases count in the unit of what is short. (The peer counts memory a thousandfold.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from koordlet.model import action, eviction, pod, qos, snapshot
from koordlet.policy import eviction_ranking

Size = Callable[[pod.Pod], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a feature wants to be released, and why."""

    policy: str
    #: The peer's name of the feature.
    feature: str
    signal: str
    amount: int
    observed: str
    threshold: str


def best_effort(now: snapshot.Snapshot, feature: str, size: Size) -> list[pod.Pod]:
    """Rule 1."""
    found = [one for one in now.pods if one.raw_qos is qos.Qos.BE and _may(one, feature)]
    return sorted(found, key=functools.cmp_to_key(lambda a, b: _compared(a, b, size)))


def consenting(now: snapshot.Snapshot, feature: str, bound: int, size: Size) -> list[pod.Pod]:
    """Rule 2."""
    found = [
        one
        for one in now.pods
        if one.wishes.eviction.enabled and one.priority_value <= bound and _may(one, feature)
    ]
    return sorted(found, key=lambda one: (*_standing(one), -size(one), one.uid))


def _standing(one: pod.Pod) -> tuple[int, int, int]:
    label = one.priority_value if one.sub_priority is None else one.sub_priority
    return one.wishes.eviction.priority, one.priority_value, label


def _may(one: pod.Pod, feature: str) -> bool:
    allowed = one.wishes.eviction.allows(feature)
    return one.active and allowed and not eviction_ranking.spared(one)


def _compared(one: pod.Pod, other: pod.Pod, size: Size) -> int:
    if None not in (one.priority, other.priority) and one.priority != other.priority:
        return -1 if (one.priority or 0) < (other.priority or 0) else 1
    mine, theirs = size(one), size(other)
    if mine != theirs:
        return -1 if mine > theirs else 1
    if mine:
        return -1 if one.uid < other.uid else 1
    return -1 if one.key > other.key else 1


def chosen(
    need: Need, ordered: Sequence[pod.Pod], size: Size, before: Iterable[str]
) -> tuple[eviction.Eviction, ...]:
    """Who goes until enough is released (rule 4); ``before`` are UIDs that were chosen already."""
    pending = set(before)
    released = sum(size(one) for one in ordered if one.uid in pending)
    ranking = tuple(
        eviction.Candidate(
            pod=one.key, keys=(("priority", str(one.priority_value)), ("size", str(size(one))))
        )
        for one in ordered
    )
    found = []
    for one in ordered:
        if released >= need.amount:
            break
        if one.uid in pending:
            continue
        released += size(one)
        found.append(_eviction(need, one, size(one), ranking))
    return tuple(found)


def _eviction(
    need: Need, one: pod.Pod, size: int, ranking: tuple[eviction.Candidate, ...]
) -> eviction.Eviction:
    return eviction.Eviction(
        pod=one.key,
        uid=one.uid,
        policy=need.policy,
        signal=need.signal,
        reason=f"trigger by koordlet feature {need.feature}",
        message=f"{need.signal} is {need.observed}, the threshold is {need.threshold}:"
        f" {need.amount} must be released. ",
        observed=need.observed,
        threshold=need.threshold,
        group=one.group,
        match=one.match,
        ranking=ranking,
        release=size,
    )


def stale(now: snapshot.Snapshot) -> bool:
    """Whether what is known of workloads may be out of date: then nobody goes."""
    return any(one.stale for one in now.pods) or any(one.aged(now.at) for one in now.sources)


def acts(victims: Iterable[eviction.Eviction]) -> tuple[action.Action, ...]:
    """The evictions as actions."""
    return tuple(
        action.Evict(
            target=f"pod/{one.pod}",
            victim=one,
            policy=one.policy,
            reason=one.message.strip(),
            group=one.group or "",
        )
        for one in victims
    )
