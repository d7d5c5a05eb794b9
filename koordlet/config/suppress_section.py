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
    """Upper bounds that no source can exceed."""

    max_percent: Annotated[int | None, Field(ge=0, le=100)] = Field(
        default=None,
        description="Upper bound for best-effort work, in percent of the node's CPU.",
    )


class CpuSuppress(sections.Section):
    """CPU limit of best-effort work by Koordinator's formula."""

    mode: sections.PolicyModeField = "enforce"
    limits: CpuSuppressLimits = Field(
        default_factory=CpuSuppressLimits, description="Upper bounds that no source can exceed."
    )
    enable: bool = Field(
        default=False,
        description="Limit best-effort work by the formula. In a cluster a NodeSLO overrides this"
        " and the three `cpuSuppress…` keys.",
    )
    cpu_suppress_threshold_percent: Percent = Field(
        default=65,
        description="Target use of the node's CPU by all workloads together, in percent.",
    )
    cpu_suppress_min_percent: Percent | None = Field(
        default=None, description="Least CPU of best-effort work, in percent of the node's CPU."
    )
    cpu_suppress_policy: Literal["cpuset", "cfsQuota"] = Field(
        default="cpuset",
        description="How the limit is enforced: `cpuset` limits the CPUs,"
        " `cfsQuota` limits the CPU time.",
    )
    formula: Literal["peer", "seed"] = Field(
        default="peer",
        description="What counts as reserved: `peer` uses the larger of capacity minus"
        " allocatable and the reservation annotation, `seed` uses the annotation only.",
    )
    max_age_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        default=30,
        description="How long the last limit stays when counters are stale; after"
        " that koordlet lowers it.",
    )
