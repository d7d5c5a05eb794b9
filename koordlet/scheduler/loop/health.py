"""The state of the cluster as the limiter of evictions asks for it.

Covers: nodes that are not ready, pods that wait. Does not cover: what follows from it.
"""

from __future__ import annotations

from koordlet.scheduler.disruption.limiter import ClusterHealth
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.loop.core import Core

#: Taints of a node that does not answer, or says that it is not ready.
_NOT_READY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_WAITING = (QueuePlace.ACTIVE, QueuePlace.BACKOFF, QueuePlace.UNSCHEDULABLE)


def of(core: Core) -> ClusterHealth:
    """The state now; gated pods do not wait for a node yet."""
    nodes = [node for node in core.pod_cache.columns.nodes if node is not None]
    pending = sum(map(core.queue.count, _WAITING))
    return ClusterHealth(
        nodes=len(nodes),
        not_ready=sum(any(taint.key in _NOT_READY for taint in node.taints) for node in nodes),
        pods=len(core.pod_cache) + pending,
        pending=pending,
    )
