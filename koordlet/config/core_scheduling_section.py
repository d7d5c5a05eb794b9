"""The section ``policies.core_scheduling``: who may run on the threads of one core together.

Covers: its fields. Does not cover: the policy (``policy.cpu.core_scheduling``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import cpu_sections, sections

ClassName = Literal["LSR", "LS", "BE"]


class CoreScheduling(sections.Section):
    """Cookies of the kernel's core scheduling, by group of pods."""

    mode: sections.PolicyModeField = Field(
        default="off",
        description="What may be done with its decisions. It costs capacity: a thread stays idle"
        " while its core runs others than its own.",
    )
    limits: cpu_sections.NoLimits = Field(
        default_factory=cpu_sections.NoLimits, description="Upper bounds, applied last."
    )
    classes: Annotated[tuple[ClassName, ...], Field(strict=False, max_length=3)] = Field(
        default=("LSR", "LS", "BE"),
        description="Whose workloads take part; `LSR` is LSE, too. A NodeSLO replaces it.",
    )
