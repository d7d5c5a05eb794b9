"""Page cache reclaim before evictions for memory. Pure.

Covers: when that can be enough, from whom, how much. Does not cover: who goes otherwise
(``node_pressure``), dead containers and images (no machine has any that are ours: on one of its own
koordlet starts nothing, and beside a kubelet they are the kubelet's).

Rules:
1. Inactive page cache counts as available already; what is left is the active part. Only where that
   could be enough is anything taken back: else it would only cost time that an eviction needs.
2. Only without swap, where the kernel has nothing but page cache to take (``memory.reclaim``, v2;
   v1's ``force_empty`` cannot be told how much, and is not used).
3. Best-effort workloads give first, then whoever has most; the kernel takes inactive pages before
   active ones, so both are asked for. It is asked for once; until the next pass the victim is named
   and stays. What is short half a minute later is short again.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.history import series
from koordlet.model import action, knob, meter, qos, snapshot, thresholds
from koordlet.model import pod as pods
from koordlet.policy.eviction import pressure_signals

#: Seconds for which nothing is asked for again.
PAUSE = 30.0
HELD = "not evicting yet: reclaiming page cache first"
_LEAST = 1 << 20


def asked(
    now: snapshot.Snapshot,
    past: series.History,
    due: thresholds.Threshold,
    seen: pressure_signals.Observation,
    policy: str,
) -> tuple[action.Reclaim, ...]:
    """Reclaim actions for a threshold; none where they cannot free enough."""
    where = now.pressure.pods if due.signal == thresholds.ALLOCATABLE_MEMORY else now.pressure.root
    if due.signal not in thresholds.MEMORY_SIGNALS or where is None or now.pressure.swap_total != 0:
        return ()
    need = due.value.of(seen.capacity) - seen.available
    if due.reclaim is not None:
        need += due.reclaim.of(seen.capacity)
    if need > where.active_file:
        return ()
    given: list[action.Reclaim] = []
    for pod, target, active, idle in _givers(now, past):
        if need <= 0:
            break
        gives = min(active, max(need, _LEAST))
        need -= gives
        given.append(
            action.Reclaim(
                target=target,
                amount_bytes=idle + gives,
                policy=policy,
                reason=f"{due.signal} is low, {pod.key} has {active} bytes of active page cache",
                group=pod.group or "",
            )
        )
    return tuple(given) if need <= 0 else ()


def _givers(
    now: snapshot.Snapshot, past: series.History
) -> Iterator[tuple[pods.Pod, str, int, int]]:
    """Rule 3: workload, its file, its active and its inactive page cache."""
    known: list[tuple[bool, int, str, pods.Pod, int]] = []
    for pod in now.pods:
        if pod.group is None or not pod.active or pod.group not in now.groups:
            continue
        cache = past.groups.last(pod.group, meter.MEMORY_CACHE)
        idle = past.groups.last(pod.group, meter.MEMORY_INACTIVE_FILE)
        if cache is not None and idle is not None and cache - idle >= _LEAST:
            active = int(cache - idle)
            known.append((pod.qos is not qos.Qos.BE, -active, pod.uid, pod, int(idle)))
    for _, active, _, pod, idle in sorted(known, key=lambda each: each[:3]):
        target = now.layout.file(knob.MEMORY_RECLAIM, pod.group or "")
        if target is not None:
            yield pod, target, -active, idle
