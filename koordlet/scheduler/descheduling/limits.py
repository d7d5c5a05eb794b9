"""How many pods may be evicted in one round: by node, by namespace, in all.

Covers: the counts of one round, which begin anew with each. Does not cover: rates over time and in
flight (``disruption.limiter``).
"""

from __future__ import annotations

import enum
from collections import Counter

from koordlet.model.record import dataclass
from koordlet.scheduler.objects.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLimits:
    """``maxNoOfPodsToEvict…``; ``None``: as many as want to."""

    per_node: int | None = None
    per_namespace: int | None = None
    total: int | None = None


class EvictionAnswer(enum.Enum):
    """What came of a proposal, in the peer's words of its metric."""

    EVICTED = "success"
    REFUSED = "error"
    UNFIT = "pod does not fit on any other node"
    NODE_LIMIT = "maximum number of pods per node reached"
    NAMESPACE_LIMIT = "maximum number of pods per namespace reached"
    TOTAL_LIMIT = "maximum number of pods per total reached"
    #: Of the limiter: no word of the peers.
    CLUSTER_LIMIT = "limit of the whole cluster reached"

    @property
    def evicted(self) -> bool:
        """Whether the pod goes."""
        return self is EvictionAnswer.EVICTED

    @property
    def ends(self) -> bool:
        """Whether whatever else the strategy wants would be refused, too."""
        return self in {EvictionAnswer.TOTAL_LIMIT, EvictionAnswer.CLUSTER_LIMIT}


class RoundCounts:
    """The evictions of one round."""

    def __init__(self, limits: RoundLimits) -> None:
        self._limits = limits
        self._nodes: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()

    def refusal(self, pod: Pod) -> EvictionAnswer | None:
        """The limit that one eviction more would exceed."""
        limits = self._limits
        if limits.total is not None and self._nodes.total() >= limits.total:
            return EvictionAnswer.TOTAL_LIMIT
        if limits.per_node is not None and self._nodes[pod.node] >= limits.per_node:
            return EvictionAnswer.NODE_LIMIT
        most = limits.per_namespace
        if most is not None and self._namespaces[pod.namespace] >= most:
            return EvictionAnswer.NAMESPACE_LIMIT
        return None

    def count(self, pod: Pod, number: int = 1) -> None:
        """A pod goes; -1: it does not, after all."""
        self._nodes[pod.node] += number
        self._namespaces[pod.namespace] += number
