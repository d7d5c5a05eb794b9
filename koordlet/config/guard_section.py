"""The section ``guard``: undoes changes that hurt latency-sensitive work.

Covers: its fields. Does not cover: the guard (``policy.framework.guard``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import sections


class Guard(sections.Section):
    """Undoes changes that hurt latency-sensitive work."""

    enabled: bool = Field(
        default=True,
        description="Measure latency-sensitive work before and after each change by a policy that"
        " only optimizes. If it got clearly worse under the same load, undo the change for"
        " ten minutes. Protective changes stay.",
    )
