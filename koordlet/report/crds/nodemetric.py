"""NodeMetric of ``slo.koordinator.sh``: what a node and its pods use.

Covers: the wish (written by the peer's manager) and the status (written by the agent).
Does not cover: computing either.
"""

from __future__ import annotations

from pydantic import Field

from koordlet.report.crds import fields


class ResourceMap(fields.Open):
    """Amounts of resources."""

    resources: fields.ResourceList | None = None
    devices: list[fields.Free] | None = None


class AggregatePolicy(fields.Open):
    """Windows over which usage is aggregated."""

    durations: list[fields.Duration] | None = None


class CollectPolicySchema(fields.Open):
    """How the agent measures and reports usage."""

    aggregate_duration_seconds: fields.Int64 | None = fields.about("Averaging window in seconds.")
    report_interval_seconds: fields.Int64 | None = fields.about(
        "Interval between two status updates in seconds."
    )
    node_aggregate_policy: AggregatePolicy | None = None
    node_memory_collect_policy: str | None = fields.about(
        "How memory usage is measured: usageWithoutPageCache, usageWithPageCache or"
        " usageWithHotPageCache."
    )


class NodeMetricSpecSchema(fields.Open):
    """Desired collection of metrics."""

    metric_collect_policy: CollectPolicySchema | None = None


class AggregatedUsage(fields.Open):
    """Usage aggregated over one window."""

    duration: fields.Duration | None = None
    usage: dict[str, ResourceMap] | None = fields.about(
        "Usage by aggregation: avg, p50, p90, p95, p99."
    )


class NumaUsage(fields.Open):
    """Usage of one NUMA node."""

    numa_node_id: fields.Int32 = Field(alias="numaNodeID")
    node_usage: ResourceMap | None = None
    system_usage: ResourceMap | None = None


class NodeUsage(fields.Open):
    """Usage of the node."""

    node_usage: ResourceMap | None = None
    aggregated_node_usages: list[AggregatedUsage] | None = None
    system_usage: ResourceMap | None = None
    aggregated_system_usages: list[AggregatedUsage] | None = None
    numa_usages: list[NumaUsage] | None = None


class PodMetric(fields.Open):
    """Usage of one pod."""

    name: str | None = None
    namespace: str | None = None
    priority: str | None = None
    qos: str | None = None
    pod_usage: ResourceMap | None = None
    extensions: fields.Free | None = None


class HostApplicationMetric(fields.Open):
    """Usage of a host application (outside Kubernetes)."""

    name: str | None = None
    priority: str | None = None
    qos: str | None = None
    usage: ResourceMap | None = None


class Predicted(fields.Open):
    """Predicted resources."""

    resource: ResourceMap | None = None


class NodeMetricStatusSchema(fields.Open):
    """Usage measured by the agent."""

    update_time: fields.Time | None = None
    node_metric: NodeUsage | None = None
    pods_metric: list[PodMetric] | None = None
    host_application_metric: list[HostApplicationMetric] | None = None
    prod_reclaimable_metric: Predicted | None = None
    prod_peak_metric: Predicted | None = None


class NodeMetricSchema(fields.Closed):
    """Resource usage of a node and its pods."""

    spec: NodeMetricSpecSchema | None = None
    status: NodeMetricStatusSchema | None = None
