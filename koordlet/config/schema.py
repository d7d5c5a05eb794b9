"""The shape of the configuration: every field, its type, its default, its one-line description.

Covers: what a valid configuration is, and the rules between fields of one section.
Does not cover: where values come from (``loader``), the words of an error (``problems``), upper
bounds on effective values (``limits``).

Rules:
1. Keys are camelCase in the file and snake_case here; the stems under ``policies`` are written the
   same in both, because a stem has one spelling everywhere.
2. Everything has a default: an empty file is a valid configuration.
3. Models are frozen, unknown keys are refused, types are strict (``"120"`` is not a number).
"""

from __future__ import annotations

import functools
from typing import Annotated, Any, Literal, cast

from pydantic import ConfigDict, Field, model_validator

from koordlet.config import (
    best_effort_sections,
    blkio_section,
    cluster_sections,
    counters_section,
    cpu_sections,
    eviction_sections,
    fieldtypes,
    memory_sections,
    network_section,
    node_pressure_section,
    places,
    report_sections,
    resctrl_section,
    sections,
    workload_sections,
)
from koordlet.config import scheduler as scheduler_section

API_VERSION = "koordlet.io/v1"
KIND = "Config"

Section = sections.Section


class Node(Section):
    """Identity of this node."""

    name: Annotated[fieldtypes.NodeName, sections.AT_START] = Field(
        default=None, description="Name of the node; null uses the host name."
    )
    annotations: fieldtypes.StringMap = Field(
        default_factory=dict,
        description="Node annotations of a machine without a cluster, such as"
        " `node.koordinator.sh/reservation`.",
    )
    labels: fieldtypes.StringMap = Field(
        default_factory=dict, description="Node labels of a machine without a cluster."
    )


class Cgroups(Section):
    """Location of the managed cgroups."""

    root: Annotated[fieldtypes.CgroupRoot, sections.AT_START] = Field(
        default=None,
        description="Cgroup below which koordlet manages, as the kubelet's `--cgroup-root`; null"
        " is `/`.",
    )
    systemd: Literal["auto", "never"] = Field(
        default="auto",
        description="`auto` sets limits of units through systemd if it runs (cgroup v2), so that"
        " a daemon-reload keeps them; `never` writes the cgroup files directly.",
    )


class Guard(Section):
    """Undoes changes that hurt latency-sensitive work."""

    enabled: bool = Field(
        default=True,
        description="Measure latency-sensitive work before and after each change by a policy that"
        " only optimizes. If it got clearly worse under the same load, undo the change for ten"
        " minutes. Protective changes stay.",
    )


