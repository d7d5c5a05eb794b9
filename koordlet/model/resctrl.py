"""Cache ways and memory bandwidth as the kernel's resctrl file system offers them.

Covers: what the hardware has, the groups that exist, what they used. Does not cover: the text of
``schemata`` (``model.schemata``), reading any of it (``host.resctrl.tree``), who gets what
(``policy.resctrl.resctrl``).

Kernel facts: Documentation/arch/x86/resctrl.rst (6.1). With ``cdp`` a level has two resources of
one cache, ``L3CODE`` and ``L3DATA``, and half the classes. Domain ids are cache ids: they may have
gaps, and a domain disappears from every file while all its CPUs are offline.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from koordlet.model.record import dataclass

#: Where resctrl is mounted when we may choose; the kernel itself makes this directory.
MOUNT_POINT = "/sys/fs/resctrl"
#: Directories beside groups in a group's directory.
RESERVED_NAMES = frozenset({"info", "mon_groups", "mon_data"})
#: What ``mba_MBps`` shows for no limit.
MBPS_UNLIMITED = (1 << 32) - 1
#: The signal of a domain is this, a dot and the domain's id.
NOISY_NEIGHBOUR = "resctrl.noisy_neighbour"


class Unit(enum.Enum):
    """Unit of a bandwidth number, by vendor and mount options."""

    #: Intel: percent of the unthrottled speed of each core, in steps of ``bandwidth_gran``.
    PERCENT = "%"
    #: Intel mounted with ``mba_MBps``: MiB/s, kept by a loop in the kernel.
    MBPS = "MiB/s"
    #: AMD: an absolute rate for each L3 domain.
    EIGHTHS = "1/8 GB/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """One resource of ways: ``L2``, ``L3`` or, with CDP, ``L3CODE``."""

    name: str
    #: All ways, ``info/*/cbm_mask``.
    mask: int
    min_bits: int = 1
    #: Holes in a mask are allowed (``info/*/sparse_masks``, and AMD always).
    sparse: bool = False
    #: Ways that other hardware uses too.
    shareable: int = 0
    num_closids: int = 1
    domains: tuple[int, ...] = ()

    @property
    def ways(self) -> int:
        """The number of ways."""
        return self.mask.bit_count()

    @property
    def level(self) -> int:
        """2 or 3."""
        return int(self.name[1:2])

    def shares_with(self, resource: str) -> bool:
        """Whether another resource of ways is of the same cache, as code and data are."""
        return resource.startswith(f"L{self.level}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """One resource of bandwidth: ``MB``, or ``SMBA`` for slow memory behind CXL."""

    name: str
    unit: Unit
    gran: int = 1
    minimum: int = 0
    num_closids: int = 1
    domains: tuple[int, ...] = ()
    #: The largest value seen in any group, by domain: a fresh group is born unlimited.
    unlimited: Mapping[int, int] = field(default_factory=dict)

    @property
    def default(self) -> int:
        """The unlimited value of known kernels, for a machine where no group shows it."""
        return {Unit.PERCENT: 100, Unit.MBPS: MBPS_UNLIMITED, Unit.EIGHTHS: 2048}[self.unit]

    def free(self, domain: int) -> int:
        """The value that means no limit there."""
        if self.unit is Unit.EIGHTHS:
            return self.unlimited.get(domain, max(self.unlimited.values(), default=self.default))
        return self.default


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitoring:
    """Monitoring features of the hardware."""

    features: tuple[str, ...] = ()
    num_rmids: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """All resources of one machine. What it has not is not there."""

    caches: tuple[Cache, ...] = ()
    bandwidths: tuple[Bandwidth, ...] = ()
    monitoring: Monitoring | None = None

    def cache(self, name: str) -> Cache | None:
        """A cache resource by name."""
        return next((cache for cache in self.caches if cache.name == name), None)

    def bandwidth(self, name: str) -> Bandwidth | None:
        """A bandwidth resource by name."""
        return next((resource for resource in self.bandwidths if resource.name == name), None)

    @property
    def most_groups(self) -> int:
        """Groups that fit, the root among them: the scarcest resource decides.

        Where the machine counts each group takes an RMID as well, or mkdir fails (ENOSPC).
        """
        counts = [cache.num_closids for cache in self.caches]
        counts += [resource.num_closids for resource in self.bandwidths]
        if counts and self.monitoring is not None and self.monitoring.num_rmids:
            counts.append(self.monitoring.num_rmids)
        return min(counts, default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One group of tasks that share a class of service."""

    #: Below the mount point; the root group is empty.
    name: str
    inode: int
    schemata: str = ""
    #: ``shareable``, ``exclusive``, ``pseudo-locked`` …
    mode: str = "shareable"
    #: Names of its monitoring groups.
    monitors: tuple[str, ...] = ()

    @property
    def takes_class(self) -> bool:
        """Whether it has a class of service; one with a pseudo-locked region has given it back."""
        return self.mode != "pseudo-locked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Use of one group in one domain; ``None`` where unknown."""

    group: str
    #: Domain as the kernel names it: an L3 id, with a sub-node where SNC is on.
    domain: str
    llc_bytes: int | None = None
    total_bytes: int | None = None
    local_bytes: int | None = None
    #: Bytes per second of the total since the look before.
    total_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resctrl:
    """The mounted file system at one moment."""

    mount: str
    #: ``cdp``, ``mba_MBps`` …: those of the mount that is there, whoever made it.
    options: tuple[str, ...] = ()
    hardware: Hardware = field(default_factory=Hardware)
    #: By name; the root group is the empty one.
    groups: Mapping[str, Group] = field(default_factory=dict)
    vendor: str = ""
    writable: bool = True
    #: The machine's memory bandwidth in GB/s, from its firmware's tables; ``None`` while unknown.
    memory_gigabytes: float | None = None
    #: Workload (its cgroup) to resctrl group to the threads that it has there, at the last scan.
    homes: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    #: Workload to the files that list its threads.
    threads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: What was used, at the last look of the slow lane.
    usage: tuple[Usage, ...] = ()

    def file(self, group: str, name: str) -> str:
        """The path of a group's file."""
        return "/".join(part for part in (self.mount, group, name) if part)
