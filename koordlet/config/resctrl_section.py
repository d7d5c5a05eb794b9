"""The section ``policies.resctrl``: cache ways and memory bandwidth.

Covers: its fields under the peer's names, what is wrong with a range.
Does not cover: the policy (``policy.resctrl.resctrl``), settings that NodeSLO brings.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from koordlet.config import fieldtypes, sections
from koordlet.model import nodeslo, strategies


class ResctrlQos(sections.StrategySection, of=(strategies.ResctrlQos, "resctrl")):
    """Cache ways and memory bandwidth of a class."""

    @model_validator(mode="after")
    def _ordered(self) -> ResctrlQos:
        if self.cat_range_start_percent >= self.cat_range_end_percent:
            fieldtypes.refuse(
                f"the range {self.cat_range_start_percent}-{self.cat_range_end_percent} is empty",
                "give an end above the start",
                at=("catRangeEndPercent",),
            )
        return self


class BeResctrlQos(
    ResctrlQos, of=(strategies.ResctrlQos, "resctrl"), usual=nodeslo.CLASSES["BE"].resctrl
):
    """Cache ways and memory bandwidth of BE, with Koordinator's default."""


class Partition(sections.Section):
    """A part of every cache that only some classes use; partitions never overlap."""

    #: Name of the partition in conditions.
    name: Annotated[str, Field(min_length=1)]
    #: Share of the cache ways in percent, following the partitions listed before.
    ways: Annotated[int, Field(ge=1, le=100)]
    #: Highest memory bandwidth of a class in the partition, in percent.
    bandwidth: Annotated[int, Field(ge=1, le=100)] = 100
    #: QoS classes in the partition; their percentages then refer to the partition.
    classes: Annotated[tuple[Literal["LSR", "LS", "BE"], ...], Field(strict=False)] = ()


class ResctrlLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    #: Highest number of monitoring groups for pods.
    pod_monitors: Annotated[int, Field(ge=0)] = 32


class Resctrl(sections.Section):
    """Cache ways and memory bandwidth of each class."""

    mode: sections.PolicyModeField = "shadow"
    limits: ResctrlLimits
    #: Mount resctrl if it is not mounted, and unmount it on stop.
    mount: bool = False
    #: Options for mounting resctrl; an existing mount keeps its own.
    mount_options: fieldtypes.Listed[Literal["cdp", "cdpl2", "mba_MBps"]] = ()
    #: Memory bandwidth of one L3 domain in GB/s. Percentages on AMD and with `mba_MBps` refer to
    #: it. Null uses the firmware's memory speed, or else 20.
    bandwidth: Annotated[float | None, Field(gt=0)] = Field(default=None, strict=False)
    #: Slow-memory bandwidth (SMBA) of one L3 domain in GB/s; null sets no limits for slow memory.
    slow_bandwidth: Annotated[float | None, Field(gt=0)] = Field(default=None, strict=False)
    #: Let the container runtime assign the resctrl class at container creation; requires `nri` and
    #: a runtime with resctrl support.
    runtime_classes: bool = False
    #: Receive process events, and move processes at once that enter a workload's cgroup from
    #: outside; requires CAP_NET_ADMIN. Without it koordlet finds them within ten seconds.
    process_events: bool = False
    #: Round and scale bandwidth exactly as Koordinator's agent does.
    peer_numbers: bool = False
    #: Create a monitoring group for each pod while RMIDs are free.
    pod_monitoring: bool = False
    #: Reduce the bandwidth of BE step by step while BE causes most of a domain's traffic and
    #: latency-sensitive work stalls.
    tighten: bool = False
    #: Parts of every cache that only the listed classes use.
    partitions: fieldtypes.Listed[Partition] = ()
    #: Settings of LSE and LSR pods.
    lsr_class: ResctrlQos
    #: Settings of LS pods.
    ls_class: ResctrlQos
    be_class: BeResctrlQos

    @model_validator(mode="after")
    def _apart(self) -> Resctrl:
        total = sum(partition.ways for partition in self.partitions)
        if total > 100:
            fieldtypes.refuse(
                f"the partitions have {total} % of the ways together",
                "give them 100 % at most",
                at=("partitions",),
            )
        members = [name for partition in self.partitions for name in partition.classes]
        twice = sorted({name for name in members if members.count(name) > 1})
        if twice:
            fieldtypes.refuse(
                f"{', '.join(twice)} is in more than one partition",
                "leave it in one of them",
                at=("partitions",),
            )
        return self
