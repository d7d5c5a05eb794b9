"""The reserve pods that pre-allocate: filter, score, arguments of the plugin.

Covers: all nodes at once. Does not cover: one node (``reservation.preallocation``).
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.reservation import keys
from koordlet.scheduler.reservation.preallocation import Adopter, PreAllocationConfig
from koordlet.scheduler.reservation.spec import AllocatePolicy, ReservationSpec

_UNSUPPORTED = "node(s) reservation pre allocation is unsupported with current attributes"
_DISABLED = "reservation requires cluster mode pre-allocation which is disabled"
_NATIVE = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
_KNOWN = frozenset(
    {
        "apiVersion", "kind", "enablePreemption", "minCandidateNodesPercentage",
        "minCandidateNodesAbsolute", "controllerWorkers", "gcDurationSeconds",
        "gcIntervalSeconds", "resyncIntervalSeconds", "disableGarbageCollection",
        "preAllocationConfig", "ignoredResources", "ignoredResourceGroups",
        "reservationSelectorIndex",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Arguments:
    """The peer's ReservationArgs.

    Without any arguments Cluster mode is on: the manual's examples run as they are printed. With
    arguments it is on only where they say so, as the peer has it.
    """

    preempts: bool = False

    gc_seconds: int = 86400
    gc_interval: int = 60
    resync_seconds: int = 60
    collects: bool = True
    adoption: PreAllocationConfig = field(default_factory=PreAllocationConfig)
    ignored: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @classmethod
    def read(cls, args: Body) -> Arguments:
        """The arguments; ``BadObjectError`` names what is unknown or out of bounds."""
        if not args:
            return cls()
        for name in args:
            if name not in _KNOWN:
                raise BadObjectError(f"ReservationArgs: {name} is unknown")
        ignored = frozenset(wire.strings(args, "ignoredResources"))
        if ignored & _NATIVE:
            raise BadObjectError(f"ignoredResources: {min(ignored & _NATIVE)} cannot be ignored")
        for name in ("minCandidateNodesPercentage", "minCandidateNodesAbsolute"):
            wire.integer(args, name)
        own = wire.mapping(args, "preAllocationConfig")
        arguments = cls(
            preempts=wire.flag(args, "enablePreemption"),
            gc_seconds=wire.integer(args, "gcDurationSeconds", 86400),
            gc_interval=wire.integer(args, "gcIntervalSeconds", 60),
            resync_seconds=wire.integer(args, "resyncIntervalSeconds", 60),
            collects=not wire.flag(args, "disableGarbageCollection"),
            adoption=PreAllocationConfig(
                cluster=wire.flag(own, "enableClusterMode"),
                label=wire.text(own, "clusterLabelKey") or keys.PRE_ALLOCATABLE,
                priority=wire.text(own, "clusterPriorityAnnotationKey")
                or keys.PRE_ALLOCATABLE_PRIORITY,
                prefer_none=wire.flag(own, "preferNoPreAllocatedPods"),
            ),
            ignored=ignored,
            groups=frozenset(wire.strings(args, "ignoredResourceGroups")),
        )
        if min(arguments.gc_seconds, arguments.gc_interval, arguments.resync_seconds) < 0:
            raise BadObjectError("ReservationArgs: a number of seconds is negative")
        return arguments

    def ignores(self, name: str) -> bool:
        """Whether the amount of a resource is none of the plugin's business."""
        return name in self.ignored or ("/" in name and name.partition("/")[0] in self.groups)


def adopter(spec: ReservationSpec, columns: Columns, arguments: Arguments) -> Adopter:
    """The adopter of a reservation; ``RefusedError`` where no node could ever serve."""
    if spec.policy is not AllocatePolicy.RESTRICTED:
        raise framework.RefusedError(_UNSUPPORTED)
    wanted = spec.pre_allocation is not None and spec.pre_allocation.cluster
    if wanted and not arguments.adoption.cluster:
        raise framework.RefusedError(_DISABLED)
    return Adopter(spec, columns, arguments.adoption)


def adopting(adopter: Adopter, columns: Columns) -> framework.ByNode:
    """Where a reservation fits once the pods that it adopts have ended."""

    def refuses(_node: Node, row: int) -> framework.Verdict | None:
        reasons = adopter.judge(row).reasons
        return framework.Verdict(reasons, resolvable=True) if reasons else None

    return framework.ByNode(columns, refuses)


class Preference(framework.ContextScore):
    """Fewer adopted pods where several may be; else the one that fills the reservation best."""

    def __init__(self, adopter: Adopter) -> None:
        self._adopter = adopter

    def final(self, raw: Ints, rows: Rows) -> Ints:
        scores = np.array([self._adopter.judge(row).score for row in rows.tolist()], np.int64)
        return framework.scaled(scores)
