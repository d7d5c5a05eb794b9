"""Observations of all workload sources, as one value per tick.

Covers: the value.
Does not cover: asking (``workloads.gatherer``), merging (``workloads.merging``).
"""

from __future__ import annotations

from dataclasses import replace

from koordlet.model import kubelet, nodemetric, nodeslo, pod, reservation, snapshot
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Immutable: a source that says something new makes a new one."""

    pods: tuple[pod.Pod, ...] = ()
    #: Whether the kubelet has listed its pods: those that no API server has any more are there.
    kubelet_listed: bool = False
    #: ``None``: nobody said it; the configuration file's node counts.
    node: snapshot.NodeInfo | None = None
    slo: nodeslo.NodeSlo | None = None
    #: Usage that somebody else reported; only of files (``plan --pods``).
    metric: nodemetric.NodeMetric | None = None
    kubelet: kubelet.Kubelet | None = None
    #: Those bound to this node.
    reservations: tuple[reservation.Reservation, ...] = ()
    sources: tuple[snapshot.Source, ...] = ()
    #: Objects that cost themselves: their last good value counts, if there ever was one.
    unread: tuple[snapshot.Unread, ...] = ()
    #: What was dropped or defaulted, each naming its object.
    problems: tuple[str, ...] = ()

    def told(self, seen: snapshot.Snapshot) -> snapshot.Snapshot:
        """The snapshot with what the sources said beside the node, its pods and their health."""
        return replace(
            seen,
            slo=self.slo,
            kubelet=self.kubelet,
            metric=self.metric,
            reservations=self.reservations,
            unread=self.unread,
        )


#: No source said anything.
NOTHING = Observed()
