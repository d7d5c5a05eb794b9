"""The section ``policies.cpu_burst``: CPU time beyond the limit.

Covers: its fields under the peer's names. Does not cover: the policy (``policy.cpu.cpu_burst``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import sections


class CpuBurstLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_percent: Annotated[int | None, Field(ge=100)] = Field(
        default=None,
        description="Upper bound of bursts and raised limits, in percent of the CPU limit; null"
        " sets no bound.",
    )


class CpuBurst(sections.Section):
    """CPU time beyond their limit for containers that are neither LSE, LSR nor BE."""

    mode: sections.PolicyModeField = "enforce"
    limits: CpuBurstLimits = Field(
        default_factory=CpuBurstLimits, description="Upper bounds that no source can exceed."
    )
    policy: Literal["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"] = Field(
        default="none",
        description="`cpuBurstOnly` lets containers accumulate unused CPU time,"
        " `cfsQuotaBurstOnly` raises the quota of throttled containers, `auto` does both. A"
        " NodeSLO replaces this and all keys below.",
    )
    cpu_burst_percent: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=1000,
        description="Burst that a container may accumulate, in percent of its CPU limit; the"
        " kernel allows 100 at most.",
    )
    cfs_quota_burst_percent: Annotated[int, Field(ge=100)] = Field(
        default=300, description="Highest raised quota, in percent of the CPU limit."
    )
    cfs_quota_burst_period_seconds: Annotated[int, Field(ge=-1)] = Field(
        default=-1,
        description="How long a container may keep the highest raised quota; -1 sets no time"
        " limit.",
    )
    share_pool_threshold_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=50,
        description="Use of the shared pool, in percent, above which koordlet lowers"
        " raised quotas.",
    )
