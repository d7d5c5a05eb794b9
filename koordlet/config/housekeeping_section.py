"""The section ``policies.housekeeping``: where the kernel's own work runs.

Covers: its fields. Does not cover: the policy (``policy.cpu.housekeeping``).
"""

from __future__ import annotations

from pydantic import Field

from koordlet.config import cpu_sections, sections


class Housekeeping(sections.Section):
    """Interrupts and kernel threads keep off CPUs that workloads hold alone."""

    mode: sections.PolicyModeField = Field(
        default="off", description="What may be done with its decisions."
    )
    limits: cpu_sections.NoLimits = Field(
        default_factory=cpu_sections.NoLimits, description="Upper bounds, applied last."
    )
    interrupts: bool = Field(default=True, description="Move interrupts; stop `irqbalance` first.")
    kernel_threads: bool = Field(
        default=True, description="Move the kernel threads of unbound work queues."
    )
    onto_reserved: bool = Field(
        default=False,
        description="Only onto the reserved CPUs, where there are some; else onto all CPUs that no"
        " workload holds alone.",
    )
