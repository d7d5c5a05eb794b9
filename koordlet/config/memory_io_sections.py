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

    #: Upper bound of the protection of one pod, in percent of the node's memory.
    max_percent: Percent = 100


class MemoryQos(sections.Section):
    """Protection and throttling of memory, by class. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: MemoryQosLimits
    #: Settings of LSE and LSR pods.
    lsr_class: MemoryQosClass
    #: Settings of LS pods.
    ls_class: MemoryQosClass
    #: Settings of BE pods.
    be_class: MemoryQosClass


class PageCacheClass(sections.StrategySection, of=(strategies.MemoryQos, "page_cache_reclaim")):
    """Page cache limit of pods of one class."""


class PageCacheLimits(sections.Section):
    """Bounds that no source can exceed."""

    #: Most bytes to reclaim from a pod at once.
    max_bytes: Annotated[int, Field(ge=1 << 20, le=2**50)] = 256 << 20


class PageCacheReclaim(sections.Section):
    """Page cache limits of pods. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: PageCacheLimits
    #: Settings of LSE and LSR pods.
    lsr_class: PageCacheClass
    #: Settings of LS pods.
    ls_class: PageCacheClass
    #: Settings of BE pods.
    be_class: PageCacheClass


class IoConfig(sections.StrategySection, of=(strategies.IoLimits, "blkio_qos")):
    """Limits, weight and cost of one device; 0 is unlimited."""


class Block(sections.Section):
    """One block device, or several by one name."""

    #: Device or volume group, such as `/dev/sda`, `8:0` or `vg0`.
    name: Annotated[str, Field(min_length=1, max_length=256)]
    #: Whether `name` is a block device or an LVM volume group.
    type: Literal["device", "volumegroup"] = "device"
    io_cfg: IoConfig


class BlkioClass(sections.StrategySection, of=(strategies.BlkioQos, "blkio_qos")):
    """The devices of one class."""

    #: The block devices, one entry each.
    blocks: fieldtypes.Listed[Block] = ()


class BlkioQosLimits(sections.Section):
    """Bounds that no source can exceed."""

    #: Lowest bandwidth limit of any cgroup, in bytes per second.
    least_bps: Count = 1 << 20
    #: Lowest operations limit of any cgroup, in operations per second.
    least_iops: Count = 10


class BlkioQos(sections.Section):
    """Limits of block devices. A NodeSLO replaces the classes."""

    mode: sections.PolicyModeField = "enforce"
    limits: BlkioQosLimits
    #: Settings of BE pods.
    be_class: BlkioClass
    #: Latency targets and cost models of whole devices (cgroup v2).
    cgroup_root: BlkioClass


class NetworkClass(sections.StrategySection, of=(strategies.NetworkQos, "network_qos")):
    """Guaranteed bandwidth (request) and bandwidth limit of a class."""


class NetworkQosLimits(sections.Section):
    """Bounds that no source can exceed."""

    #: Lowest bandwidth limit of a class or pod, in bits per second.
    least_bps: Annotated[int, Field(ge=8_000, le=10**12)] = 1_000_000


class NetworkQos(sections.Section):
    """Bandwidth by class. A NodeSLO replaces classes and total."""

    mode: sections.PolicyModeField = "off"
    limits: NetworkQosLimits
    #: Bandwidth of each network interface in bits per second; null disables shaping.
    total_network_bandwidth: fieldtypes.OptionalQuantity = None
    #: Network interfaces to shape; empty uses those of the default routes.
    interfaces: fieldtypes.Listed[Link] = ()
    #: Also shape received traffic (needs the `ifb` module).
    ingress: bool = True
    #: Traffic of no pod; 40 % is guaranteed by default.
    system_class: NetworkClass
    #: LSE, LSR and LS pods; 30 % is guaranteed by default.
    ls_class: NetworkClass
    #: BE pods; 30 % is guaranteed by default.
    be_class: NetworkClass
