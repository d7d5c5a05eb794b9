"""Choosing concrete CPUs from a number: packed, deterministic.

Covers: ``take``. Does not cover: bind policies and NUMA hints, which come with CPU orchestration.

The packing equals the kubelet's "NUMA packed" one, so that a node keeps its reserved CPUs when
koordlet replaces another agent. Sort keys, in this order:
* whole free sockets: (free CPUs ascending, socket number)
* whole free NUMA nodes: their socket's place in that order, then (free CPUs ascending, node id)
* whole free cores: their node's place in that order, then (free CPUs ascending, core number)
* single CPUs: their core's place in that order, then CPU number
Where there are as many sockets as NUMA nodes, or more, nodes come before sockets.
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.model import cpuset, topology

Key = tuple[int, ...]
#: Which group of a level a CPU is in.
Level = Callable[[topology.Cpu], int]


def take(machine: topology.Topology, available: cpuset.CPUSet, count: int) -> cpuset.CPUSet | None:
    """``count`` CPUs out of ``available``, or ``None`` when there are not that many."""
    if count > len(available):
        return None
    packing = _Packing(machine, available, count)
    for depth, level in enumerate(packing.levels, 1):
        packing.take_whole(level, depth)
    packing.take_singles()
    return packing.taken


def _known(number: int | None) -> int:
    return -1 if number is None else number


def _socket(cpu: topology.Cpu) -> int:
    return _known(cpu.socket)


def _node(cpu: topology.Cpu) -> int:
    return _known(cpu.node)


def _core(cpu: topology.Cpu) -> int:
    """A CPU of unknown core stands alone, under a number that no core has."""
    return cpuset.MAX_CPUS + cpu.cpu if cpu.core is None else cpu.core


class _Packing:
    """One run of ``take``."""

    def __init__(self, machine: topology.Topology, available: cpuset.CPUSet, count: int) -> None:
        self.cpus = [cpu for cpu in machine.cpus if cpu.online]
        sockets, nodes = (len(set(map(level, self.cpus))) for level in (_socket, _node))
        above = (_node, _socket) if sockets >= nodes else (_socket, _node)
        self.levels: tuple[Level, ...] = (*above, _core)
        self.free = available
        self.left = count
        self.taken = cpuset.CPUSet()

    def _groups(self, of: Level) -> dict[int, tuple[int, int]]:
        """Group number to (all CPUs, free CPUs) as bitmaps."""
        groups: dict[int, tuple[int, int]] = {}
        for cpu in self.cpus:
            whole, free = groups.get(of(cpu), (0, 0))
            bit = 1 << cpu.cpu
            groups[of(cpu)] = (whole | bit, free | (bit if cpu.cpu in self.free else 0))
        return groups

    def _order(self) -> dict[int, Key]:
        """The sort key of each free CPU, by every level's free count and number."""
        keys: dict[int, Key] = {}
        counts = [
            {number: free.bit_count() for number, (_, free) in self._groups(level).items()}
            for level in self.levels
        ]
        for cpu in self.cpus:
            key: Key = ()
            for level, count in zip(self.levels, counts, strict=True):
                key += (count[level(cpu)], level(cpu))
            keys[cpu.cpu] = (*key, cpu.cpu)
        return keys

    def take_whole(self, of: Level, depth: int) -> None:
        """Take groups that are entirely free, in order, while one still fits.

        ``depth`` is how many levels of the sort key tell two groups of this level apart.
        """
        keys = self._order()
        whole = [
            cpuset.CPUSet(everything)
            for everything, free in self._groups(of).values()
            if everything == free
        ]
        for group in sorted(whole, key=lambda group: keys[group.first][: 2 * depth]):
            if len(group) <= self.left:
                self._take(group)

    def take_singles(self) -> None:
        """Take what is still missing CPU by CPU: partly used cores fill up first."""
        keys = self._order()
        for cpu in sorted(self.free, key=lambda cpu: keys.get(cpu, (cpu,))):
            if self.left == 0:
                return
            self._take(cpuset.CPUSet.of([cpu]))

    def _take(self, group: cpuset.CPUSet) -> None:
        self.taken |= group
        self.free -= group
        self.left -= len(group)
