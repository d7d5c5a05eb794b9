"""The section ``counters``: optional hardware counters.

Covers: its fields. Does not cover: counting (``host.counters.performance``).
"""

from __future__ import annotations

from pydantic import Field, model_validator

from koordlet.config import fieldtypes, sections


class Cpi(sections.Section):
    """Cycles and instructions of containers, by the processor's counters."""

    enabled: bool = Field(
        default=False,
        description="Count cycles and instructions where kernel and processor allow it. While a"
        " cgroup is counted, each switch to or from it costs its CPU about a microsecond.",
    )
    window_seconds: int = Field(
        default=10, ge=1, le=60, description="Length of one counting window of a cgroup."
    )
    interval_seconds: int = Field(
        default=60,
        ge=1,
        le=60,
        description="Time between two windows of a cgroup, if all cgroups fit into one window.",
    )
    descriptors: int = Field(
        default=1024,
        ge=2,
        le=16384,
        description="Upper bound of open perf file descriptors. A cgroup needs two for each"
        " online CPU; cgroups that do not fit into one window take turns.",
    )

    @model_validator(mode="after")
    def _window_fits(self) -> Cpi:
        if self.window_seconds > self.interval_seconds:
            fieldtypes.refuse(
                f"a window of {self.window_seconds} s does not fit into {self.interval_seconds} s",
                "make intervalSeconds at least windowSeconds",
                at=("windowSeconds",),
            )
        return self


class Counters(sections.Section):
    """Optional hardware counters."""

    cpi: Cpi