class Policies(Section):
    """One section for each policy, under its stem."""

    model_config = ConfigDict(alias_generator=str)  # rule 1

    reserved_cpus: cpu_sections.ReservedCpus = Field(
        default_factory=cpu_sections.ReservedCpus,
        alias="reserved_cpus",
        description="Reserved CPUs.",
    )
    exclusive_cpus: cpu_sections.ExclusiveCpus = Field(
        default_factory=cpu_sections.ExclusiveCpus,
        alias="exclusive_cpus",
        description="Exclusive CPUs of single workloads.",
    )
    shared_pools: cpu_sections.SharedPools = Field(
        default_factory=cpu_sections.SharedPools,
        alias="shared_pools",
        description="Shared CPU pools.",
    )
    adaptive: best_effort_sections.Adaptive = Field(
        default_factory=best_effort_sections.Adaptive,
        description="CPU for best-effort work, adapted to what latency-sensitive work needs.",
    )
    bound_quota: cpu_sections.BoundQuota = Field(
        default_factory=cpu_sections.BoundQuota,
        alias="bound_quota",
        description="No CPU quota for pods with exclusive CPUs.",
    )
    cpu_normalization: cpu_sections.CpuNormalization = Field(
        default_factory=cpu_sections.CpuNormalization,
        alias="cpu_normalization",
        description="CPU quotas scaled to the speed of the CPUs.",
    )
    batch_limits: cpu_sections.BatchLimits = Field(
        default_factory=cpu_sections.BatchLimits,
        alias="batch_limits",
        description="Limits of batch and mid pods.",
    )
    batch_resources: best_effort_sections.BatchResources = Field(
        default_factory=best_effort_sections.BatchResources,
        alias="batch_resources",
        description="Resources offered to batch and mid workloads.",
    )
    blkio_qos: blkio_section.BlkioQos = Field(
        default_factory=blkio_section.BlkioQos,
        alias="blkio_qos",
        description="Limits of block devices.",
    )
    network_qos: network_section.NetworkQos = Field(
        default_factory=network_section.NetworkQos,
        alias="network_qos",
        description="Network bandwidth by QoS class.",
    )
    core_scheduling: cpu_sections.CoreScheduling = Field(
        default_factory=cpu_sections.CoreScheduling,
        alias="core_scheduling",
        description="Which workloads may share a core at the same time.",
    )
    cpu_suppress: best_effort_sections.CpuSuppress = Field(
        default_factory=best_effort_sections.CpuSuppress,
        alias="cpu_suppress",
        description="CPU limit of best-effort work by Koordinator's formula.",
    )
    housekeeping: cpu_sections.Housekeeping = Field(
        default_factory=cpu_sections.Housekeeping,
        description="Interrupts and kernel threads away from exclusive CPUs.",
    )
    oom_score: memory_sections.OomScore = Field(
        default_factory=memory_sections.OomScore,
        alias="oom_score",
        description="Which processes the OOM killer prefers.",
    )
    resctrl: resctrl_section.Resctrl = Field(
        default_factory=resctrl_section.Resctrl, description="Cache ways and memory bandwidth."
    )
    cpu_burst: cpu_sections.CpuBurst = Field(
        default_factory=cpu_sections.CpuBurst,
        alias="cpu_burst",
        description="CPU time beyond the CPU limit.",
    )
    local_storage_evict: node_pressure_section.LocalStorageEvict = Field(
        default_factory=node_pressure_section.LocalStorageEvict,
        alias="local_storage_evict",
        description="Evictions by local-storage limits of pods.",
    )
    cpu_allocatable_evict: eviction_sections.CpuAllocatableEvict = Field(
        default_factory=eviction_sections.CpuAllocatableEvict,
        description="Evictions by CPU requests.",
    )
    cpu_evict: eviction_sections.CpuEvict = Field(
        default_factory=eviction_sections.CpuEvict,
        description="Evictions by CPU satisfaction and CPU use.",
    )
    memory_allocatable_evict: eviction_sections.MemoryAllocatableEvict = Field(
        default_factory=eviction_sections.MemoryAllocatableEvict,
        description="Evictions by memory requests.",
    )
    memory_evict: eviction_sections.MemoryEvict = Field(
        default_factory=eviction_sections.MemoryEvict, description="Evictions by memory use."
    )
    cpu_qos: cpu_sections.CpuQos = Field(
        default_factory=cpu_sections.CpuQos,
        alias="cpu_qos",
        description="CPU scheduler settings by QoS class.",
    )
    memory_qos: memory_sections.MemoryQos = Field(
        default_factory=memory_sections.MemoryQos,
        alias="memory_qos",
        description="Memory protection and throttling by QoS class.",
    )
    page_cache_reclaim: memory_sections.PageCacheReclaim = Field(
        default_factory=memory_sections.PageCacheReclaim,
        alias="page_cache_reclaim",
        description="Page cache limits of pods.",
    )
    system_qos: memory_sections.SystemQos = Field(
        default_factory=memory_sections.SystemQos,
        alias="system_qos",
        description="Kernel settings of the whole machine.",
    )
    node_pressure: node_pressure_section.NodePressure = Field(
        default_factory=node_pressure_section.NodePressure,
        alias="node_pressure",
        description="Evictions and conditions when memory, disk or processes run out.",
    )


class Metrics(Section):
    """The Prometheus text on the HTTP server."""

    enabled: bool = Field(default=True, description="Serve `/metrics`.")


class Report(Section):
    """What the agent reports, and where."""

    http: report_sections.Http = Field(
        default_factory=report_sections.Http, description="The HTTP server."
    )
    grpc: report_sections.Grpc = Field(
        default_factory=report_sections.Grpc, description="The gRPC server."
    )
    scheduler: report_sections.Scheduler = Field(
        default_factory=report_sections.Scheduler,
        description="The scheduler that this agent reports to.",
    )
    metrics: Metrics = Field(default_factory=Metrics, description="Metrics.")
    objects: report_sections.Objects = Field(
        default_factory=report_sections.Objects, description="Objects of the API server."
    )


