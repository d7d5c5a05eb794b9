"""The section ``policies.memory_evict``: eviction as the co-location peer does it.

Covers: its fields under the peer's names. Does not cover: the policy, what a NodeSLO says instead.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections

_Percent = Annotated[int, Field(ge=0, le=100)]


class MemoryEvictLimits(sections.Section):
    """The bounds of all evictions are those of ``node_pressure``."""


class MemoryEvict(sections.Section):
    """Best-effort pods go while the node uses too much memory."""

    mode: sections.PolicyModeField = Field(
        default="shadow", description="What may be done with its decisions."
    )
    limits: MemoryEvictLimits = Field(
        default_factory=MemoryEvictLimits, description="Upper bounds, applied last."
    )
    enable: bool = Field(
        default=False,
        description="Evict by use of memory. A NodeSLO decides instead, with these keys.",
    )
    memory_evict_threshold_percent: _Percent = Field(
        default=70, description="Part of the node's memory in use from which on pods go."
    )
    memory_evict_lower_percent: _Percent | None = Field(
        default=None, description="Down to which part; null is two percent less."
    )
    evict_enabled_priority_threshold: int | None = Field(
        default=None,
        description="Pods of any class up to this priority that consented go as well; null: none.",
    )
