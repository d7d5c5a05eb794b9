"""What it costs that a pod leaves its node, as movers compare it.

Covers: the cost of a move. Does not cover: whether a pod may go (``limiter``).
"""

from __future__ import annotations

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.disruption.workloads import Signature, WorkloadIndex
from koordlet.scheduler.objects.pods import Pod, PodClass

_PRIORITY = 1e9


class MoveCosts:
    """The cost of moves: 1, the priority, one share of the replicas, the share of the node's CPU.

    Priorities count in thousands of millions.
    """

    def __init__(self, columns: Columns, workloads: WorkloadIndex) -> None:
        self._columns, self._workloads = columns, workloads
        #: The pods that each workload wants.
        self._expected: dict[Signature, int] = {}
        #: By class, priority and the CPU of the node.
        self._known: dict[tuple[PodClass, int, int], float] = {}

    def of(self, pod: Pod, row: int) -> float:
        """What it costs that a pod leaves its node."""
        whole = max(1, int(self._columns.allocatable[0, row]))
        key = pod.pod_class, pod.priority, whole
        cost = self._known.get(key)
        if cost is None:
            share = int(self._columns.vectors(pod.pod_class)[0][0]) / whole
            replicas = self._replicas(pod.pod_class)
            cost = 1 + max(0, pod.priority) / _PRIORITY + 1 / replicas + share
            self._known[key] = cost
        return cost

    def _replicas(self, pod_class: PodClass) -> int:
        signature = self._workloads.signature(pod_class)
        if signature is None:
            return 1
        known = self._expected.get(signature)
        if known is None:
            members = self._workloads.members(signature)
            known = self._expected[signature] = self._workloads.expected(members)
        return max(1, known)
