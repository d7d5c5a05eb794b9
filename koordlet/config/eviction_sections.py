"""The section ``eviction``, and the eviction policies under Koordinator's names.

Covers: how koordlet evicts, evictions by CPU and memory, by use and by requests.
Does not cover: node pressure (``node_pressure_section``), evicting (``apply.evictor``).
"""

from __future__ import annotations

from typing import Literal

from koordlet.config import sections
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
