"""The section ``guard``: policies that hurt latency-sensitive work are rolled back.

Covers: its fields. Does not cover: the guard (``policy.guard``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import sections


class Guard(sections.Section):
    """Whether a policy that hurts is put back and only watched."""

    enabled: bool = Field(
        default=True,
        description="Compare what latency-sensitive work feels before and after a policy changed"
        " something; put back what made it clearly worse, and only show what it would do.",
    )
