"""What the stand-in machine is made of: CPUs, nodes, memory, the age of its kernel.

Covers: the shape and what of it is online. Does not cover: how sysfs tells it (``sysfs``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from koordlet.model.cpuset import CPUSet, union


@dataclasses.dataclass
class Hardware:
    """The machine below the kernel; ``online`` changes, the rest does not."""

    possible: CPUSet
    present: CPUSet
    online: CPUSet
    #: NUMA node to its CPUs, online or not.
    nodes: Mapping[int, CPUSet]
    #: Nodes that have memory.
    memory_nodes: CPUSet
    #: Threads per core.
    threads: int
    #: True when the second threads are numbered after all first ones (0,8), as on servers.
    split: bool
    #: Bytes of memory of each node that has some.
    node_bytes: int
    #: Major and minor version of the kernel whose manners are shown.
    kernel: tuple[int, int]
    vendor: str = "GenuineIntel"
    flags: str = "fpu"
    #: Block devices, by MAJOR:MINOR.
    disks: set[str] = dataclasses.field(default_factory=set)
    #: Beyond those of every machine.
    file_systems: tuple[str, ...] = ()

    @property
    def cpu_ids(self) -> int:
        """``nr_cpu_ids``: one more than the highest possible CPU."""
        return self.possible.last + 1

    @property
    def node_set(self) -> CPUSet:
        """All nodes."""
        return CPUSet.of(self.nodes)

    def node_of(self, cpu: int) -> int:
        """The node of a CPU; 0 when none claims it."""
        return next((node for node, cpus in self.nodes.items() if cpu in cpus), 0)

    def siblings(self, cpu: int) -> CPUSet:
        """The threads of the CPU's core that are online."""
        return CPUSet.of(
            sibling
            for sibling in self.online
            if self.core(sibling) == self.core(cpu) and self.near(sibling, cpu)
        )

    def near(self, cpu: int, other: int) -> bool:
        """Whether two CPUs are in the same package (a package is a node here)."""
        return self.node_of(cpu) == self.node_of(other)

    def core(self, cpu: int) -> int:
        """``core_id``: unique within a package."""
        mates = sorted(self.nodes.get(self.node_of(cpu), self.possible))
        index = mates.index(cpu)
        if self.split:
            return index % max(1, len(mates) // self.threads)
        return index // self.threads


def hardware(
    cpus: str,
    nodes: Mapping[int, str] | None,
    *,
    memory_nodes: str | None = None,
    possible: str | None = None,
    present: str | None = None,
    threads: int = 1,
    split: bool = False,
    node_bytes: int = 16 << 30,
    kernel: tuple[int, int] = (6, 1),
) -> Hardware:
    """A machine; ``cpus`` are those online, all possible ones unless told otherwise."""
    online = CPUSet.parse(cpus)
    shape = {node: CPUSet.parse(text) for node, text in (nodes or {0: possible or cpus}).items()}
    everything = CPUSet.parse(possible) if possible else union([online, *shape.values()])
    return Hardware(
        possible=everything,
        present=CPUSet.parse(present) if present else everything,
        online=online,
        nodes=shape,
        memory_nodes=CPUSet.parse(memory_nodes) if memory_nodes else CPUSet.of(shape),
        threads=threads,
        split=split,
        node_bytes=node_bytes,
        kernel=kernel,
    )
