"""The section ``policies.system_qos``: knobs of the whole kernel.

Covers: its fields under the peer's names. Does not cover: the policy
(``policy.memory_io.system_qos``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections

Switch = Annotated[int | None, Field(ge=0, le=1)]


class SystemQosLimits(sections.Section):
    """Bounds, applied last."""

    max_free_percent: Annotated[int, Field(ge=0, le=20)] = Field(
        default=5,
        description="`vm.min_free_kbytes` is never more than this part of the machine's memory.",
    )


class SystemQos(sections.Section):
    """Knobs of the whole kernel; null leaves one alone. A NodeSLO replaces them."""

    mode: sections.PolicyModeField = Field(
        default="off", description="What may be done with its decisions."
    )
    limits: SystemQosLimits = Field(
        default_factory=SystemQosLimits, description="Bounds, applied last."
    )
    min_free_kbytes_factor: Annotated[int | None, Field(ge=0, le=10_000)] = Field(
        default=None,
        description="`vm.min_free_kbytes` in 1/10000 of the memory, between 10 MiB and 10 GiB.",
    )
    watermark_scale_factor: Annotated[int | None, Field(ge=10, le=400)] = Field(
        default=None, description="`vm.watermark_scale_factor`."
    )
    memcg_reap_back_ground: Switch = Field(
        default=None, description="Reap dead memory cgroups in the background (vendor kernels)."
    )
    sched_group_identity_enabled: Switch = Field(
        default=None, description="Group identity of the scheduler (vendor kernels)."
    )
    sched_idle_saver_wmark: Annotated[int | None, Field(ge=0, le=1_000_000_000)] = Field(
        default=None, description="How long an idle CPU may be saved from others, ns (same)."
    )
    page_cache_limit_enabled: bool | None = Field(
        default=None, description="Whether the kernel limits page cache by itself (same)."
    )
