"""local_storage_evict: pods that hold more of the node's disk than their own limits allow.

Covers: limits of emptyDir volumes, of whole pods, of single containers, as the kubelet judges them.
Does not cover: a disk that fills up (``node_pressure``), measuring (the kubelet's statistics).

Rules:
1. Each pod by itself, every offender, the first limit that it breaks: its emptyDir volumes, then
   the whole pod, then its regular containers. More than the limit offends.
2. A container's layer counts beside its logs, but not where images have a file system of their own.
3. Critical and static pods are left. Without statistics nobody offends.
4. Beside a kubelet, which does the same, the offenders are only named unless ``act`` says more.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator

from koordlet.history import series
from koordlet.model import (
    action,
    decision,
    eviction,
    pod,
    pressure,
    quantity_text,
    resources,
    snapshot,
)
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups
from koordlet.policy.eviction import pressure_signals, ranking

if typing.TYPE_CHECKING:
    from koordlet.model import kubelet

STEM = "local_storage_evict"
GRACE_SECONDS = 1
EMPTY_DIR, POD, CONTAINER = "emptydirfs.limit", "ephemeralpodfs.limit", "ephemeralcontainerfs.limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator configured."""

    #: ``None``: on machines without a kubelet only.
    act: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Nothing is remembered: a limit is broken or not."""


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Every offender."""
    if groups.any_stale(now.pods) or any(one.aged(now.at) for one in now.sources):
        return decision.Decision(
            next_state=state, explanation={"held": "the list of pods may be out of date"}
        )
    beside = any(not one.local for one in now.sources)
    held = (
        ""
        if settings.act or (settings.act is None and not beside)
        else "not evicting: the kubelet evicts for this limit"
    )
    found = tuple(_eviction(one, signal, why, held) for one, signal, why in offenders(now))
    return decision.Decision(
        next_state=state,
        evictions=found,
        actions=tuple(
            action.Evict(
                target=f"pod/{one.pod}",
                victim=one,
                policy=STEM,
                reason=one.message.strip(),
                group=one.group or "",
            )
            for one in found
            if not one.held
        ),
    )


def offenders(now: snapshot.Snapshot) -> Iterator[tuple[pod.Pod, str, str]]:
    """Pod, which kind of limit, why. Only the kubelet's statistics measure files."""
    summary = now.kubelet.summary if now.kubelet is not None else None
    if summary is None:
        return
    dedicated = pressure_signals.observe(now).layout == pressure.DEDICATED
    for one in now.pods:
        told = summary.pods.get(one.uid)
        if told is None or not one.active or ranking.spared(one):
            continue
        broken = next(_broken(one, told, dedicated=dedicated), None)
        if broken is not None:
            yield one, *broken


def _broken(
    one: pod.Pod, told: kubelet.PodStatistics, *, dedicated: bool
) -> Iterator[tuple[str, str]]:
    """The limits that a pod breaks (rule 1)."""
    for volume in one.volumes:
        used = told.volumes[volume.name].used_bytes if volume.name in told.volumes else None
        if volume.limit and used is not None and used > volume.limit:
            size = quantity_text.canonical(volume.limit_text)
            yield (
                EMPTY_DIR,
                f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{size}". ',
            )
    limit, used = _limit(one), told.ephemeral.used_bytes
    if limit is not None and used is not None and used > limit:
        size = quantity_text.binary(limit)
        yield (
            POD,
            f"Pod ephemeral local storage usage exceeds the total limit of containers {size}. ",
        )
    for box in one.containers:
        most = box.limits.get(resources.EPHEMERAL_STORAGE, 0)
        if box.kind is not pod.Kind.REGULAR or not most:
            continue
        if _used(box.name, told, dedicated=dedicated) > most:
            size = quantity_text.binary(most)
            yield (
                CONTAINER,
                f'Container {box.name} exceeded its local ephemeral storage limit "{size}". ',
            )


def _limit(one: pod.Pod) -> int | None:
    """The limit of all containers together: it is there where any of them has one.

    An init container runs beside the sidecars that were started before it.
    """
    name = resources.EPHEMERAL_STORAGE
    if not any(name in box.limits for box in one.containers):
        return None
    beside, most = 0, 0
    for box in one.containers:
        if box.kind is pod.Kind.SIDECAR:
            beside += box.limits.get(name, 0)
        elif box.kind is pod.Kind.INIT:
            most = max(most, beside + box.limits.get(name, 0))
    regular = (box for box in one.containers if box.kind is pod.Kind.REGULAR)
    together = beside + sum(box.limits.get(name, 0) for box in regular)
    return max(together, most) + one.overhead.get(name, 0)


def _used(name: str, told: kubelet.PodStatistics, *, dedicated: bool) -> int:
    logs = told.logs[name].used_bytes if name in told.logs else None
    layer = told.rootfs[name].used_bytes if name in told.rootfs else None
    return (logs or 0) + (0 if dedicated else layer or 0)


def _eviction(one: pod.Pod, signal: str, why: str, held: str) -> eviction.Eviction:
    return eviction.Eviction(
        pod=one.key,
        uid=one.uid,
        policy=STEM,
        signal=signal,
        reason="Evicted",
        message=why,
        grace_seconds=GRACE_SECONDS,
        group=one.group,
        match=one.match,
        held=held,
    )
