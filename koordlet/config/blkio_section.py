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
        default=100, description="I/O weight of the class on this device, in percent."
    )
    read_latency: Count = Field(
        default=0,
        description="Latency target of reads in µs (`cgroupRoot` only); 0 sets no target.",
    )
    write_latency: Count = Field(
        default=0,
        description="Latency target of writes in µs (`cgroupRoot` only); 0 sets no target.",
    )
    read_latency_percent: Percent = Field(
        default=95, description="Percent of reads that should meet the latency target."
    )
    write_latency_percent: Percent = Field(
        default=95, description="Percent of writes that should meet the latency target."
    )
    enable_user_model: bool = Field(
        default=False, description="Use the six `model…` values below as the device's cost model."
    )
    model_read_bps: Count = Field(
        default=0, alias="modelReadBPS", description="Cost model: bytes read per second."
    )
    model_write_bps: Count = Field(
        default=0, alias="modelWriteBPS", description="Cost model: bytes written per second."
    )
    model_read_seq_iops: Count = Field(
        default=0, alias="modelReadSeqIOPS", description="Cost model: sequential reads per second."
    )
    model_write_seq_iops: Count = Field(
        default=0,
        alias="modelWriteSeqIOPS",
        description="Cost model: sequential writes per second.",
    )
    model_read_rand_iops: Count = Field(
        default=0, alias="modelReadRandIOPS", description="Cost model: random reads per second."
    )
    model_write_rand_iops: Count = Field(
        default=0, alias="modelWriteRandIOPS", description="Cost model: random writes per second."
    )


class Block(sections.Section):
    """One block device, or several by one name."""

    name: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="Device or volume group, such as `/dev/sda`, `8:0` or `vg0`."
    )
    type: Literal["device", "volumegroup"] = Field(
        default="device", description="Whether `name` is a block device or an LVM volume group."
    )
    io_cfg: IoConfig = Field(
        default_factory=IoConfig, description="Limits, weight and cost model of the device."
    )


class BlkioClass(sections.Section):
    """The devices of one class."""

    enable: bool = Field(default=False, description="Apply the settings of this class.")
    blocks: Annotated[tuple[Block, ...], Field(strict=False), fieldtypes.ABSENT_LIST] = Field(
        default=(), description="The block devices, one entry each."
    )


class BlkioQosLimits(sections.Section):
    """Bounds that no source can exceed."""

    least_bps: Count = Field(
        default=1 << 20, description="Lowest bandwidth limit of any cgroup, in bytes per second."
    )
    least_iops: Count = Field(
        default=10, description="Lowest operations limit of any cgroup, in operations per second."
    )


class BlkioQos(sections.Section):
    """Limits of block devices. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: BlkioQosLimits = Field(
        default_factory=BlkioQosLimits, description="Bounds that no source can exceed."
    )
    be_class: BlkioClass = Field(default_factory=BlkioClass, description="Settings of BE pods.")
    cgroup_root: BlkioClass = Field(
        default_factory=BlkioClass,
        description="Latency targets and cost models of whole devices (cgroup v2).",
    )
