"""The section ``policies.core_scheduling``: which workloads may share a core.

Covers: its fields. Does not cover: the policy (``policy.cpu.core_scheduling``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import cpu_sections, sections

ClassName = Literal["LSR", "LS", "BE"]


class CoreScheduling(sections.Section):
    """Core-scheduling cookies by group of pods."""

    mode: sections.PolicyModeField = Field(
        default="off",
        description="`off` does not run the policy, `shadow` only reports its decisions,"
        " `enforce` applies them. Core scheduling costs capacity: a thread idles while its"
        " core runs another group.",
    )
    limits: cpu_sections.NoLimits = Field(
        default_factory=cpu_sections.NoLimits,
        description="Upper bounds. They are applied last and override every other source.",
    )
    classes: Annotated[tuple[ClassName, ...], Field(strict=False, max_length=3)] = Field(
        default=("LSR", "LS", "BE"),
        description="QoS classes that get core-scheduling cookies; `LSR` includes LSE. A NodeSLO"
        " replaces this list.",
    )
