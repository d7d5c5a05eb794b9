"""The section ``policies.cpu_qos``: CPU scheduler settings by QoS class.

Covers: its fields under the peer's names. Does not cover: the policy (``policy.cpu.cpu_qos``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections

Identity = Annotated[int, Field(ge=-1, le=2)]
Idle = Annotated[int, Field(ge=0, le=1)]


class CpuQosClass(sections.Section):
    """CPU scheduler settings of a latency-sensitive class."""

    enable: bool = Field(default=False, description="Apply the settings of this class.")
    group_identity: Identity = Field(
        default=2,
        description="Group identity (`cpu.bvt_warp_ns`): 2 preempts other classes, -1"
        " yields to all of them.",
    )


class BeCpuQosClass(sections.Section):
    """CPU scheduler settings of best-effort pods."""

    enable: bool = Field(default=False, description="Apply the settings of this class.")
    group_identity: Identity = Field(
        default=-1,
        description="Group identity (`cpu.bvt_warp_ns`): -1 yields to all other classes.",
    )
    sched_idle: Idle = Field(
        default=0,
        description="1: run BE pods as `SCHED_IDLE` (`cpu.idle`, in cgroups that koordlet"
        " created).",
    )


class CpuQosLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_identity: Identity = Field(
        default=2,
        description="Highest group identity; larger values of a NodeSLO or a pod are"
        " reduced to it.",
    )


class CpuQos(sections.Section):
    """CPU scheduler settings by class. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: CpuQosLimits = Field(
        default_factory=CpuQosLimits, description="Upper bounds that no source can exceed."
    )
    lsr_class: CpuQosClass = Field(
        default_factory=CpuQosClass, description="Settings of LSE and LSR pods."
    )
    ls_class: CpuQosClass = Field(default_factory=CpuQosClass, description="Settings of LS pods.")
    be_class: BeCpuQosClass = Field(
        default_factory=BeCpuQosClass, description="Settings of BE pods."
    )
