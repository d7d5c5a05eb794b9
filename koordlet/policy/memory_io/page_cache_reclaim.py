"""page_cache_reclaim: reclaims page cache beyond a pod's limit.

Covers: the fields ``pageCacheLimit*`` of a class and of the annotation ``memoryQOS``, kept by
asking the kernel for what is too much (``memory.reclaim``, cgroup v2).
Does not cover: other limits of memory (``memory_qos``, which also says whose strategy holds).

Rules:
1. A size wins over a percent of the pod's memory limit, and the limit caps it; 0 switches it off;
   an explicit ``pageCacheLimitEnable`` decides alone. (As the peer, which needs one vendor's
   kernel for it.)
2. Only what was seen lately is acted on. A pod is asked once and then left in peace until its
   counters have followed; never for more than ``limits.maxBytes`` at a time.
3. Page cache alone is asked for: without swap other memory has nowhere to go, and with swap (zram
   is one) the kernel is told so, ``swappiness=0``. One that does not know that refuses, and nothing
   is taken. It may find less, which is no failure.

* Formula: too much = page cache - min(size, or percent * limit; limit)
* Writes: `memory.reclaim` of pods (v2)
* See: `koordlet explain pod NS/NAME`
* Off: nothing is asked of the kernel any more; what it has taken back is read again on use
* More: best-effort.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.history import series
from koordlet.model import action, decision, knob, meter, nodeslo, remember, snapshot, strategies
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals
from koordlet.policy.memory_io import memory_qos

STEM = "page_cache_reclaim"
#: What is believed of the cache: the mean of so many seconds.
_WINDOW = 15.0
#: A pod that was asked is asked again after so many seconds.
_PAUSE = 30.0
#: Less than this is not worth a call.
_LEAST = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; a NodeSLO replaces the classes."""

    classes: Mapping[str, strategies.MemoryQos] = field(default_factory=dict)
    #: Never more than this at once from one pod.
    max_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """When each cgroup was last reclaimed from (monotonic)."""

    asked: Mapping[str, float] = field(default_factory=dict)


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide what to reclaim now."""
    asked = {group: at for group, at in state.asked.items() if 0 <= now.at - at < _PAUSE}
    proposal = proposals.Proposal(STEM, now)
    why = proposal.why
    missing = ""
    for pod, most in _limited(now.pods, now.slo, settings.classes):
        group = pod.group or ""
        if group not in now.groups:
            continue
        target = now.layout.file(knob.MEMORY_RECLAIM, group)
        if target is None:
            missing = str(now.layout.why_not(knob.MEMORY_RECLAIM))
            continue
        seen = past.groups.window(group, meter.MEMORY_CACHE, now.at, _WINDOW)
        if seen is None:
            why[pod.key] = f"page cache limit {most} bytes, use not known"
            continue
        why[pod.key] = f"page cache {int(seen.average)} bytes, limit {most} bytes"
        excess = min(int(seen.average) - most, settings.max_bytes)
        if excess < _LEAST or group in asked:
            continue
        asked[group] = now.at
        proposal.actions.append(
            action.Reclaim(
                target=target,
                amount_bytes=excess,
                policy=STEM,
                reason=f"{pod.key} {why[pod.key]}",
                group=group,
                cache_only=now.pressure.swap_total != 0,
            )
        )
    if missing:
        proposal.say("PageCacheUnsupported", missing)
    return proposal.decided(State(asked=asked))


@remember.last
def _limited(
    workloads: tuple[pods.Pod, ...],
    slo: nodeslo.NodeSlo | None,
    classes: Mapping[str, strategies.MemoryQos],
) -> list[tuple[pods.Pod, int]]:
    """Pods with a page cache limit, and the limit in bytes."""
    settings = memory_qos.Settings(classes=classes)
    limited: list[tuple[pods.Pod, int]] = []
    for pod in workloads:
        strategy = memory_qos.strategy_of(pod, slo, settings) if pod.group and pod.active else None
        most = None if strategy is None else allowed(strategy, pod)
        if most is not None:
            limited.append((pod, most))
    return limited


def allowed(strategy: strategies.MemoryQos, pod: pods.Pod) -> int | None:
    """Page cache limit of a pod in bytes; ``None`` is unlimited."""
    if strategy.page_cache_limit_enable is False:
        return None
    limit = pod.memory_limit
    if strategy.page_cache_limit_size is not None:
        size = strategy.page_cache_limit_size
    else:
        size = limit * (strategy.page_cache_limit_percent or 0) // 100
    if limit > 0:
        size = min(size, limit)
    return size if size > 0 else None


POLICY = declaration.Policy(
    stem=STEM,
    summary="page cache beyond a pod's limit, reclaimed",
    decide=decide,
    settings=Settings(),
    state=State(),
)
