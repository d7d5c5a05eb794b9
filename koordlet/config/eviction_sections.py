"""The sections ``eviction``, ``nodeShutdown`` and those of the peer's eviction policies.

Covers: how koordlet evicts, how workloads end at a shutdown, evictions by CPU and memory, by use
and by requests.
Does not cover: node pressure (``node_pressure_section``), evicting (``apply.evictor``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from koordlet.config import fieldtypes, sections
from koordlet.model import strategies


class EvictLimits(sections.Section):
    """The bounds of all evictions are those of ``node_pressure``."""


class Evict(sections.StrategySection):
    """Common fields of these sections."""

    mode: sections.PolicyModeField = "shadow"
    limits: EvictLimits
    #: Enable evictions by this policy. In a cluster a NodeSLO overrides this and the keys below.
    enable: bool = False


class CpuEvict(Evict, of=(strategies.Threshold, "cpu_evict")):
    """Evictions while best-effort work starves of CPU, or the node's CPU use is too high."""


class MemoryEvict(Evict, of=(strategies.Threshold, "memory_evict")):
    """Evictions while the node's memory use is too high."""


class CpuAllocatableEvict(Evict, of=(strategies.Threshold, "cpu_allocatable_evict")):
    """Evictions while CPU requests exceed what the node offers to mid and batch work."""


class MemoryAllocatableEvict(Evict, of=(strategies.Threshold, "memory_allocatable_evict")):
    """Evictions while memory requests exceed what the node offers to mid and batch work."""


class Eviction(sections.Section):
    """How koordlet evicts pods."""

    #: `api` uses the eviction API, which respects PodDisruptionBudgets; `delete` deletes pods
    #: without them; `local` stops units and kills processes. `auto` is `api` in a cluster and
    #: `local` elsewhere.
    by: Literal["auto", "api", "delete", "local"] = "auto"
    #: Send evictions to the API server as dry runs: no pod is removed.
    dry_run: bool = False


_Seconds = Annotated[int, Field(ge=0, le=86_400)]


class ShutdownRow(sections.Section):
    """Workloads from a priority on, up to that of the next row."""

    #: The lowest priority of this row. Workloads below every row are in the lowest.
    priority: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
    #: Seconds that these workloads have to end; then the next row begins.
    seconds: Annotated[int, Field(ge=1, le=86_400)]


class NodeShutdown(sections.Section):
    """The order and the time in which workloads end before this machine shuts down."""

    #: Seconds that a shutdown is delayed at most; 0: none (kubelet: `shutdownGracePeriod`).
    seconds: _Seconds = 0
    #: Seconds of them for critical workloads, which end last (`shutdownGracePeriodCriticalPods`).
    critical_seconds: _Seconds = 0
    #: Rows instead of the two numbers above (`shutdownGracePeriodByPodPriority`).
    by_priority: fieldtypes.Listed[ShutdownRow] = ()

    @model_validator(mode="after")
    def _consistent(self) -> NodeShutdown:
        if self.critical_seconds > self.seconds:
            fieldtypes.refuse(
                f"criticalSeconds {self.critical_seconds} exceeds seconds {self.seconds}",
                "they are a part of seconds: lower them, or raise seconds",
                at=("criticalSeconds",),
            )
        if self.by_priority and self.seconds:
            fieldtypes.refuse(
                "seconds and byPriority exclude each other",
                "remove one of them",
                at=("byPriority",),
            )
        seen: set[int] = set()
        for index, row in enumerate(self.by_priority):
            if row.priority in seen:
                fieldtypes.refuse(
                    f"two rows have priority {row.priority}",
                    "make one row of them",
                    at=("byPriority", index, "priority"),
                )
            seen.add(row.priority)
        return self
