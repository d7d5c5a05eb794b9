"""Adjustment of a container before it starts.

Covers: the value that is given to a container runtime. Does not cover: deciding it
(``policy.framework.admission``), saying it in a runtime's words (``workloads.nri``).

``None`` is always "leave it as the runtime has it".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

from koordlet.model import cpuset
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """Adjusted settings of one container."""

    cpus: cpuset.CPUSet | None = None
    #: NUMA nodes of its memory.
    mems: cpuset.CPUSet | None = None
    #: CPU time in thousandths of a core; -1 takes a limit away.
    cpu_milli: int | None = None
    cpu_shares: int | None = None
    #: -1 takes a limit away.
    memory_bytes: int | None = None
    #: The class of cache and bandwidth that the runtime's resctrl support knows.
    resctrl_class: str | None = None
    #: Files of cgroup v2, by name.
    unified: Mapping[str, str] = field(default_factory=dict)
    #: Policy to why, for the log and the audit.
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether nothing is adjusted."""
        return self.over(Adjustment(reasons=self.reasons)) == Adjustment(reasons=self.reasons)

    def over(self, other: Adjustment) -> Adjustment:
        """Merge two adjustments; this one wins."""
        merged: dict[str, Any] = {}
        for name in (each.name for each in fields(Adjustment)):
            mine, others = getattr(self, name), getattr(other, name)
            if isinstance(mine, Mapping):
                merged[name] = {**others, **mine}
            else:
                merged[name] = others if mine is None else mine
        return Adjustment(**merged)
