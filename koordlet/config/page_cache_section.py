"""The section ``policies.page_cache_reclaim``: page cache limits of pods.

Covers: its fields under the peer's names.
Does not cover: the policy (``policy.memory_io.page_cache_reclaim``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import fieldtypes, sections


class PageCacheClass(sections.Section):
    """Page cache limit of pods of one class."""

    page_cache_limit_enable: bool = Field(
        default=False, description="Limit the page cache of pods of this class."
    )
    page_cache_limit_size: fieldtypes.OptionalQuantity = Field(
        default=None, description="Page cache limit of each pod, such as `512Mi`."
    )
    page_cache_limit_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0,
        description="Page cache limit in percent of the pod's memory limit, if no size is set.",
    )


class PageCacheLimits(sections.Section):
    """Bounds that no source can exceed."""

    max_bytes: Annotated[int, Field(ge=1 << 20, le=2**50)] = Field(
        default=256 << 20, description="Most bytes to reclaim from a pod at once."
    )


class PageCacheReclaim(sections.Section):
    """Page cache limits of pods. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: PageCacheLimits = Field(
        default_factory=PageCacheLimits, description="Bounds that no source can exceed."
    )
    lsr_class: PageCacheClass = Field(
        default_factory=PageCacheClass, description="Settings of LSE and LSR pods."
    )
    ls_class: PageCacheClass = Field(
        default_factory=PageCacheClass, description="Settings of LS pods."
    )
    be_class: PageCacheClass = Field(
        default_factory=PageCacheClass, description="Settings of BE pods."
    )
