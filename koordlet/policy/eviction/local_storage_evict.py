"""local_storage_evict: evicts pods that exceed their ephemeral-storage limits.

Covers: limits of emptyDir volumes, of whole pods, of single containers, as the kubelet judges them.
Does not cover: a disk that fills up (``node_pressure``), measuring (the kubelet's statistics).

Rules:
1. Every pod above a limit is evicted, for the first limit that it exceeds: its emptyDir volumes,
   then the whole pod, then its regular containers.
2. A container's writable layer counts with its logs, unless images have their own file system.
3. Critical and static pods stay. Without statistics no pod is evicted.
4. On a node with a kubelet, which does the same, offenders are only named unless ``act`` is true.

* Formula: use > limit, of an emptyDir volume, a pod or a container
* Writes: no file: evicts
* See: `koordlet explain eviction`
* Off: nobody goes because of it any more; evictions that have begun are finished
* More: eviction.md
"""

from __future__ import annotations

import typing
from collections.abc import Iterator

from koordlet.history import series
from koordlet.model import (
    action,
    decision,
    eviction,
    pressure,
    quantity_text,
    resources,
    snapshot,
    strategy_field,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.best_effort import groups
from koordlet.policy.eviction import kubelet_owned, pressure_signals, ranking
from koordlet.policy.framework import declaration

if typing.TYPE_CHECKING:
    from koordlet.model import kubelet

STEM = "local_storage_evict"
State = decision.Stateless
GRACE_SECONDS = 1
EMPTY_DIR, POD, CONTAINER = "emptydirfs.limit", "ephemeralpodfs.limit", "ephemeralcontainerfs.limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Evictions of pods that exceed their local-storage limits."""

    #: Evict pods that exceed their local-storage limits; null is true only on machines without a
    #: kubelet.
    act: bool | None = strategy_field.setting(default=None)


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide to evict every offender."""
    if stale := groups.stale(now):
        return decision.Decision(next_state=state, explanation={"held": stale})
    acts = settings.act or (settings.act is None and not kubelet_owned.is_there(now))
    held = "" if acts else "not evicting: the kubelet evicts for this limit"
    victims = tuple(
        eviction.Eviction(
            pod=pod.key,
            uid=pod.uid,
            policy=STEM,
            signal=signal,
            reason="Evicted",
            message=why,
            grace_seconds=GRACE_SECONDS,
            group=pod.group,
            match=pod.match,
            held=held,
        )
        for pod, signal, why in offenders(now)
    )
    return decision.Decision(
        next_state=state,
        evictions=victims,
        actions=tuple(
            action.evict(victim, victim.message.strip()) for victim in victims if not victim.held
        ),
    )


def offenders(now: snapshot.Snapshot) -> Iterator[tuple[pods.Pod, str, str]]:
    """Offending pods with the limit and the reason; only the kubelet measures files."""
    summary = now.kubelet.summary if now.kubelet is not None else None
    if summary is None:
        return
    dedicated = pressure_signals.observe(now).layout == pressure.DEDICATED
    for pod in now.pods:
        statistics = summary.pods.get(pod.uid)
        if statistics is None or not pod.active or ranking.spared(pod):
            continue
        broken = next(_broken(pod, statistics, dedicated=dedicated), None)
        if broken is not None:
            yield pod, *broken


def _broken(
    pod: pods.Pod, statistics: kubelet.PodStatistics, *, dedicated: bool
) -> Iterator[tuple[str, str]]:
    """Limits that a pod exceeds (rule 1)."""
    for volume in pod.volumes:
        used = (
            statistics.volumes[volume.name].used_bytes
            if volume.name in statistics.volumes
            else None
        )
        if volume.limit and used is not None and used > volume.limit:
            size = quantity_text.canonical(volume.limit_text)
            yield (
                EMPTY_DIR,
                f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{size}". ',
            )
    limit, used = _limit(pod), statistics.ephemeral.used_bytes
    if limit is not None and used is not None and used > limit:
        size = quantity_text.binary(limit)
        yield (
            POD,
            f"Pod ephemeral local storage usage exceeds the total limit of containers {size}. ",
        )
    for box in pod.containers:
        most = box.limits.get(resources.EPHEMERAL_STORAGE, 0)
        if box.kind is not pods.Kind.REGULAR or not most:
            continue
        if _used(box.name, statistics, dedicated=dedicated) > most:
            size = quantity_text.binary(most)
            yield (
                CONTAINER,
                f'Container {box.name} exceeded its local ephemeral storage limit "{size}". ',
            )


def _limit(pod: pods.Pod) -> int | None:
    """The limit of all containers together: it is there where any of them has one.

    An init container runs beside the sidecars that were started before it.
    """
    name = resources.EPHEMERAL_STORAGE
    if not any(name in box.limits for box in pod.containers):
        return None
    beside, most = 0, 0
    for box in pod.containers:
        if box.kind is pods.Kind.SIDECAR:
            beside += box.limits.get(name, 0)
        elif box.kind is pods.Kind.INIT:
            most = max(most, beside + box.limits.get(name, 0))
    regular = (box for box in pod.containers if box.kind is pods.Kind.REGULAR)
    together = beside + sum(box.limits.get(name, 0) for box in regular)
    return max(together, most) + pod.overhead.get(name, 0)


def _used(name: str, statistics: kubelet.PodStatistics, *, dedicated: bool) -> int:
    logs = statistics.logs[name].used_bytes if name in statistics.logs else None
    layer = statistics.rootfs[name].used_bytes if name in statistics.rootfs else None
    return (logs or 0) + (0 if dedicated else layer or 0)


POLICY = declaration.Policy(
    stem=STEM,
    summary="evicts pods that exceed their ephemeral-storage limits",
    protects="it frees the node's disk for others",
    decide=decide,
    settings=Settings(),
)
