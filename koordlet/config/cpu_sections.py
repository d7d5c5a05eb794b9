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
    """No limit of CPU time for pods that have CPUs of their own."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: NoLimits = Field(default_factory=NoLimits, description="Upper bounds, applied last.")


class CpuNormalizationLimits(sections.Section):
    """Upper bounds, applied last."""

    max_ratio: Annotated[float | None, Field(ge=1, le=5)] = Field(
        default=None, strict=False, description="No ratio counts as more; null is no bound."
    )


class CpuNormalization(sections.Section):
    """CPU limits of shared pods, scaled to how fast this node's CPUs are."""

    mode: sections.PolicyModeField = Field(
        default="shadow", description="What may be done with its decisions."
    )
    limits: CpuNormalizationLimits = Field(
        default_factory=CpuNormalizationLimits, description="Upper bounds, applied last."
    )


class BatchLimits(sections.Section):
    """Shares, CPU time and memory of pods that ask for batch or mid resources."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: NoLimits = Field(default_factory=NoLimits, description="Upper bounds, applied last.")


class ReservedCpusLimits(sections.Section):
    """What no reservation exceeds, wherever it comes from."""

    max_cpus: Annotated[int | None, Field(ge=0)] = Field(
        default=None, description="At most this many CPUs are reserved; null is no bound."
    )


class ReservedCpus(sections.Section):
    """CPUs that are kept away from every pod."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: ReservedCpusLimits = Field(
        default_factory=ReservedCpusLimits, description="Upper bounds, applied last."
    )
    cpus: fieldtypes.CpuList = Field(default=None, description="The reserved CPUs, such as `0-1`.")
    quantity: fieldtypes.OptionalQuantity = Field(
        default=None,
        description="How much CPU to reserve; rounded up to whole CPUs. `cpus` wins over it.",
    )


class SharedPoolsLimits(sections.Section):
    """The shared pools have no upper bounds yet."""


class SharedPools(sections.Section):
    """The CPU pools of workloads without exclusive CPUs."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: SharedPoolsLimits = Field(
        default_factory=SharedPoolsLimits, description="Upper bounds, applied last."
    )
    enable_controllers: bool = Field(
        default=False,
        description="Switch the cpuset controller on in the cgroups above a workload (v2 only).",
    )
    tiers: bool = Field(
        default=True,
        description="Narrow the kubelet's tiers, so that new containers are right from the start.",
    )
