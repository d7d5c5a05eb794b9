"""The section ``policies.cpu_suppress``: a limit of best-effort work by the peer's formula.

Covers: its fields under the peer's names. Does not cover: the policy
(``policy.best_effort.cpu_suppress``), what a NodeSLO says instead.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import sections

Percent = Annotated[int, Field(ge=0, le=100)]


class CpuSuppressLimits(sections.Section):
    """Upper bounds, applied last."""

    max_percent: Annotated[int | None, Field(ge=0, le=100)] = Field(
        default=None,
        description="Best-effort work never gets more than this part of the node's CPU.",
    )


class CpuSuppress(sections.Section):
    """How much CPU best-effort work may have, by the peer's formula."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: CpuSuppressLimits = Field(
        default_factory=CpuSuppressLimits, description="Upper bounds, applied last."
    )
    enable: bool = Field(
        default=False,
        description="Limit best-effort work by the formula. A NodeSLO decides instead, with the"
        " three keys that begin with `cpuSuppress`.",
    )
    cpu_suppress_threshold_percent: Percent = Field(
        default=65, description="Part of the node's CPU that all workloads may use together."
    )
    cpu_suppress_min_percent: Percent | None = Field(
        default=None, description="Best-effort work keeps at least this part of the node's CPU."
    )
    cpu_suppress_policy: Literal["cpuset", "cfsQuota"] = Field(
        default="cpuset", description="What holds the limit: a set of CPUs, or a quota of CPU time."
    )
    formula: Literal["peer", "seed"] = Field(
        default="peer",
        description="What is reserved: `peer` takes the larger of capacity less allocatable and the"
        " reservation annotation, `seed` the annotation alone.",
    )
    max_age_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        default=30, description="How long a limit is held when counters are old, before it falls."
    )
