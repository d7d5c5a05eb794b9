"""The section ``policies.oom_score``: which processes the OOM killer prefers.

Covers: its fields. Does not cover: the policy (``policy.memory_io.oom_score``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import cpu_sections, sections


class OomScore(sections.Section):
    """``oom_score_adj`` of every workload's processes, by its class or its annotation."""

    mode: sections.PolicyModeField = "off"
    limits: cpu_sections.NoLimits = Field(
        default_factory=cpu_sections.NoLimits,
        description="Upper bounds. They are applied last and override every other source.",
    )
