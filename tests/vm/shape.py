"""The machine shapes as data, and the QEMU arguments that make one.

Covers: sockets, cores, threads, NUMA nodes, memory, distances, CPUs that are absent or offline, and
what the guest's kernel must then say of itself (the tests compare the two).
Does not cover: devices and the kernel (``qemu``), booting (``machine``).

Rules:
1. A shape says every number once; sets that follow from the numbers are properties.
2. CPUs are numbered as the firmware lists them: threads of a core are neighbours (0,1), then the
   cores of a socket, then the sockets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

#: What the kernel assumes between two nodes that no table speaks of, and within one.
REMOTE, LOCAL = 20, 10


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A NUMA node; either of the two may be empty, as on real machines."""

    memory_mib: int
    cpus: range = range(0)


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """One machine. ``present`` and ``online`` are counts from CPU 0; None means all of them."""

    name: str
    note: str
    sockets: int
    cores: int
    threads: int
    nodes: tuple[Node, ...]
    distances: tuple[tuple[int, ...], ...] = ()
    present: int | None = None
    online: int | None = None

    @property
    def possible_cpus(self) -> range:
        """CPUs that the board has room for."""
        return range(self.sockets * self.cores * self.threads)

    @property
    def present_cpus(self) -> range:
        """CPUs that are plugged in."""
        return self.possible_cpus[: self.present]

    @property
    def online_cpus(self) -> range:
        """CPUs that the kernel schedules on."""
        return self.possible_cpus[: self.online or self.present]

    @property
    def memory_mib(self) -> int:
        """Memory of all nodes."""
        return sum(node.memory_mib for node in self.nodes)

    def socket_of(self, cpu: int) -> int:
        """The socket (physical package) that holds a CPU."""
        return cpu // (self.cores * self.threads)

    def siblings_of(self, cpu: int) -> range:
        """The online threads of the core that a CPU belongs to."""
        first = cpu - cpu % self.threads
        return range(first, min(first + self.threads, self.online_cpus.stop))

    def node_of(self, cpu: int) -> int:
        """The NUMA node that a CPU belongs to."""
        return next(i for i, node in enumerate(self.nodes) if cpu in node.cpus)

    def distance(self, node: int, other: int) -> int:
        """What ``node<node>/distance`` says of ``other``."""
        if self.distances:
            return self.distances[node][other]
        return LOCAL if node == other else REMOTE

    def qemu(self) -> list[str]:
        """The QEMU arguments for processors and memory (not the processor's model)."""
        plugged, room = len(self.present_cpus), len(self.possible_cpus)
        parts = f"sockets={self.sockets},cores={self.cores},threads={self.threads}"
        args = ["-smp", f"{plugged},maxcpus={room},{parts}", "-m", f"{self.memory_mib}M"]
        for i, node in enumerate(self.nodes):
            option = f"node,nodeid={i}"
            if node.cpus:
                option += f",cpus={node.cpus[0]}-{node.cpus[-1]}"
            if node.memory_mib:
                args += ["-object", f"memory-backend-ram,id=ram{i},size={node.memory_mib}M"]
                option += f",memdev=ram{i}"
            args += ["-numa", option]
        for source, other, value in self._distances():
            args += ["-numa", f"dist,src={source},dst={other},val={value}"]
        return args

    def append(self) -> list[str]:
        """Kernel command line words that the shape needs."""
        return [] if self.online is None else [f"maxcpus={self.online}"]

    def _distances(self) -> Iterator[tuple[int, int, int]]:
        for source, row in enumerate(self.distances):
            for other, value in enumerate(row):
                if source != other:
                    yield source, other, value


def _shapes(*shapes: Shape) -> Mapping[str, Shape]:
    return {shape.name: shape for shape in shapes}


#: All shapes by name.
SHAPES = _shapes(
    Shape("1s1c", "1 CPU, 1 node", 1, 1, 1, (Node(1024, range(1)),)),
    Shape("1s2c", "1 socket, 2 cores, no SMT, 1 node", 1, 2, 1, (Node(1024, range(2)),)),
    Shape(
        "2s8t",
        "2 sockets x 2 cores x SMT2, 2 nodes",
        sockets=2,
        cores=2,
        threads=2,
        nodes=(Node(768, range(4)), Node(768, range(4, 8))),
    ),
    Shape(
        "4n16",
        "2 sockets x 4 cores x SMT2, 2 nodes in each socket, distances 10/12/20/22",
        sockets=2,
        cores=4,
        threads=2,
        nodes=tuple(Node(512, range(first, first + 4)) for first in range(0, 16, 4)),
        distances=((10, 12, 20, 22), (12, 10, 22, 20), (20, 22, 10, 12), (22, 20, 12, 10)),
    ),
    Shape(
        "offline",
        "2 sockets x 4 cores x SMT2, possible 0-15, present 0-11, online 0-9",
        sockets=2,
        cores=4,
        threads=2,
        nodes=(Node(768, range(8)), Node(768, range(8, 16))),
        present=12,
        online=10,
    ),
    Shape(
        "memless",
        "2s8t whose node 1 has CPUs and no memory, and node 2 memory and no CPUs",
        sockets=2,
        cores=2,
        threads=2,
        nodes=(Node(768, range(4)), Node(0, range(4, 8)), Node(768)),
    ),
)


def named(name: str) -> Shape:
    """The shape with this name; ValueError lists the names there are."""
    try:
        return SHAPES[name]
    except KeyError:
        raise ValueError(f"no shape {name!r}; there are {', '.join(SHAPES)}") from None
