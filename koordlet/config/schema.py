"""The shape of the configuration: every field, its type, its default, its one-line description.

Covers: what a valid configuration is, and the rules between fields of one section.
Does not cover: where values come from (``loader``), the words of an error (``problems``), upper
bounds on effective values (``limits``).

Rules:
1. Keys are camelCase in the file and snake_case here; the stems under ``policies`` are written the
   same in both, because a stem has one spelling everywhere.
2. Everything has a default: an empty file is a valid configuration.
3. Models are frozen, unknown keys are refused, types are strict (``"120"`` is not a number).
4. The comment ``#:`` above a field is its description in the JSON schema and on the reference page.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import ConfigDict, Field, create_model, model_validator

from koordlet.config import (
    best_effort_sections,
    cluster_sections,
    cpu_sections,
    eviction_sections,
    fieldtypes,
    memory_io_sections,
    node_pressure_section,
    node_ratio_sections,
    places,
    report_sections,
    resctrl_section,
    sections,
    workload_sections,
)
from koordlet.policy.framework import registry

API_VERSION = "koordlet.io/v1"
KIND = "Config"

Section = sections.Section


class Node(Section):
    """Identity of this node."""

    #: Name of the node; null uses the host name.
    name: Annotated[fieldtypes.NodeName, sections.AT_START] = None
    #: Node annotations of a machine without a cluster, such as `node.koordinator.sh/reservation`.
    annotations: fieldtypes.StringMap = Field(default_factory=dict)
    #: Node labels of a machine without a cluster.
    labels: fieldtypes.StringMap = Field(default_factory=dict)
    cpu_normalization: node_ratio_sections.Normalization
    #: Resource to how many times of it schedulers may count, 1 or more; `cpu` is multiplied by the
    #: normalization ratio. Empty reports no amplification, whatever the ratio.
    amplification: node_ratio_sections.Amplification = Field(default_factory=dict)


class Cgroups(Section):
    """Location of the managed cgroups."""

    #: Cgroup below which koordlet manages, as the kubelet's `--cgroup-root`; null is `/`.
    root: Annotated[fieldtypes.CgroupRoot, sections.AT_START] = None
    #: `auto` sets limits of units through systemd if it runs (cgroup v2), so that a daemon-reload
    #: keeps them; `never` writes the cgroup files directly.
    systemd: Literal["auto", "never"] = "auto"


class Cpi(Section):
    """Cycles and instructions of containers, by the processor's counters."""

    #: Count cycles and instructions where kernel and processor allow it. While a cgroup is counted,
    #: each switch to or from it costs its CPU about a microsecond.
    enabled: bool = False
    #: Length of one counting window of a cgroup.
    window_seconds: int = Field(default=10, ge=1, le=60)
    #: Time between two windows of a cgroup, if all cgroups fit into one window.
    interval_seconds: int = Field(default=60, ge=1, le=60)
    #: Upper bound of open perf file descriptors. A cgroup needs two for each online CPU; cgroups
    #: that do not fit into one window take turns.
    descriptors: int = Field(default=1024, ge=2, le=16384)

    @model_validator(mode="after")
    def _window_fits(self) -> Cpi:
        if self.window_seconds > self.interval_seconds:
            fieldtypes.refuse(
                f"a window of {self.window_seconds} s does not fit into {self.interval_seconds} s",
                "make intervalSeconds at least windowSeconds",
                at=("windowSeconds",),
            )
        return self


class Counters(Section):
    """Optional hardware counters."""

    cpi: Cpi


class Guard(Section):
    """Undoes changes that hurt latency-sensitive work."""

    #: Measure latency-sensitive work before and after each change by a policy that only optimizes.
    #: If it got clearly worse under the same load, undo the change for ten minutes. Protective
    #: changes stay.
    enabled: bool = True


class _Stems(Section):
    model_config = ConfigDict(alias_generator=str)  # rule 1


class _Policies(_Stems):
    """One section for each policy."""

    if typing.TYPE_CHECKING:

        def __getattr__(self, stem: str) -> Any:
            """The section of a policy that declares its keys itself."""

    reserved_cpus: cpu_sections.ReservedCpus
    dra_driver: cpu_sections.DraDriver
    adaptive: best_effort_sections.Adaptive
    batch_resources: best_effort_sections.BatchResources
    blkio_qos: memory_io_sections.BlkioQos
    network_qos: memory_io_sections.NetworkQos
    core_scheduling: cpu_sections.CoreScheduling
    real_time: cpu_sections.RealTime
    cpu_suppress: best_effort_sections.CpuSuppress
    resctrl: resctrl_section.Resctrl
    cpu_allocatable_evict: eviction_sections.CpuAllocatableEvict
    cpu_evict: eviction_sections.CpuEvict
    memory_allocatable_evict: eviction_sections.MemoryAllocatableEvict
    memory_evict: eviction_sections.MemoryEvict
    cpu_qos: cpu_sections.CpuQos
    memory_qos: memory_io_sections.MemoryQos
    page_cache_reclaim: memory_io_sections.PageCacheReclaim
    node_pressure: node_pressure_section.NodePressure


