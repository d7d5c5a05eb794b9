"""Sections of policies about memory, devices, network and the kernel.

Covers: QoS, page cache, OOM scores, kernel settings, limits of block devices, bandwidth of network
interfaces; their fields under Koordinator's names.
Does not cover: the policies (``policy.memory_io``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import fieldtypes, sections
from koordlet.model import strategies

Count = Annotated[int, Field(ge=0, le=2**62)]
Link = Annotated[str, Field(pattern=r"^[^/\s]{1,15}$")]
Percent = Annotated[int, Field(ge=0, le=100)]


class MemoryQosClass(sections.StrategySection, of=(strategies.MemoryQos, "memory_qos")):
    """Memory protection and throttling of one class."""


class MemoryQosLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_percent: Percent = Field(
        default=100,
        description="Upper bound of the protection of one pod, in percent of the node's memory.",
    )


class MemoryQos(sections.Section):
    """Protection and throttling of memory, by class. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: MemoryQosLimits
    lsr_class: MemoryQosClass = Field(description="Settings of LSE and LSR pods.")
    ls_class: MemoryQosClass = Field(description="Settings of LS pods.")
    be_class: MemoryQosClass = Field(description="Settings of BE pods.")


class PageCacheClass(sections.StrategySection, of=(strategies.MemoryQos, "page_cache_reclaim")):
    """Page cache limit of pods of one class."""


class PageCacheLimits(sections.Section):
    """Bounds that no source can exceed."""

    max_bytes: Annotated[int, Field(ge=1 << 20, le=2**50)] = Field(
        default=256 << 20, description="Most bytes to reclaim from a pod at once."
    )


class PageCacheReclaim(sections.Section):
    """Page cache limits of pods. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: PageCacheLimits
    lsr_class: PageCacheClass = Field(description="Settings of LSE and LSR pods.")
    ls_class: PageCacheClass = Field(description="Settings of LS pods.")
    be_class: PageCacheClass = Field(description="Settings of BE pods.")


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


class NetworkClass(sections.StrategySection, of=(strategies.NetworkQos, "network_qos")):
    """Guaranteed bandwidth (request) and bandwidth limit of a class."""


class NetworkQosLimits(sections.Section):
    """Bounds that no source can exceed."""

    least_bps: Annotated[int, Field(ge=8_000, le=10**12)] = Field(
        default=1_000_000,
        description="Lowest bandwidth limit of a class or pod, in bits per second.",
    )


class NetworkQos(sections.Section):
    """Bandwidth by class. A NodeSLO replaces classes and total."""

    mode: sections.PolicyModeField = "off"
    limits: NetworkQosLimits
    total_network_bandwidth: fieldtypes.OptionalQuantity = Field(
        default=None,
        description="Bandwidth of each network interface in bits per second; null"
        " disables shaping.",
    )
    interfaces: Annotated[tuple[Link, ...], Field(strict=False), fieldtypes.ABSENT_LIST] = Field(
        default=(),
        description="Network interfaces to shape; empty uses those of the default routes.",
    )
    ingress: bool = Field(
        default=True, description="Also shape received traffic (needs the `ifb` module)."
    )
    system_class: NetworkClass = Field(
        description="Traffic of no pod; 40 % is guaranteed by default."
    )
    ls_class: NetworkClass = Field(
        description="LSE, LSR and LS pods; 30 % is guaranteed by default."
    )
    be_class: NetworkClass = Field(description="BE pods; 30 % is guaranteed by default.")
