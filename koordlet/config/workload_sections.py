"""The sections ``workloads`` and ``manifests`` of a machine without a cluster.

Covers: the declaration of a workload, its cgroup or unit, the directory of manifests.
Does not cover: making pods of them (``agent.policy_settings``, ``workloads.manifest_directory``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from koordlet.config import fieldtypes, places, sections
from koordlet.model import quantity

Section = sections.Section


class Match(Section):
    """Cgroup or unit of a workload: exactly one of the keys."""

    unit: fieldtypes.Unit = Field(
        default=None, description="A systemd unit, such as `nginx.service`."
    )
    cgroup: fieldtypes.CgroupPath = Field(
        default=None, description="A cgroup path relative to the cgroup root, such as `batch/jobs`."
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Match:
        if (self.unit is None) == (self.cgroup is None):
            named = "neither" if self.unit is None else "both"
            fieldtypes.refuse(f"exactly one of unit and cgroup is needed, found {named}")
        return self


class Workload(Section):
    """One workload of a machine without a cluster."""

    name: fieldtypes.Name = Field(description="Unique name of the workload.")
    qos: Literal["LSE", "LSR", "LS", "BE", "SYSTEM"] = Field(
        description="QoS class: LSE, LSR, LS (latency-sensitive), BE (best-effort) or SYSTEM."
    )
    priority: Annotated[int | None, Field(ge=-(2**31), le=2**31 - 1)] = Field(
        default=None, description="Pod priority; null uses the default of the QoS class."
    )
    requests: fieldtypes.Quantities = Field(
        default_factory=dict, description="Requested resources, as in a Pod."
    )
    limits: fieldtypes.Quantities = Field(
        default_factory=dict, description="Resource limits, as in a Pod."
    )
    cpus: fieldtypes.CpusOrCount = Field(
        default=None, description="Exclusive CPUs: a list such as `0-3,8`, or a number of CPUs."
    )
    cpu_bind: Literal["FullPCPUs", "SpreadByPCPUs", "ConstrainedBurst"] | None = Field(
        default=None,
        description="How a number of `cpus` is placed on cores (`requiredCPUBindPolicy`); null"
        " prefers whole cores.",
    )
    cpu_exclusive: Literal["None", "PCPULevel", "NUMANodeLevel"] = Field(
        default="None",
        description="What the workload prefers not to share with other workloads of this setting:"
        " nothing, physical cores or NUMA nodes.",
    )
    numa: Literal["", "BestEffort", "Restricted", "SingleNUMANode"] = Field(
        default="", description="How the workload is aligned to NUMA nodes (`numaTopologyPolicy`)."
    )
    addresses: list[fieldtypes.IpAddress] = Field(
        default_factory=list,
        description="IP addresses of the workload's own network namespace, for"
        " `policies.network_qos`.",
    )
    match: Match = Field(description="Cgroup or unit of the workload.")

    @model_validator(mode="after")
    def _requests_within_limits(self) -> Workload:
        for resource, limit in self.limits.items():
            request = self.requests.get(resource)
            if request is not None and quantity.milli(request) > quantity.milli(limit):
                fieldtypes.refuse(
                    f"the {resource} request {request} exceeds the limit {limit}",
                    "lower the request or raise the limit",
                    at=("requests", resource),
                )
        return self


class Manifests(sections.Section):
    """More workloads of a machine without a cluster, as Pod manifests."""

    directory: fieldtypes.Directory = Field(
        default=places.MANIFESTS,
        description="Directory of the manifests (`*.yaml`, `*.yml`, `*.json`), watched while the"
        " agent runs. The built-in directory is used if it exists when the agent starts; null"
        " reads none.",
    )
