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
    """Bounds that no source can exceed."""

    max_free_percent: Annotated[int, Field(ge=0, le=20)] = Field(
        default=5,
        description="Upper bound of `vm.min_free_kbytes`, in percent of the machine's memory.",
    )


class SystemQos(sections.Section):
    """Knobs of the whole kernel; null leaves one alone. A NodeSLO replaces them."""

    mode: sections.PolicyModeField = "off"
    limits: SystemQosLimits = Field(
        default_factory=SystemQosLimits, description="Bounds that no source can exceed."
    )
    min_free_kbytes_factor: Annotated[int | None, Field(ge=0, le=10_000)] = Field(
        default=None,
        description="`vm.min_free_kbytes` in 1/10000 of the memory, limited to 10 MiB … 10 GiB.",
    )
    watermark_scale_factor: Annotated[int | None, Field(ge=10, le=400)] = Field(
        default=None, description="Value of `vm.watermark_scale_factor`."
    )
    memcg_reap_back_ground: Switch = Field(
        default=None, description="Reap dead memory cgroups in the background (vendor kernels)."
    )
    sched_group_identity_enabled: Switch = Field(
        default=None, description="Enable group identity in the scheduler (vendor kernels)."
    )
    sched_idle_saver_wmark: Annotated[int | None, Field(ge=0, le=1_000_000_000)] = Field(
        default=None,
        description="How long the scheduler may spare an idle CPU, in ns (vendor kernels).",
    )
    page_cache_limit_enabled: bool | None = Field(
        default=None, description="Let the kernel limit page cache by itself (vendor kernels)."
    )
