"""The strategy of co-location: how batch and mid resources are computed; its table of fields.

Covers: the fields of ``colocation-config``, as those of a NodeSLO in ``strategies``.
Does not cover: reading it (``workloads.colocation``), the sums (``policy.best_effort``).
"""

from __future__ import annotations

from koordlet.model.record import dataclass
from koordlet.model.strategy_field import field, percent, switch, whole, word

#: Beyond a thousand times the node nobody means it.
_MOST = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Colocation:
    """How batch and mid resources are computed."""

    enable: bool | None = switch(
        default=False,
        file="batch_resources",
        doc="Compute batch and mid resources. In a cluster the slo-controller-config ConfigMap"
        " overrides this key and the other keys with Koordinator's names.",
    )
    metric_aggregate_duration_seconds: int | None = whole(1, default=300)
    metric_report_interval_seconds: int | None = whole(1, default=60)
    metric_memory_collect_policy: str | None = word(
        *("usageWithoutPageCache", "usageWithPageCache", "usageWithHotPageCache"),
        default="usageWithoutPageCache",
    )
    cpu_reclaim_threshold_percent: int | None = whole(
        *(0, _MOST),
        default=60,
        file="batch_resources",
        doc="Target use of the node's CPU by all workloads together, in percent.",
    )
    cpu_calculate_policy: str | None = word(
        *("usage", "maxUsageRequest"),
        default="usage",
        file="batch_resources",
        doc="What is subtracted for prod workloads: their usage, or the larger of usage and"
        " request.",
    )
    memory_reclaim_threshold_percent: int | None = whole(
        *(0, _MOST),
        default=65,
        file="batch_resources",
        doc="Target use of the node's memory by all workloads together, in percent.",
    )
    memory_calculate_policy: str | None = word(
        *("usage", "request", "maxUsageRequest"),
        default="usage",
        file="batch_resources",
        doc="What is subtracted for prod workloads: their usage, their request, or the larger of"
        " both.",
    )
    degrade_time_minutes: int | None = whole(
        1,
        default=15,
        file="batch_resources",
        doc="How long an offer stays valid without new measurements.",
    )
    update_time_threshold_seconds: int | None = whole(1, default=300)
    resource_diff_threshold: float | None = field("number", low=0, high=1, default=0.1)
    mid_cpu_threshold_percent: int | None = percent(default=100)
    mid_memory_threshold_percent: int | None = percent(default=100)
    mid_unallocated_percent: int | None = percent(default=0)
    mid_reclaim_mode: str | None = word("default", "static", default="default")
    mid_static_cpu_reserved_percent: int | None = percent(default=0)
    mid_static_memory_reserved_percent: int | None = percent(default=0)
    batch_cpu_threshold_percent: int | None = whole(0)
    batch_memory_threshold_percent: int | None = whole(0)
