"""Sections about CPUs: pools, reservations, CPU time.

Covers: their fields. Does not cover: the policies of the same names.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import fieldtypes, sections


class NoLimits(sections.Section):
    """Nothing here has an upper bound."""


class BoundQuota(sections.Section):
    """No CPU quota for pods with exclusive CPUs."""

    mode: sections.PolicyModeField = "enforce"
    limits: NoLimits = Field(
        default_factory=NoLimits,
        description="Upper bounds. They are applied last and override every other source.",
    )


class CpuNormalizationLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_ratio: Annotated[float | None, Field(ge=1, le=5)] = Field(
        default=None,
        strict=False,
        description="Highest normalization ratio; larger ones are"
        " reduced to it; null sets no bound.",
    )


class CpuNormalization(sections.Section):
    """CPU quotas of shared pods, scaled to the speed of this node's CPUs."""

    mode: sections.PolicyModeField = "shadow"
    limits: CpuNormalizationLimits = Field(
        default_factory=CpuNormalizationLimits,
        description="Upper bounds. They are applied last and override every other source.",
    )


class BatchLimits(sections.Section):
    """CPU shares, CPU quota and memory limits of pods that request batch or mid resources."""

    mode: sections.PolicyModeField = "enforce"
    limits: NoLimits = Field(
        default_factory=NoLimits,
        description="Upper bounds. They are applied last and override every other source.",
    )


class ReservedCpusLimits(sections.Section):
    """Upper bounds of every reservation, whatever its source."""

    max_cpus: Annotated[int | None, Field(ge=0)] = Field(
        default=None, description="Highest number of reserved CPUs; null sets no bound."
    )


class ReservedCpus(sections.Section):
    """CPUs reserved for the system and withheld from every pod."""

    mode: sections.PolicyModeField = "enforce"
    limits: ReservedCpusLimits = Field(
        default_factory=ReservedCpusLimits, description="Upper bounds that no source can exceed."
    )
    cpus: fieldtypes.CpuList = Field(default=None, description="CPUs to reserve, such as `0-1`.")
    quantity: fieldtypes.OptionalQuantity = Field(
        default=None,
        description="Amount of CPU to reserve, rounded up to whole CPUs. Ignored if `cpus` is set.",
    )


class SharedPoolsLimits(sections.Section):
    """The shared pools have no upper bounds yet."""


class SharedPools(sections.Section):
    """CPU pools of workloads without exclusive CPUs."""

    mode: sections.PolicyModeField = "enforce"
    limits: SharedPoolsLimits = Field(
        default_factory=SharedPoolsLimits, description="Upper bounds that no source can exceed."
    )
    enable_controllers: bool = Field(
        default=False,
        description="Enable the cpuset controller in the parent cgroups of a workload (cgroup v2"
        " only).",
    )
    tiers: bool = Field(
        default=True,
        description="Also set the cpusets of the kubelet's QoS cgroups, so that new containers"
        " start on the right CPUs.",
    )
