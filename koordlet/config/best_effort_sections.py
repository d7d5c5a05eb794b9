"""Sections of policies about best-effort work: ``adaptive``, ``batch_resources``, ``cpu_suppress``.

Covers: their fields, where Koordinator has the policy under its names. Does not cover: the
policies (``policy.best_effort``), the objects of a cluster that override them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import sections
from koordlet.model import strategies

Percent = Annotated[int, Field(ge=0, le=100)]


class BatchResourcesLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    #: Upper bound of the offered CPU, in percent of the node's CPU.
    cpu_percent: Percent | None = None
    #: Upper bound of the offered memory, in percent of the node's memory.
    memory_percent: Percent | None = None


class BatchResources(sections.StrategySection, of=(strategies.Colocation, "batch_resources")):
    """Resources of the node offered to batch and mid workloads."""

    mode: sections.PolicyModeField = "enforce"
    limits: BatchResourcesLimits
    #: What the calculation starts from: node capacity (`peer`, as Koordinator does) or node
    #: allocatable (`seed`).
    formula: Literal["peer", "seed"] = "peer"


class AdaptiveLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    #: Upper bound for best-effort work, in percent of the node's CPU.
    max_percent: Annotated[int | None, Field(ge=0, le=100)] = None


class Adaptive(sections.Section):
    """CPU for best-effort work, adapted to what latency-sensitive work needs."""

    #: `off` does not run the policy, `shadow` only reports its decisions, `enforce` applies them.
    #: The policy pauses while a cluster object or `policies.cpu_suppress` limits best-effort work.
    mode: sections.PolicyModeField = "enforce"
    limits: AdaptiveLimits
    #: Tolerated extra CPU wait of latency-sensitive work beside best-effort work, in percent of its
    #: CPU time. The policy reports more than this.
    tolerance_percent: Annotated[int, Field(ge=1, le=1000)] = 15
    #: Tolerated extra cycles per instruction of latency-sensitive work beside best-effort work, in
    #: percent of its usual value (needs `counters.cpi`). The policy reports more than this; 0
    #: switches the report off.
    cycles_tolerance_percent: Annotated[int, Field(ge=0, le=1000)] = 25
    #: Deprecated: accepted, but has no effect, because the policy no longer takes CPU from
    #: best-effort work.
    floor_milli: Annotated[int, Field(ge=10, le=1000), sections.DEPRECATED] = 50
    #: Deprecated: accepted, but has no effect, because the policy no longer takes CPU from
    #: best-effort work.
    max_age_seconds: Annotated[int, Field(ge=0, le=3600), sections.DEPRECATED] = 30


class CpuSuppressLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    #: Upper bound for best-effort work, in percent of the node's CPU.
    max_percent: Annotated[int | None, Field(ge=0, le=100)] = None


class CpuSuppress(sections.StrategySection, of=(strategies.Threshold, "cpu_suppress")):
    """CPU limit of best-effort work by Koordinator's formula."""

    mode: sections.PolicyModeField = "enforce"
    limits: CpuSuppressLimits
    #: Limit best-effort work by the formula. In a cluster a NodeSLO overrides this and the three
    #: `cpuSuppress…` keys.
    enable: bool = False
    #: What counts as reserved: `peer` uses the larger of capacity minus allocatable and the
    #: reservation annotation, `seed` uses the annotation only.
    formula: Literal["peer", "seed"] = "peer"
    #: How long the last limit stays when counters are stale; after that koordlet lowers it.
    max_age_seconds: Annotated[int, Field(ge=0, le=3600)] = 30
