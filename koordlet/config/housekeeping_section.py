"""The section ``policies.housekeeping``: CPUs of interrupts and kernel threads.

Covers: its fields. Does not cover: the policy (``policy.cpu.housekeeping``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import cpu_sections, sections


class Housekeeping(sections.Section):
    """Keeps interrupts and kernel threads away from exclusive CPUs."""

    mode: sections.PolicyModeField = "off"
    limits: cpu_sections.NoLimits = Field(
        default_factory=cpu_sections.NoLimits,
        description="Upper bounds. They are applied last and override every other source.",
    )
    interrupts: bool = Field(
        default=True,
        description="Move interrupts away from exclusive CPUs. Stop `irqbalance` first.",
    )
    kernel_threads: bool = Field(
        default=True,
        description="Move the kernel threads of unbound workqueues away from exclusive CPUs.",
    )
    onto_reserved: bool = Field(
        default=False,
        description="Move both to the reserved CPUs, if there are any; false uses all CPUs that"
        " are not exclusive.",
    )
