"""The section ``policies.batch_resources``: what may be promised to batch and mid workloads.

Covers: its fields under the peer's names. Does not cover: the policy
(``policy.best_effort.batch_resources``), what the ConfigMap of a cluster says instead.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import sections

Percent = Annotated[int, Field(ge=0, le=100)]


class BatchResourcesLimits(sections.Section):
    """Upper bounds, applied last."""

    cpu_percent: Percent | None = Field(
        default=None, description="At most this part of the node's CPU is offered."
    )
    memory_percent: Percent | None = Field(
        default=None, description="At most this part of the node's memory is offered."
    )


class BatchResources(sections.Section):
    """What of the node may be promised to batch and mid workloads."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: BatchResourcesLimits = Field(
        default_factory=BatchResourcesLimits, description="Upper bounds, applied last."
    )
    enable: bool = Field(
        default=False,
        description="Compute batch and mid resources. An object of the cluster decides instead,"
        " with this and the other keys of the peer's names.",
    )
    cpu_reclaim_threshold_percent: Percent = Field(
        default=60, description="Part of the node's CPU that all may use together."
    )
    memory_reclaim_threshold_percent: Percent = Field(
        default=65, description="Part of the node's memory that all may use together."
    )
    cpu_calculate_policy: Literal["usage", "maxUsageRequest"] = Field(
        default="usage", description="What of other workloads is taken off."
    )
    memory_calculate_policy: Literal["usage", "request", "maxUsageRequest"] = Field(
        default="usage", description="The same for memory."
    )
    degrade_time_minutes: Annotated[int, Field(ge=1, le=1440)] = Field(
        default=15, description="How long an offer stands when nothing is measured."
    )
    formula: Literal["peer", "seed"] = Field(
        default="peer", description="What the base is: `peer` capacity, `seed` allocatable."
    )
