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


class ReservedCpusLimits(sections.Section):
    """Upper bounds of every reservation, whatever its source."""

    #: Highest number of reserved CPUs; null sets no bound.
    max_cpus: Annotated[int | None, Field(ge=0)] = None


class ReservedCpus(sections.Section):
    """CPUs reserved for the system and withheld from every pod."""

    mode: sections.PolicyModeField = "enforce"
    limits: ReservedCpusLimits
    #: CPUs to reserve, such as `0-1`.
    cpus: fieldtypes.CpuList = None
    #: Amount of CPU to reserve, rounded up to whole CPUs. Ignored if `cpus` is set.
    quantity: fieldtypes.OptionalQuantity = None


class DraDriver(sections.Section):
    """Offers CPUs and caches to resource claims (DRA), as a driver of the kubelet."""

    mode: sections.PolicyModeField = "off"
    limits: NoLimits
    #: Name of the driver, which ResourceSlices and device classes name; a DNS subdomain.
    name: Annotated[
        str,
        Field(
            max_length=63,
            pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        ),
    ] = "koordlet.cpu"
    #: What one device is: the CPUs of a NUMA node, an L3 cache, a socket or a core.
    group_by: Literal["numa", "l3", "socket", "core"] = "numa"
    #: CPUs have their attributes under the names of Kubernetes' own driver, too, such as
    #: `dra.cpu/numaNodeID`: selectors and constraints that were written for it work.
    compatible_attributes: bool = False
    #: Ways of each L3 cache that claims may have together; null is half of them. Ways are offered
    #: while `policies.resctrl` enforces.
    cache_ways: Annotated[int | None, Field(ge=0)] = None
    #: Control groups (classes of service) for claims; null is as many as the QoS classes leave.
    #: Each L3 cache gets an equal part of them, and a claim of its ways takes one.
    cache_groups: Annotated[int | None, Field(ge=0)] = None


ClassName = Literal["LSR", "LS", "BE"]
ClassNames = Annotated[tuple[ClassName, ...], Field(strict=False, max_length=3)]


class CoreScheduling(sections.Section):
    """Core-scheduling cookies by group of pods."""

    #: `off` does not run the policy, `shadow` only reports its decisions, `enforce` applies them.
    #: Core scheduling costs capacity: a thread idles while its core runs another group.
    mode: sections.PolicyModeField = "off"
    limits: NoLimits
    #: QoS classes that get core-scheduling cookies; `LSR` includes LSE. A NodeSLO replaces this
    #: list.
    classes: ClassNames = ("LSR", "LS", "BE")


class RealTimeLimits(sections.Section):
    """Upper bounds of real-time work."""

    #: Percentage of the machine's CPUs that real-time workloads may use together. Above it, all of
    #: them are ordinary for a minute: kernel threads and the kubelet would get what is left.
    max_percent: Annotated[int, Field(ge=1, le=95)] = 80
    #: Namespaces whose pods may ask; null: all. Workloads of this file always may.
    namespaces: list[fieldtypes.Name] | None = None


class RealTime(sections.Section):
    """Latency-sensitive workloads that ask for it run in the real-time class."""

    #: `off` does not run the policy, `shadow` only reports its decisions, `enforce` applies them.
    #: A workload asks by the annotation `koordlet.io/real-time: "true"`, or by `realTime: true`.
    mode: sections.PolicyModeField = "off"
    limits: RealTimeLimits


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

    #: Highest group identity; larger values of a NodeSLO or a pod are reduced to it.
    max_identity: Annotated[int, Field(ge=-1, le=2)] = 2


class CpuQos(sections.Section):
    """CPU scheduler settings by class. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: CpuQosLimits
    #: Settings of LSE and LSR pods.
    lsr_class: CpuQosClass
    #: Settings of LS pods.
    ls_class: CpuQosClass
    be_class: BeCpuQosClass
