"""Order in which workloads end before the node shuts down. Pure.

Covers: rows of the configuration, which workload is in which row, how long it has.
Does not cover: hearing of a shutdown, ending them (``agent.node_shutdown``).

The rules are the kubelet's (shutdownGracePeriodByPodPriority): a workload is in the row with the
greatest priority that is not above its own, else in the lowest. Rows end one after the other, the
lowest priority first. Two differences: a workload without a priority has that of its class, so that
best-effort work has a row of its own without further words; and the last second of a row is for
killing what did not end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from koordlet.model import eviction, pod, qos
from koordlet.model.record import dataclass

STEM = "node_shutdown"
#: What an eviction for a shutdown says, as the kubelet's.
REASON = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."
#: Where Kubernetes puts its system classes; a static pod is of the kubelet's own.
CRITICAL = 2_000_000_000
#: Seconds at the end of a row in which what is left is killed.
_KILLING = 1


@dataclass(frozen=True, slots=True)
class Row:
    """Workloads from this priority on, up to the next row's, and the seconds that they have."""

    priority: int
    seconds: int


def rows(
    seconds: int, critical_seconds: int, by_priority: Iterable[tuple[int, int]]
) -> tuple[Row, ...]:
    """Make the rows of a configuration, the lowest priority first; none: nothing is delayed."""
    listed = tuple(Row(*row) for row in sorted(by_priority))
    if listed or not seconds:
        return listed
    return Row(0, seconds - critical_seconds), Row(CRITICAL, critical_seconds)


def row_of(workload: pod.Pod, table: Sequence[Row]) -> int:
    """The place of a workload's row."""
    priority = _priority(workload)
    return max((n for n, row in enumerate(table) if row.priority <= priority), default=0)


def due(
    workloads: Iterable[pod.Pod], table: Sequence[Row], place: int, ended: frozenset[str]
) -> tuple[pod.Pod, ...]:
    """Who is to end now, in a row: also who came later than an earlier row."""
    return tuple(
        workload
        for workload in workloads
        if workload.active
        and workload.qos is not qos.Qos.SYSTEM
        and workload.uid not in ended
        and row_of(workload, table) <= place
    )


def victim(workload: pod.Pod, row: Row) -> eviction.Eviction:
    """The eviction of a workload."""
    usual = row.seconds if workload.grace_seconds is None else workload.grace_seconds
    return eviction.Eviction(
        pod=workload.key,
        uid=workload.uid,
        policy=STEM,
        signal=STEM,
        reason=REASON,
        message=MESSAGE,
        grace_seconds=max(0, min(usual, row.seconds - _KILLING)),
        group=workload.group,
        match=workload.match,
    )


def _priority(workload: pod.Pod) -> int:
    if workload.static:
        return CRITICAL
    return workload.priority_value or qos.Band.default_of(workload.qos).default
