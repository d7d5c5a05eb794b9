"""The section ``policies.page_cache_reclaim``: page cache beyond a pod's part.

Covers: its fields under the peer's names.
Does not cover: the policy (``policy.memory_io.page_cache_reclaim``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import fieldtypes, sections


class PageCacheClass(sections.Section):
    """How much page cache pods of one class may have."""

    page_cache_limit_enable: bool = Field(
        default=False, description="Whether the class has a limit."
    )
    page_cache_limit_size: fieldtypes.OptionalQuantity = Field(
        default=None, description="Bytes of page cache of each pod, such as `512Mi`."
    )
    page_cache_limit_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="Part of a pod's memory limit, where no size is given."
    )


class PageCacheLimits(sections.Section):
    """Bounds, applied last."""

    max_bytes: Annotated[int, Field(ge=1 << 20, le=2**50)] = Field(
        default=256 << 20, description="At most this much is taken from a pod at once."
    )


class PageCacheReclaim(sections.Section):
    """Page cache beyond a pod's part. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: PageCacheLimits = Field(
        default_factory=PageCacheLimits, description="Bounds, applied last."
    )
    lsr_class: PageCacheClass = Field(
        default_factory=PageCacheClass, description="LSE and LSR pods."
    )
    ls_class: PageCacheClass = Field(default_factory=PageCacheClass, description="LS pods.")
    be_class: PageCacheClass = Field(default_factory=PageCacheClass, description="BE pods.")
