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

    #: A systemd unit, such as `nginx.service`.
    unit: fieldtypes.Unit = None
    #: A cgroup path relative to the cgroup root, such as `batch/jobs`.
    cgroup: fieldtypes.CgroupPath = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Match:
        if (self.unit is None) == (self.cgroup is None):
            named = "neither" if self.unit is None else "both"
            fieldtypes.refuse(f"exactly one of unit and cgroup is needed, found {named}")
        return self


def _nowhere() -> list[str]:
    # Of ``list`` itself pydantic asks the parameters, which stand in a text: 1 % of a start.
    return []


class Workload(Section):
    """One workload of a machine without a cluster."""

    #: Unique name of the workload.
    name: fieldtypes.Name
    #: QoS class: LSE, LSR, LS (latency-sensitive), BE (best-effort) or SYSTEM.
    qos: Literal["LSE", "LSR", "LS", "BE", "SYSTEM"]
    #: Pod priority; null uses the default of the QoS class.
    priority: Annotated[int | None, Field(ge=-(2**31), le=2**31 - 1)] = None
    #: Requested resources, as in a Pod.
    requests: fieldtypes.Quantities = Field(default_factory=dict)
    #: Resource limits, as in a Pod.
    limits: fieldtypes.Quantities = Field(default_factory=dict)
    #: Exclusive CPUs: a list such as `0-3,8`, or a number of CPUs.
    cpus: fieldtypes.CpusOrCount = None
    #: How a number of `cpus` is placed on cores (`requiredCPUBindPolicy`); null prefers whole
    #: cores.
    cpu_bind: Literal["FullPCPUs", "SpreadByPCPUs", "ConstrainedBurst"] | None = None
    #: What the workload prefers not to share with other workloads of this setting: nothing,
    #: physical cores or NUMA nodes.
    cpu_exclusive: Literal["None", "PCPULevel", "NUMANodeLevel"] = "None"
    #: How the workload is aligned to NUMA nodes (`numaTopologyPolicy`).
    numa: Literal["", "BestEffort", "Restricted", "SingleNUMANode"] = ""
    #: Its threads run in the real-time class (`policies.real_time`): only for a service that sleeps
    #: when it has nothing to do, and without a CPU limit.
    real_time: bool = False
    #: IP addresses of the workload's own network namespace, for `policies.network_qos`.
    addresses: list[fieldtypes.IpAddress] = Field(default_factory=_nowhere)
    #: Cgroup or unit of the workload.
    match: Match

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

    #: Directory of the manifests (`*.yaml`, `*.yml`, `*.json`), watched while the agent runs. The
    #: built-in directory is used if it exists when the agent starts; null reads none.
    directory: fieldtypes.Directory = places.MANIFESTS
