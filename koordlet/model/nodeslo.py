"""A node's strategies in force: the peer's NodeSLO, filled with the peer's defaults.

Covers: the whole value, its defaults, what a section that is switched off becomes.
Does not cover: decoding (``workloads.nodeslo``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from koordlet.model import qos as classes
from koordlet.model import strategies
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HostApplication:
    """Processes outside of any pod that the operator declared on the object."""

    name: str
    #: Directory below the cgroup root.
    group: str
    qos: classes.Qos | None = None
    band: classes.Band | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSlo:
    """Every strategy of one node."""

    #: Which object said it: ``NodeSLO``, ``slo-controller-config``; empty: nobody, all defaults.
    source: str = ""
    #: The object's revision, where it has one.
    revision: str = ""
    uid: str = ""
    threshold: strategies.Threshold
    cpu_burst: strategies.CpuBurst
    #: ``LSR``, ``LS``, ``BE``, ``SYSTEM``, and ``root`` for the whole tree.
    classes: Mapping[str, strategies.ClassQos]
    cpu_policy: str = "groupIdentity"
    network_policy: str = "tc"
    system: strategies.System
    colocation: strategies.Colocation
    applications: tuple[HostApplication, ...] = ()
    problems: tuple[str, ...] = ()
    #: The object's own words, with the last valid ones where it has none now.
    said: Mapping[str, object] = field(default_factory=dict)
    #: Where a value could not be read: paths of the object's keys.
    unread: frozenset[tuple[str, ...]] = frozenset()

    def unread_of(self, section: str, keys: Collection[str]) -> tuple[str, ...]:
        """Unreadable keys of a section, or the section as a whole."""
        places = sorted(path for path in self.unread if path[0] == section)
        return tuple(path[-1] for path in places if len(path) == 1 or path[1] in keys)


def _plain(*, wmark_ratio: int, scale: int, min_adj: int) -> strategies.MemoryQos:
    return strategies.MemoryQos(
        enable=False,
        min_limit_percent=0,
        low_limit_percent=0,
        throttling_percent=0,
        wmark_ratio=wmark_ratio,
        wmark_scale_permill=scale,
        wmark_min_adj=min_adj,
        priority_enable=0,
        priority=0,
        oom_kill_group=0,
    )


def _class(
    *, identity: int, expeller: bool, cache_end: int, memory: strategies.MemoryQos
) -> strategies.ClassQos:
    return strategies.ClassQos(
        cpu=strategies.CpuQos(
            enable=False, group_identity=identity, sched_idle=0, core_expeller=expeller
        ),
        memory=memory,
        resctrl=strategies.ResctrlQos(
            enable=False,
            cat_range_start_percent=0,
            cat_range_end_percent=cache_end,
            mba_percent=100,
        ),
        network=strategies.NetworkQos(enable=False),
    )


_LATENCY = _plain(wmark_ratio=95, scale=20, min_adj=-25)
#: What a section that is switched off amounts to.
NEUTRAL = _class(
    identity=0,
    expeller=False,
    cache_end=100,
    memory=_plain(wmark_ratio=0, scale=50, min_adj=0),
)
CLASSES: Mapping[str, strategies.ClassQos] = {
    "LSR": _class(identity=2, expeller=True, cache_end=100, memory=_LATENCY),
    "LS": _class(identity=2, expeller=True, cache_end=100, memory=_LATENCY),
    "BE": _class(
        identity=-1,
        expeller=False,
        cache_end=30,
        memory=_plain(wmark_ratio=95, scale=20, min_adj=50),
    ),
    "SYSTEM": NEUTRAL,
    "root": NEUTRAL,
}
#: A section of these classes that is not enabled is neutral; the others keep what they say.
_SWITCHED = ("LSR", "LS", "BE")

DEFAULTS = NodeSlo(
    threshold=strategies.Threshold(
        enable=False,
        cpu_suppress_threshold_percent=65,
        cpu_suppress_policy="cpuset",
        memory_evict_threshold_percent=70,
        cpu_evict_policy="evictByRealLimit",
    ),
    cpu_burst=strategies.CpuBurst(
        policy="none",
        cpu_burst_percent=1000,
        cfs_quota_burst_percent=300,
        cfs_quota_burst_period_seconds=-1,
        share_pool_threshold_percent=50,
    ),
    classes=dict.fromkeys(CLASSES, NEUTRAL),
    system=strategies.System(total_network_bandwidth=0),
    colocation=strategies.Colocation(
        enable=False,
        metric_aggregate_duration_seconds=300,
        metric_report_interval_seconds=60,
        metric_memory_collect_policy="usageWithoutPageCache",
        cpu_reclaim_threshold_percent=60,
        cpu_calculate_policy="usage",
        memory_reclaim_threshold_percent=65,
        memory_calculate_policy="usage",
        degrade_time_minutes=15,
        update_time_threshold_seconds=300,
        resource_diff_threshold=0.1,
        mid_cpu_threshold_percent=100,
        mid_memory_threshold_percent=100,
        mid_unallocated_percent=0,
        mid_reclaim_mode="default",
        mid_static_cpu_reserved_percent=0,
        mid_static_memory_reserved_percent=0,
    ),
)


def in_force(name: str, strategy: strategies.ClassQos) -> strategies.ClassQos:
    """A class over its defaults; sections that are not enabled are neutral."""
    full = strategies.overlay(CLASSES[name], strategy)
    if name not in _SWITCHED:
        return full
    return replace(
        full,
        cpu=full.cpu if full.cpu.enable else NEUTRAL.cpu,
        memory=full.memory if full.memory.enable else NEUTRAL.memory,
        blkio=full.blkio if full.blkio.enable else NEUTRAL.blkio,
        resctrl=full.resctrl if full.resctrl.enable else NEUTRAL.resctrl,
        network=full.network if full.network.enable else NEUTRAL.network,
    )
