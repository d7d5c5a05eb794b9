"""The caches: every instance with what it is and who shares it.

Covers: all levels from ``cpuN/cache/indexM``, and the L3 that each CPU uses.
Does not cover: what is allocated in them (resctrl).

Kernel facts (Documentation/ABI/testing/sysfs-devices-system-cpu): ``id`` is unique per level and
type, and is resctrl's domain; ``shared_cpu_list`` came with 2.6.25, before it only the map; virtual
machines often show no L3, some kernels no cache directory at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from koordlet.host.fs import sysfs
from koordlet.host.topology import cpu_groups
from koordlet.model import cpuset, topology
from koordlet.model.record import dataclass

_L3 = 3
_MOST = 9
#: Two caches of one level.
_PAIR = {"Data", "Instruction"}


#: In order of preference; the second word says whether it is a bitmap.
_SHARED = (("shared_cpu_list", False), ("shared_cpu_map", True))
#: What is before the first cache.
_NONE = topology.Cache(level=0, type="", id=None, bytes=None, ways=None, cpus=cpuset.CPUSet())


@dataclass(slots=True)
class Scan:
    """Filled CPU by CPU, then closed with ``finish``."""

    reader: sysfs.SysfsReader
    online: cpuset.CPUSet
    #: Descriptions without CPUs, each read once for all CPUs that share the instance.
    _kinds: dict[tuple[str, int], topology.Cache] = field(default_factory=dict)
    _found: dict[tuple[int, str, int], topology.Cache] = field(default_factory=dict)
    _l3: dict[int, tuple[cpuset.CPUSet, int | None]] = field(default_factory=dict)
    _by_id: dict[int, list[int]] = field(default_factory=dict)

    def add(self, cpu: int) -> None:
        """Read the caches of one online CPU."""
        base = f"devices/system/cpu/cpu{cpu}/cache"
        names = self.reader.names(self.reader.host.sys(base))
        before: topology.Cache | None = _NONE
        for number, index in enumerate(sysfs.numbered(names, "index")):
            # What is nearer to the CPU comes first: from a gap on, the order says nothing.
            before = before if number == index else None
            before = self._add_index(cpu, f"{base}/index{index}", f"index{index}", before)

    def _add_index(
        self, cpu: int, where: str, index: str, before: topology.Cache | None
    ) -> topology.Cache | None:
        """Add a cache instance; ``None`` if its kind is unknown."""
        shared = self.reader.siblings(cpu, where, _SHARED, self.online)
        key = (index, shared.bits) if shared else (where, 0)
        # A description that cannot be read here is tried again at the next CPU that shares it.
        kind = self._kinds.get(key) or self._kind(where, before)
        if kind is None:
            return None
        self._kinds[key] = kind
        if shared:
            self._found[kind.level, kind.type, shared.bits] = kind
        if kind.level == _L3 and kind.type != "Instruction":
            if shared:
                self._l3[cpu] = (shared, kind.id)
            elif kind.id is not None:
                self._by_id.setdefault(kind.id, []).append(cpu)
        return kind

    def _kind(self, where: str, before: topology.Cache | None) -> topology.Cache | None:
        read = self.reader
        at = read.host.sys
        level, what = read.integer(at(where, "level")), read.text(at(where, "type"))
        if level is None or not 1 <= level <= _MOST:
            if before is None or not what:
                return None
            # The kernel lists a level after the one before (drivers/base/cacheinfo.c).
            level = before.level + ({before.type, what} != _PAIR)
            read.warn(
                f"{at(where, 'level')}: has no level; assumed {level} from the order of the caches"
            )
        return topology.Cache(
            level=level,
            type=what or "Unified",
            id=read.ident(at(where, "id")),
            bytes=read.size(at(where, "size")),
            ways=read.integer(at(where, "ways_of_associativity")),
            cpus=cpuset.CPUSet(),
        )

    def finish(self) -> tuple[tuple[topology.Cache, ...], dict[str, Mapping[int, int]]]:
        """All instances, and for each CPU the number (``l3``) and the kernel's id of its L3."""
        claims = {cpu: shared for cpu, (shared, _) in self._l3.items()}
        for members in self._by_id.values():
            claims.update(dict.fromkeys(members, cpuset.CPUSet.of(members)))
        formed = cpu_groups.form(claims)
        for cpu in formed.refused:
            self.reader.warn(
                f"/sys/devices/system/cpu/cpu{cpu}/cache: its L3 is shared by '{claims[cpu]}',"
                " which other CPUs contradict"
            )
        ids = {cpu: cache_id for cpu, (_, cache_id) in self._l3.items() if cache_id is not None}
        for cache_id, members in self._by_id.items():
            ids.update(dict.fromkeys(members, cache_id))
        instances = [
            replace(kind, cpus=cpuset.CPUSet(bits)) for (_, _, bits), kind in self._found.items()
        ]
        instances.sort(key=lambda cache: (cache.level, cache.type, cache.cpus.first))
        return tuple(instances), {"l3": formed.number, "l3_id": ids}
