"""The section ``policies.blkio_qos``: limits of block devices.

Covers: its fields under the peer's names. Does not cover: the policy
(``policy.memory_io.blkio_qos``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import fieldtypes, sections

Count = Annotated[int, Field(ge=0, le=2**62)]
Percent = Annotated[int, Field(ge=0, le=100)]


class IoConfig(sections.Section):
    """Limits, weight and cost of one device; 0 is unlimited."""

    read_iops: Count = Field(default=0, alias="readIOPS", description="Reads per second.")
    write_iops: Count = Field(default=0, alias="writeIOPS", description="Writes per second.")
    read_bps: Count = Field(default=0, alias="readBPS", description="Bytes read per second.")
    write_bps: Count = Field(default=0, alias="writeBPS", description="Bytes written per second.")
    io_weight_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        default=100, description="Weight among the groups of the device."
    )
    read_latency: Count = Field(
        default=0, description="Target of reads in µs (`cgroupRoot` only); 0 is none."
    )
    write_latency: Count = Field(
        default=0, description="Target of writes in µs (`cgroupRoot` only); 0 is none."
    )
    read_latency_percent: Percent = Field(
        default=95, description="The part of reads that meets the target."
    )
    write_latency_percent: Percent = Field(
        default=95, description="The part of writes that meets the target."
    )
    enable_user_model: bool = Field(
        default=False, description="Whether the six figures of the model are given here."
    )
    model_read_bps: Count = Field(
        default=0, alias="modelReadBPS", description="What the device can read, bytes/s."
    )
    model_write_bps: Count = Field(
        default=0, alias="modelWriteBPS", description="What it can write, bytes/s."
    )
    model_read_seq_iops: Count = Field(
        default=0, alias="modelReadSeqIOPS", description="Sequential reads per second."
    )
    model_write_seq_iops: Count = Field(
        default=0, alias="modelWriteSeqIOPS", description="Sequential writes per second."
    )
    model_read_rand_iops: Count = Field(
        default=0, alias="modelReadRandIOPS", description="Random reads per second."
    )
    model_write_rand_iops: Count = Field(
        default=0, alias="modelWriteRandIOPS", description="Random writes per second."
    )


class Block(sections.Section):
    """One block device, or several by one name."""

    name: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="Such as `/dev/sda`, `8:0`, the name of a volume group."
    )
    type: Literal["device", "volumegroup"] = Field(
        default="device", description="What the name is of."
    )
    io_cfg: IoConfig = Field(default_factory=IoConfig, description="Limits, weight, cost.")


class BlkioClass(sections.Section):
    """The devices of one class."""

    enable: bool = Field(default=False, description="Whether the class has a strategy.")
    blocks: Annotated[tuple[Block, ...], Field(strict=False), fieldtypes.ABSENT_LIST] = Field(
        default=(), description="One entry for each device."
    )


class BlkioQosLimits(sections.Section):
    """Bounds, applied last."""

    least_bps: Count = Field(
        default=1 << 20, description="No group is limited to fewer bytes per second than this."
    )
    least_iops: Count = Field(
        default=10, description="No group is limited to fewer operations per second than this."
    )


class BlkioQos(sections.Section):
    """Limits of block devices. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: BlkioQosLimits = Field(
        default_factory=BlkioQosLimits, description="Bounds, applied last."
    )
    be_class: BlkioClass = Field(default_factory=BlkioClass, description="Best-effort work.")
    cgroup_root: BlkioClass = Field(
        default_factory=BlkioClass, description="Targets and cost models of whole devices (v2)."
    )
