"""Sections of policies about memory and the kernel: QoS, page cache, OOM scores, kernel settings.

Covers: their fields under Koordinator's names. Does not cover: the policies (``policy.memory_io``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import cpu_sections, sections
from koordlet.model import strategies

Percent = Annotated[int, Field(ge=0, le=100)]


class MemoryQosClass(sections.StrategySection, of=(strategies.MemoryQos, "memory_qos")):
    """Memory protection and throttling of one class."""


class MemoryQosLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_percent: Percent = Field(
        default=100,
        description="Upper bound of the protection of one pod, in percent of the node's memory.",
    )


class MemoryQos(sections.Section):
    """Protection and throttling of memory, by class. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: MemoryQosLimits
    lsr_class: MemoryQosClass = Field(description="Settings of LSE and LSR pods.")
    ls_class: MemoryQosClass = Field(description="Settings of LS pods.")
    be_class: MemoryQosClass = Field(description="Settings of BE pods.")


class PageCacheClass(sections.StrategySection, of=(strategies.MemoryQos, "page_cache_reclaim")):
    """Page cache limit of pods of one class."""


class PageCacheLimits(sections.Section):
    """Bounds that no source can exceed."""

    max_bytes: Annotated[int, Field(ge=1 << 20, le=2**50)] = Field(
        default=256 << 20, description="Most bytes to reclaim from a pod at once."
    )


class PageCacheReclaim(sections.Section):
    """Page cache limits of pods. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: PageCacheLimits
    lsr_class: PageCacheClass = Field(description="Settings of LSE and LSR pods.")
    ls_class: PageCacheClass = Field(description="Settings of LS pods.")
    be_class: PageCacheClass = Field(description="Settings of BE pods.")


class OomScore(sections.Section):
    """``oom_score_adj`` of every workload's processes, by its class or its annotation."""

    mode: sections.PolicyModeField = "off"
    limits: cpu_sections.NoLimits


class SystemQosLimits(sections.Section):
    """Bounds that no source can exceed."""

    max_free_percent: Annotated[int, Field(ge=0, le=20)] = Field(
        default=5,
        description="Upper bound of `vm.min_free_kbytes`, in percent of the machine's memory.",
    )


class SystemQos(sections.StrategySection, of=(strategies.System, "system_qos")):
    """Knobs of the whole kernel; null leaves one alone. A NodeSLO replaces them."""

    mode: sections.PolicyModeField = "off"
    limits: SystemQosLimits
