"""The section ``policies.blkio_qos``: limits of block devices.

Covers: its fields under the peer's names. Does not cover: the policy
(``policy.memory_io.blkio_qos``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import fieldtypes, sections
from koordlet.model import strategies

Count = Annotated[int, Field(ge=0, le=2**62)]


class IoConfig(sections.StrategySection, of=(strategies.IoLimits, "blkio_qos")):
    """Limits, weight and cost of one device; 0 is unlimited."""


class Block(sections.Section):
    """One block device, or several by one name."""

    name: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="Device or volume group, such as `/dev/sda`, `8:0` or `vg0`."
    )
    type: Literal["device", "volumegroup"] = Field(
        default="device", description="Whether `name` is a block device or an LVM volume group."
    )
    io_cfg: IoConfig


class BlkioClass(sections.StrategySection, of=(strategies.BlkioQos, "blkio_qos")):
    """The devices of one class."""

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
    limits: BlkioQosLimits
    be_class: BlkioClass = Field(description="Settings of BE pods.")
    cgroup_root: BlkioClass = Field(
        description="Latency targets and cost models of whole devices (cgroup v2)."
    )
