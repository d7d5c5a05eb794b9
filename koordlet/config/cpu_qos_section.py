"""The section ``policies.cpu_qos``: what the kernel's scheduler is told of each class.

Covers: its fields under the peer's names. Does not cover: the policy (``policy.cpu.cpu_qos``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections

Identity = Annotated[int, Field(ge=-1, le=2)]
Idle = Annotated[int, Field(ge=0, le=1)]


class CpuQosClass(sections.Section):
    """What pods of a latency-sensitive class are."""

    enable: bool = Field(default=False, description="Whether the class has a strategy.")
    group_identity: Identity = Field(
        default=2, description="-1 goes aside for everybody, 2 for nobody (`cpu.bvt_warp_ns`)."
    )


class BeCpuQosClass(sections.Section):
    """What best-effort pods are."""

    enable: bool = Field(default=False, description="Whether the class has a strategy.")
    group_identity: Identity = Field(default=-1, description="The same.")
    sched_idle: Idle = Field(
        default=0,
        description="1: they run when nobody else wants to (`cpu.idle`, in groups that koordlet"
        " made).",
    )


class CpuQosLimits(sections.Section):
    """Upper bounds, applied last."""

    max_identity: Identity = Field(
        default=2, description="No group is told more, whatever a NodeSLO or a pod asks for."
    )


class CpuQos(sections.Section):
    """What the scheduler is told, by class. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: CpuQosLimits = Field(
        default_factory=CpuQosLimits, description="Upper bounds, applied last."
    )
    lsr_class: CpuQosClass = Field(default_factory=CpuQosClass, description="LSE and LSR pods.")
    ls_class: CpuQosClass = Field(default_factory=CpuQosClass, description="LS pods.")
    be_class: BeCpuQosClass = Field(default_factory=BeCpuQosClass, description="BE pods.")
