"""A node's strategies in force: the peer's NodeSLO, filled with the peer's defaults.

Covers: the whole value, its defaults, what a section that is switched off becomes.
Does not cover: decoding (``workloads.nodeslo``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace

from koordlet.model import qos as classes
from koordlet.model import strategies, strategy_field
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
    spec: Mapping[str, object] = field(default_factory=dict)
    #: Where a value could not be read: paths of the object's keys.
    unread: frozenset[tuple[str, ...]] = frozenset()

    def unread_of(self, section: str, keys: Collection[str]) -> tuple[str, ...]:
        """Unreadable keys of a section, or the section as a whole."""
        places = sorted(path for path in self.unread if path[0] == section)
        return tuple(path[-1] for path in places if len(path) == 1 or path[1] in keys)


#: What a section that is switched off amounts to.
NEUTRAL = strategy_field.defaults(strategies.ClassQos)


def _class(
    identity: int, *, expeller: bool, min_adj: int, cache_end: int = 100
) -> strategies.ClassQos:
    cpu = strategies.CpuQos(group_identity=identity, core_expeller=expeller)
    memory = strategies.MemoryQos(wmark_ratio=95, wmark_scale_permill=20, wmark_min_adj=min_adj)
    resctrl = strategies.ResctrlQos(cat_range_end_percent=cache_end)
    own = strategies.ClassQos(cpu=cpu, memory=memory, resctrl=resctrl)
    return strategies.overlay(NEUTRAL, own)


CLASSES: Mapping[str, strategies.ClassQos] = {
    "LSR": _class(2, expeller=True, min_adj=-25),
    "LS": _class(2, expeller=True, min_adj=-25),
    "BE": _class(-1, expeller=False, min_adj=50, cache_end=30),
    "SYSTEM": NEUTRAL,
    "root": NEUTRAL,
}
#: Our name of a strategy to that of its section.
SECTIONS: Mapping[str, str] = {
    "threshold": "resourceUsedThresholdWithBE",
    "cpu_burst": "cpuBurstStrategy",
    "system": "systemStrategy",
    "colocation": "colocation-config",
}
#: Our name of a class to the object's.
KEYS: Mapping[str, str] = {
    "LSR": "lsrClass",
    "LS": "lsClass",
    "BE": "beClass",
    "SYSTEM": "systemClass",
    "root": "cgroupRoot",
}
#: A section of these classes that is not enabled is neutral; the others keep what they say.
_SWITCHED = ("LSR", "LS", "BE")

DEFAULTS = NodeSlo(
    threshold=strategy_field.defaults(strategies.Threshold),
    cpu_burst=strategy_field.defaults(strategies.CpuBurst),
    classes=dict.fromkeys(CLASSES, NEUTRAL),
    system=strategy_field.defaults(strategies.System),
    colocation=strategy_field.defaults(strategies.Colocation),
)


def in_force(name: str, strategy: strategies.ClassQos) -> strategies.ClassQos:
    """A class over its defaults; sections that are not enabled are neutral."""
    full = strategies.overlay(CLASSES[name], strategy)
    if name not in _SWITCHED:
        return full
    parts = strategy_field.rows(strategies.ClassQos)
    off = [part for part in parts if not getattr(full, part).enable]
    return replace(full, **{part: getattr(NEUTRAL, part) for part in off})