class State(Section):
    """State across restarts, and what a stop leaves behind."""

    handover_seconds: Annotated[int, Field(ge=0, le=86_400)] = Field(
        default=120, description="How long limits stay in force during a restart or an upgrade."
    )
    on_stop: Literal["restore", "handover"] = Field(
        default="restore",
        description="What a stop does: `restore` puts everything back, `handover` leaves it to"
        " the next agent.",
    )
    audit_bytes: Annotated[int, Field(ge=1 << 16, le=1 << 32)] = Field(
        default=8 << 20,
        description="Size at which the audit log is rotated. One old log is kept, so both"
        " together take twice this.",
    )
    dir: Annotated[fieldtypes.Directory, sections.AT_START] = Field(
        default=None,
        description="Directory of journal and checkpoints; null uses the system's directory.",
    )


class Log(Section):
    """The agent's own log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe level that is logged."
    )
    format: Literal["auto", "json", "console"] = Field(
        default="auto", description="`auto` is `console` on a terminal and `json` elsewhere."
    )


class Config(Section):
    """The configuration of the agent."""

    api_version: Literal["koordlet.io/v1"] = Field(
        default="koordlet.io/v1", description="Version of the configuration format."
    )
    kind: Literal["Config"] = Field(default="Config", description="Kind of the document.")
    mode: Literal["enforce", "observe"] = Field(
        default="enforce", description="`enforce` applies decisions, `observe` changes nothing."
    )
    node: Node = Field(default_factory=Node, description="Identity of this node.")
    cgroups: Cgroups = Field(
        default_factory=Cgroups, description="Location of the managed cgroups."
    )
    kubelet: Annotated[cluster_sections.Kubelet, sections.AT_START] = Field(
        default_factory=cluster_sections.Kubelet, description="The kubelet of this node."
    )
    kube: Annotated[cluster_sections.Kube, sections.AT_START] = Field(
        default_factory=cluster_sections.Kube, description="The API server of the cluster."
    )
    scheduler: Annotated[scheduler_section.Scheduler, sections.AT_START] = Field(
        default_factory=scheduler_section.Scheduler,
        description="The standalone scheduler that this machine belongs to.",
    )
    nri: Annotated[cluster_sections.Nri, sections.AT_START] = Field(
        default_factory=cluster_sections.Nri,
        description="NRI, the container runtime's plugin interface, through which koordlet"
        " adjusts containers at creation.",
    )
    workloads: Annotated[
        tuple[workload_sections.Workload, ...], Field(strict=False), fieldtypes.ABSENT_LIST
    ] = Field(default=(), description="The workloads of a machine without a cluster.")
    manifests: Annotated[workload_sections.Manifests, sections.AT_START] = Field(
        default_factory=workload_sections.Manifests,
        description="More workloads of a machine without a cluster, as Pod manifests.",
    )
    policies: Policies = Field(default_factory=Policies, description="One section for each policy.")
    counters: counters_section.Counters = Field(
        default_factory=counters_section.Counters, description="Optional hardware counters."
    )
    guard: Guard = Field(
        default_factory=Guard,
        description="Undoes changes that hurt latency-sensitive work.",
    )
    report: Annotated[Report, sections.AT_START] = Field(
        default_factory=Report, description="What the agent reports, and where."
    )
    eviction: eviction_sections.Eviction = Field(
        default_factory=eviction_sections.Eviction, description="How koordlet evicts pods."
    )
    state: State = Field(default_factory=State, description="State that survives a restart.")
    log: Log = Field(default_factory=Log, description="The agent's own log.")

    @model_validator(mode="after")
    def _unique_names(self) -> Config:
        seen: set[str] = set()
        for index, workload in enumerate(self.workloads):
            if workload.name in seen:
                fieldtypes.refuse(
                    f"two workloads are named {places.show(workload.name)}",
                    "give each workload its own name",
                    at=("workloads", index, "name"),
                )
            seen.add(workload.name)
        return self


@functools.cache
def defaults() -> Config:
    """The built-in configuration, as a record like every other (``plain``)."""
    return cast("Config", Config.model_validate({}).record())


def json_schema() -> dict[str, Any]:
    """The JSON schema of the file, for editors."""
    return Config.model_json_schema(by_alias=True)