_WRITTEN = {stem: info.annotation for stem, info in _Policies.model_fields.items()}
if typing.TYPE_CHECKING:
    Policies = _Policies
else:
    #: In the order of the registry. A policy without a section above has that of its settings.
    Policies = create_model(
        "Policies",
        __base__=_Stems,
        __doc__=_Policies.__doc__,
        **{
            policy.stem: (_WRITTEN.get(policy.stem) or sections.of_policy(policy), ...)
            for policy in registry.POLICIES
        },
    )


MetricGroup = Literal["peer", "cpus", "workloads", "containers", "pressure", "deprecated"]


class Metrics(Section):
    """The Prometheus text on the HTTP server."""

    #: Serve `/metrics`.
    enabled: bool = True
    #: Groups of families that are not exported (docs/metrics.md lists them with their size).
    without: fieldtypes.Listed[MetricGroup] = ()


class Report(Section):
    """What the agent reports, and where."""

    http: report_sections.Http
    grpc: report_sections.Grpc
    #: The scheduler that this agent reports to.
    scheduler: report_sections.Scheduler
    metrics: Metrics
    objects: report_sections.Objects


class State(Section):
    """State that survives a restart."""

    #: How long limits stay in force during a restart or an upgrade.
    handover_seconds: Annotated[int, Field(ge=0, le=86_400)] = 120
    #: What a stop does: `restore` puts everything back, `handover` leaves it to the next agent.
    on_stop: Literal["restore", "handover"] = "restore"
    #: Size at which the audit log is rotated. One old log is kept, so both together take twice
    #: this.
    audit_bytes: Annotated[int, Field(ge=1 << 16, le=1 << 32)] = 8 << 20
    #: Directory of journal and checkpoints; null uses the system's directory.
    dir: Annotated[fieldtypes.Directory, sections.AT_START] = None


class Log(Section):
    """The agent's own log."""

    #: Least severe level that is logged.
    level: Literal["debug", "info", "warning", "error"] = "info"
    #: `auto` is `console` on a terminal and `json` elsewhere.
    format: Literal["auto", "json", "console"] = "auto"


class Config(Section):
    """The configuration of the agent."""

    #: Version of the configuration format.
    api_version: Literal["koordlet.io/v1"] = "koordlet.io/v1"
    #: Kind of the document.
    kind: Literal["Config"] = "Config"
    #: `enforce` applies decisions, `observe` changes nothing.
    mode: Literal["enforce", "observe"] = "enforce"
    node: Node
    cgroups: Cgroups
    kubelet: Annotated[cluster_sections.Kubelet, sections.AT_START]
    kube: Annotated[cluster_sections.Kube, sections.AT_START]
    #: The standalone scheduler that this machine belongs to.
    scheduler: Annotated[cluster_sections.Scheduler, sections.AT_START]
    #: NRI, the container runtime's plugin interface, through which koordlet adjusts containers at
    #: creation.
    nri: Annotated[cluster_sections.Nri, sections.AT_START]
    #: The workloads of a machine without a cluster.
    workloads: fieldtypes.Listed[workload_sections.Workload] = ()
    manifests: Annotated[workload_sections.Manifests, sections.AT_START]
    policies: Policies
    counters: Counters
    guard: Guard
    report: Annotated[Report, sections.AT_START]
    eviction: eviction_sections.Eviction
    #: How workloads end before this machine shuts down, where no kubelet does it.
    node_shutdown: Annotated[eviction_sections.NodeShutdown, sections.AT_START]
    state: State
    log: Log

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


def validate(data: object) -> Config:
    """Validate; only what the data name needs a validator, which takes most of the time.

    A start waits for it, and few files name more than a handful of sections.
    """
    below = data.get("policies") if isinstance(data, Mapping) else None
    policies: type[sections.Section] = Policies
    named = sections.narrowed(policies, below)
    instead = () if named is policies else (("policies", named),)
    return cast("Config", sections.narrowed(Config, data, instead).model_validate(data))


@functools.cache
def defaults() -> Config:
    """The built-in configuration, as a record like every other (``plain``)."""
    return cast("Config", validate({}).record())


def json_schema() -> dict[str, Any]:
    """The JSON schema of the file, for editors."""
    return sections.described(Config).model_json_schema(by_alias=True)
