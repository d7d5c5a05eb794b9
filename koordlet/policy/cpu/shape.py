"""The topology as bitmaps, for choosing CPUs fast.

Covers: cores, L3 domains, NUMA nodes and sockets as integers with one bit per CPU, built once.
Does not cover: choosing (``accumulator``), what a topology says (``model.topology``).
"""

from __future__ import annotations

from koordlet.model import topology
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Core:
    """Online SMT siblings."""

    number: int
    bits: int
    #: Numbers of the node and the socket in ``Shape``; -1 where the machine does not say.
    node: int
    socket: int


@dataclass(frozen=True, slots=True)
class Shape:
    """One machine. Offline CPUs are not in it."""

    cores: tuple[Core, ...]
    #: NUMA node, socket and L3 domain to their CPUs, by number.
    nodes: dict[int, int]
    sockets: dict[int, int]
    l3: tuple[int, ...]
    #: Distance from a node to another, by (from, to).
    distances: dict[tuple[int, int], int]
    #: CPUs of the fullest core.
    threads: int

    @classmethod
    def of(cls, machine: topology.Topology) -> Shape:
        """The shape of a topology. Cost: one walk over its CPUs."""
        cores: dict[tuple[int, int, int], tuple[int, int, int]] = {}
        nodes: dict[int, int] = {}
        sockets: dict[int, int] = {}
        l3: dict[tuple[int, int, int], int] = {}
        for cpu in machine.cpus:
            if not cpu.online:
                continue
            bit = 1 << cpu.cpu
            node, socket = _known(cpu.node), _known(cpu.socket)
            # Socket by socket, as the co-location peers number them: one node may have several. A
            # CPU of unknown core stands alone.
            key = (socket, 1, cpu.cpu) if cpu.core is None else (socket, 0, cpu.core)
            cores[key] = (cores.get(key, (0, 0, 0))[0] | bit, node, socket)
            nodes[node] = nodes.get(node, 0) | bit
            sockets[socket] = sockets.get(socket, 0) | bit
            # A domain that crosses nodes (sub-NUMA clusters) is a domain in each of them. Where no
            # L3 is known, it is what the node has of the socket.
            domain = (node, socket, _known(cpu.l3))
            l3[domain] = l3.get(domain, 0) | bit
        every = tuple(Core(number, *cores[key]) for number, key in enumerate(sorted(cores)))
        return cls(
            cores=every,
            nodes=nodes,
            sockets=sockets,
            l3=tuple(l3[key] for key in sorted(l3)),
            distances=_distances(machine),
            threads=max((core.bits.bit_count() for core in every), default=1),
        )

    @property
    def online(self) -> int:
        """All online CPUs."""
        bits = 0
        for core in self.cores:
            bits |= core.bits
        return bits

    def whole(self, free: int, within: int = -1) -> int:
        """The free CPUs whose core is entirely free, and entirely within."""
        bits = 0
        for core in self.cores:
            if core.bits & free & within == core.bits:
                bits |= core.bits
        return bits

    def far(self, node: int, other: int) -> int:
        """The distance between two nodes; the kernel's remote default where it is not known."""
        return self.distances.get((node, other), 10 if node == other else 20)


def _known(number: int | None) -> int:
    return -1 if number is None else number


def _distances(machine: topology.Topology) -> dict[tuple[int, int], int]:
    ids = [node.node for node in machine.nodes]
    return {
        (node.node, other): far
        for node in machine.nodes
        for other, far in zip(ids, node.distances, strict=False)
    }


def lowest(bits: int, count: int) -> int:
    """The ``count`` lowest CPUs of a bitmap; all when there are fewer."""
    taken = 0
    for _ in range(min(count, bits.bit_count())):
        low = bits & -bits
        taken |= low
        bits ^= low
    return taken
