"""Sections of policies about CPUs: pools, reservations, exclusive CPUs, CPU time, the scheduler.

Covers: their fields, those of ``cpu_burst`` and ``cpu_qos`` under Koordinator's names.
Does not cover: the policies of the same names.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import fieldtypes, sections
from koordlet.model import nodeslo, strategies


class NoLimits(sections.Section):
    """Upper bounds. They are applied last and override every other source; there are none."""


class BoundQuota(sections.Section):
    """No CPU quota for pods with exclusive CPUs."""

    mode: sections.PolicyModeField = "enforce"
    limits: NoLimits


class CpuNormalizationLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_ratio: Annotated[float | None, Field(ge=1, le=5)] = Field(
        default=None,
        strict=False,
        description="Highest normalization ratio; larger ones are"
        " reduced to it; null sets no bound.",
    )


class CpuNormalization(sections.Section):
    """CPU quotas of shared pods, scaled to the speed of this node's CPUs."""

    mode: sections.PolicyModeField = "shadow"
    limits: CpuNormalizationLimits


class BatchLimits(sections.Section):
    """CPU shares, CPU quota and memory limits of pods that request batch or mid resources."""

    mode: sections.PolicyModeField = "enforce"
    limits: NoLimits


class ReservedCpusLimits(sections.Section):
    """Upper bounds of every reservation, whatever its source."""

    max_cpus: Annotated[int | None, Field(ge=0)] = Field(
        default=None, description="Highest number of reserved CPUs; null sets no bound."
    )


class ReservedCpus(sections.Section):
    """CPUs reserved for the system and withheld from every pod."""

    mode: sections.PolicyModeField = "enforce"
    limits: ReservedCpusLimits
    cpus: fieldtypes.CpuList = Field(default=None, description="CPUs to reserve, such as `0-1`.")
    quantity: fieldtypes.OptionalQuantity = Field(
        default=None,
        description="Amount of CPU to reserve, rounded up to whole CPUs. Ignored if `cpus` is set.",
    )


class SharedPoolsLimits(sections.Section):
    """The shared pools have no upper bounds yet."""


class SharedPools(sections.Section):
    """CPU pools of workloads without exclusive CPUs."""

    mode: sections.PolicyModeField = "enforce"
    limits: SharedPoolsLimits
    enable_controllers: bool = Field(
        default=False,
        description="Enable the cpuset controller in the parent cgroups of a workload (cgroup v2"
        " only).",
    )
    tiers: bool = Field(
        default=True,
        description="Also set the cpusets of the kubelet's QoS cgroups, so that new containers"
        " start on the right CPUs.",
    )


class ExclusiveCpusLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_cpus: Annotated[int | None, Field(ge=0)] = Field(
        default=None, description="Highest number of exclusive CPUs; null sets no bound."
    )


class ExclusiveCpus(sections.Section):
    """Exclusive CPUs of single workloads."""

    mode: sections.PolicyModeField = "enforce"
    limits: ExclusiveCpusLimits
    choose: bool = Field(
        default=True,
        description="Choose exclusive CPUs for workloads that request a number of them and have"
        " no CPUs from a scheduler.",
    )
    repack: bool = Field(
        default=False,
        description="Move exclusive cpusets that koordlet chose when that reduces fragmentation;"
        " `koordlet plan --defragment` shows the moves.",
    )
    trust_annotations: bool = Field(
        default=False,
        description="Trust the `resource-status` annotation whatever the pod's class, priority"
        " and request. Whoever may write pods can then take the node's CPUs.",
    )


class Housekeeping(sections.Section):
    """Keeps interrupts and kernel threads away from exclusive CPUs."""

    mode: sections.PolicyModeField = "off"
    limits: NoLimits
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


ClassName = Literal["LSR", "LS", "BE"]


class CoreScheduling(sections.Section):
    """Core-scheduling cookies by group of pods."""

    mode: sections.PolicyModeField = Field(
        default="off",
        description="`off` does not run the policy, `shadow` only reports its decisions,"
        " `enforce` applies them. Core scheduling costs capacity: a thread idles while its"
        " core runs another group.",
    )
    limits: NoLimits
    classes: Annotated[tuple[ClassName, ...], Field(strict=False, max_length=3)] = Field(
        default=("LSR", "LS", "BE"),
        description="QoS classes that get core-scheduling cookies; `LSR` includes LSE. A NodeSLO"
        " replaces this list.",
    )


class CpuBurstLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_percent: Annotated[int | None, Field(ge=100)] = Field(
        default=None,
        description="Upper bound of bursts and raised limits, in percent of the CPU limit; null"
        " sets no bound.",
    )


class CpuBurst(sections.StrategySection, of=(strategies.CpuBurst, "cpu_burst")):
    """CPU time beyond their limit for containers that are neither LSE, LSR nor BE."""

    mode: sections.PolicyModeField = "enforce"
    limits: CpuBurstLimits


class CpuQosClass(
    sections.StrategySection,
    of=(strategies.CpuQos, "cpu_qos"),
    usual=nodeslo.CLASSES["LS"].cpu,
    but=("sched_idle",),
):
    """CPU scheduler settings of a latency-sensitive class."""


class BeCpuQosClass(
    sections.StrategySection,
    of=(strategies.CpuQos, "cpu_qos"),
    usual=nodeslo.CLASSES["BE"].cpu,
):
    """CPU scheduler settings of best-effort pods."""


class CpuQosLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_identity: Annotated[int, Field(ge=-1, le=2)] = Field(
        default=2,
        description="Highest group identity; larger values of a NodeSLO or a pod are"
        " reduced to it.",
    )


class CpuQos(sections.Section):
    """CPU scheduler settings by class. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: CpuQosLimits
    lsr_class: CpuQosClass = Field(description="Settings of LSE and LSR pods.")
    ls_class: CpuQosClass = Field(description="Settings of LS pods.")
    be_class: BeCpuQosClass
