"""The section ``policies.resctrl``: cache ways and memory bandwidth.

Covers: its fields under the peer's names, what is wrong with a range.
Does not cover: the policy (``policy.resctrl.resctrl``), settings that NodeSLO brings.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from koordlet.config import fieldtypes, sections

Percent = Annotated[int, Field(ge=0, le=100)]


class ResctrlQos(sections.Section):
    """What the group of a class shall have."""

    enable: bool = Field(default=True, description="Whether the class has a group.")
    cat_range_start_percent: Percent = Field(
        default=0, alias="catRangeStartPercent", description="First of its ways, in percent."
    )
    cat_range_end_percent: Percent = Field(
        default=100, alias="catRangeEndPercent", description="Last of its ways, in percent."
    )
    mba_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        default=100,
        alias="mbaPercent",
        description="Memory bandwidth in percent; 100 is no limit.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> ResctrlQos:
        if self.cat_range_start_percent >= self.cat_range_end_percent:
            fieldtypes.refuse(
                f"the range {self.cat_range_start_percent}-{self.cat_range_end_percent} is empty",
                "give an end above the start",
                at=("catRangeEndPercent",),
            )
        return self


class BeResctrlQos(ResctrlQos):
    """The same, with the peer's default for best-effort work."""

    cat_range_end_percent: Percent = Field(
        default=30, alias="catRangeEndPercent", description="Last of its ways, in percent."
    )


class Partition(sections.Section):
    """A part of every cache that only some classes use; partitions never overlap."""

    name: Annotated[str, Field(min_length=1)] = Field(description="What conditions call it.")
    ways: Annotated[int, Field(ge=1, le=100)] = Field(
        description="Its share of the ways in percent, after those of the partitions before it."
    )
    bandwidth: Annotated[int, Field(ge=1, le=100)] = Field(
        default=100, description="The most bandwidth that a class in it may have, in percent."
    )
    classes: Annotated[tuple[Literal["LSR", "LS", "BE"], ...], Field(strict=False)] = Field(
        default=(), description="Who is in it; their percentages are then of the partition."
    )


class ResctrlLimits(sections.Section):
    """Upper bounds, applied last."""

    pod_monitors: Annotated[int, Field(ge=0)] = Field(
        default=32, description="At most this many monitoring groups of pods."
    )


class Resctrl(sections.Section):
    """Cache ways and memory bandwidth of each class."""

    mode: sections.PolicyModeField = Field(
        default="shadow", description="What may be done with its decisions."
    )
    limits: ResctrlLimits = Field(
        default_factory=ResctrlLimits, description="Upper bounds, applied last."
    )
    mount: bool = Field(
        default=False, description="Mount resctrl where it is not mounted; unmounted at the end."
    )
    mount_options: Annotated[
        tuple[Literal["cdp", "cdpl2", "mba_MBps"], ...],
        Field(strict=False),
        fieldtypes.ABSENT_LIST,
    ] = Field(default=(), description="Mount options; a mount that is there keeps its own.")
    bandwidth: Annotated[float | None, Field(gt=0)] = Field(
        default=None,
        strict=False,
        description="Memory bandwidth of one L3 domain in GB/s, which percentages on AMD (and with"
        " `mba_MBps`) refer to; null takes what the firmware says of the memory, else 20.",
    )
    slow_bandwidth: Annotated[float | None, Field(gt=0)] = Field(
        default=None,
        strict=False,
        description="The same of slow memory (SMBA); null leaves slow memory without limits.",
    )
    runtime_classes: bool = Field(
        default=False,
        description="Give containers their class through the container runtime, before they begin;"
        " needs `nri`, and a runtime whose resctrl support is on.",
    )
    process_events: bool = Field(
        default=False,
        description="Hear of processes that start, and move those at once that entered a workload's"
        " cgroup from outside; needs CAP_NET_ADMIN. Else they are found within ten seconds.",
    )
    peer_numbers: bool = Field(
        default=False, description="Round and scale bandwidth exactly as Koordinator's agent does."
    )
    pod_monitoring: bool = Field(
        default=False, description="A monitoring group for each pod, while there are RMIDs."
    )
    tighten: bool = Field(
        default=False,
        description="Less bandwidth for BE, step by step, while it takes most of a domain's traffic"
        " and latency-sensitive work waits.",
    )
    partitions: Annotated[tuple[Partition, ...], Field(strict=False), fieldtypes.ABSENT_LIST] = (
        Field(default=(), description="Parts of every cache that classes have for themselves.")
    )
    lsr_class: ResctrlQos = Field(default_factory=ResctrlQos, description="LSE and LSR pods.")
    ls_class: ResctrlQos = Field(default_factory=ResctrlQos, description="LS pods.")
    be_class: BeResctrlQos = Field(default_factory=BeResctrlQos, description="BE pods.")

    @model_validator(mode="after")
    def _apart(self) -> Resctrl:
        total = sum(one.ways for one in self.partitions)
        if total > 100:
            fieldtypes.refuse(
                f"the partitions have {total} % of the ways together",
                "give them 100 % at most",
                at=("partitions",),
            )
        members = [name for one in self.partitions for name in one.classes]
        twice = sorted({name for name in members if members.count(name) > 1})
        if twice:
            fieldtypes.refuse(
                f"{', '.join(twice)} is in more than one partition",
                "leave it in one of them",
                at=("partitions",),
            )
        return self
