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
        description="Compare what latency-sensitive work feels before and after a step of a policy"
        " that only optimises; under the same load, take back for ten minutes what made it clearly"
        " worse. What protects is never taken back.",
    )
