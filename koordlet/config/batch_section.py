"""The section ``policies.batch_resources``: resources offered to batch and mid workloads.

Covers: its fields under the peer's names. Does not cover: the policy
(``policy.best_effort.batch_resources``), what the ConfigMap of a cluster says instead.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import sections

Percent = Annotated[int, Field(ge=0, le=100)]


class BatchResourcesLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    cpu_percent: Percent | None = Field(
        default=None, description="Upper bound of the offered CPU, in percent of the node's CPU."
    )
    memory_percent: Percent | None = Field(
        default=None,
        description="Upper bound of the offered memory, in percent of the node's memory.",
    )


class BatchResources(sections.Section):
    """Resources of the node offered to batch and mid workloads."""

    mode: sections.PolicyModeField = "enforce"
    limits: BatchResourcesLimits = Field(
        default_factory=BatchResourcesLimits,
        description="Upper bounds. They are applied last and override every other source.",
    )
    enable: bool = Field(
        default=False,
        description="Compute batch and mid resources. In a cluster the slo-controller-config"
        " ConfigMap overrides this key and the other keys with Koordinator's names.",
    )
    cpu_reclaim_threshold_percent: Percent = Field(
        default=60,
        description="Target use of the node's CPU by all workloads together, in percent.",
    )
    memory_reclaim_threshold_percent: Percent = Field(
        default=65,
        description="Target use of the node's memory by all workloads together, in percent.",
    )
    cpu_calculate_policy: Literal["usage", "maxUsageRequest"] = Field(
        default="usage",
        description="What is subtracted for prod workloads: their usage, or the"
        " larger of usage and request.",
    )
    memory_calculate_policy: Literal["usage", "request", "maxUsageRequest"] = Field(
        default="usage",
        description="What is subtracted for prod workloads: their usage, their"
        " request, or the larger of both.",
    )
    degrade_time_minutes: Annotated[int, Field(ge=1, le=1440)] = Field(
        default=15, description="How long an offer stays valid without new measurements."
    )
    formula: Literal["peer", "seed"] = Field(
        default="peer",
        description="What the calculation starts from: node capacity (`peer`, as"
        " Koordinator does) or node allocatable (`seed`).",
    )
