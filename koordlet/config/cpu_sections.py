"""Sections about CPU time: ``bound_quota``, ``cpu_normalization``, ``batch_limits``.

Covers: their fields. Does not cover: the policies of the same names.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections


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
