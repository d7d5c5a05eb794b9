"""The state of the cluster as the limiter of evictions asks for it.

Covers: nodes that are not ready, pods that wait. Does not cover: what follows from it.
"""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.disruption.limiter import ClusterHealth
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.loop.core import Core

#: Taints of a node that does not answer, or says that it is not ready.
_NOT_READY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_WAITING = (QueuePlace.ACTIVE, QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE)


def of(core: Core) -> ClusterHealth:
    """The state now; gated pods do not wait for a node yet."""
    columns = core.pod_cache.columns
    # Each eviction that is thought of asks: taints are looked at once for all nodes that have them.
    silent = columns.index.field("taints").where(_is_silent)
    pending = sum(map(core.queue.count, _WAITING))
    return ClusterHealth(
        nodes=len(columns.rows),
        not_ready=int(silent.sum()),
        pods=len(core.pod_cache) + pending,
        pending=pending,
    )


def _is_silent(taints: Any) -> bool:
    return any(taint.key in _NOT_READY for taint in taints)
