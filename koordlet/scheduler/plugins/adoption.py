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
from koordlet.scheduler.framework import ByNode, ContextScore, Kind, RefusedError, Verdict
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.reservation import keys, preallocation
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
    percentage: int = 10
    least: int = 100
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
        arguments = cls(
            preempts=wire.flag(args, "enablePreemption"),
            percentage=wire.integer(args, "minCandidateNodesPercentage", 10),
            least=wire.integer(args, "minCandidateNodesAbsolute", 100),
            gc_seconds=wire.integer(args, "gcDurationSeconds", 86400),
            gc_interval=wire.integer(args, "gcIntervalSeconds", 60),
            resync_seconds=wire.integer(args, "resyncIntervalSeconds", 60),
            collects=not wire.flag(args, "disableGarbageCollection"),
            adoption=_config(wire.mapping(args, "preAllocationConfig")),
            ignored=ignored,
            groups=frozenset(wire.strings(args, "ignoredResourceGroups")),
        )
        if min(arguments.gc_seconds, arguments.gc_interval, arguments.resync_seconds) < 0:
            raise BadObjectError("ReservationArgs: a number of seconds is negative")
        return arguments

    def ignores(self, name: str) -> bool:
        """Whether the amount of a resource is none of the plugin's business."""
        return name in self.ignored or ("/" in name and name.partition("/")[0] in self.groups)


def _config(body: Body) -> PreAllocationConfig:
    return PreAllocationConfig(
        cluster=wire.flag(body, "enableClusterMode"),
        label=wire.text(body, "clusterLabelKey") or keys.PRE_ALLOCATABLE,
        priority=wire.text(body, "clusterPriorityAnnotationKey") or keys.PRE_ALLOCATABLE_PRIORITY,
        prefer_none=wire.flag(body, "preferNoPreAllocatedPods"),
    )


def check(spec: ReservationSpec, arguments: Arguments) -> None:
    """``RefusedError`` where no node could ever serve."""
    if spec.policy is not AllocatePolicy.RESTRICTED:
        raise RefusedError(_UNSUPPORTED)
    wanted = spec.pre_allocation is not None and spec.pre_allocation.cluster
    if wanted and not arguments.adoption.cluster:
        raise RefusedError(_DISABLED)


class Adopting(ByNode):
    """Where a reservation fits once the pods that it adopts have ended."""

    kind = Kind.LOAD

    def __init__(self, adopter: Adopter) -> None:
        super().__init__()
        self._adopter = adopter

    def refusal(self, row: int) -> Verdict | None:
        reasons = self._adopter.judge(row).reasons
        return Verdict(reasons, resolvable=True) if reasons else None


class Preference(ContextScore):
    """Fewer adopted pods where several may be; else the one that fills the reservation best."""

    def __init__(self, adopter: Adopter) -> None:
        self._adopter = adopter

    def final(self, raw: Ints, rows: Rows) -> Ints:
        scores = np.array([self._adopter.judge(row).score for row in rows.tolist()], np.int64)
        return framework.scaled(scores)


def adopter(spec: ReservationSpec, columns: Columns, arguments: Arguments) -> Adopter:
    """The adopter of a reservation, or ``RefusedError``."""
    check(spec, arguments)
    return Adopter(spec, columns, arguments.adoption)


def adopted(
    spec: ReservationSpec, columns: Columns, arguments: Arguments, row: int
) -> tuple[Pod, ...]:
    """The pods that a reservation adopts on the node that was chosen for it."""
    return preallocation.Adopter(spec, columns, arguments.adoption).judge(row).pods
