"""The section ``guard``: steps that hurt latency-sensitive work are taken back.

Covers: its fields. Does not cover: the guard (``policy.framework.guard``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import sections


class Guard(sections.Section):
    """Whether a step that hurts is taken back for a while."""

    enabled: bool = Field(
        default=True,
        description="Measure latency-sensitive work before and after each change by a policy that"
        " only optimizes. If it got clearly worse under the same load, undo the change for"
        " ten minutes. Protective changes stay.",
    )
