"""The machine: CPUs, cores, sockets, NUMA nodes, caches, as one immutable value.

Covers: what was found, with ``None`` where the kernel did not say.
Does not cover: finding it (``host.topology.discovery``), who owns which CPU (``model.ledger``).

``core``, ``socket`` and ``l3`` are group numbers: dense, ordered by lowest CPU, so they are right
where raw ids repeat across packages, are sparse, or are missing. The raw ids are kept beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model import cpuset
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """One present CPU; every unknown column is ``None``, also for an offline CPU."""

    cpu: int
    online: bool = True
    core: int | None = None
    socket: int | None = None
    #: The kernel's own node id.
    node: int | None = None
    l3: int | None = None
    core_id: int | None = None
    package_id: int | None = None
    die_id: int | None = None
    cluster_id: int | None = None
    #: The cache id of the L3: this is resctrl's domain id.
    l3_id: int | None = None
    capacity: int | None = None
    max_khz: int | None = None
    book_id: int | None = None
    drawer_id: int | None = None
    governor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HugePages:
    """One page size of a node, in pages."""

    total: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One NUMA node, also one without memory or without CPUs."""

    node: int
    cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    memory_bytes: int | None = None
    #: In the order of ``Topology.nodes``, which is the order of online node ids.
    distances: tuple[int, ...] = ()
    #: Page size as the kernel names it (``2048kB``) to its pages.
    hugepages: Mapping[str, HugePages] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """One cache instance and the CPUs that share it."""

    level: int
    type: str
    id: int | None
    bytes: int | None
    ways: int | None
    cpus: cpuset.CPUSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One PCI device with the node that it hangs on."""

    address: str
    #: The 24 bits as the kernel prints them: ``0x020000``.
    device_class: str
    #: What it is in a word: gpu, display, network, nvme, storage, accelerator, memory.
    kind: str | None = None
    driver: str | None = None
    node: int | None = None
    name: str | None = None
    #: Of a GPU, as far as its driver tells: its own memory, its number, its UUID.
    memory_bytes: int | None = None
    minor: int | None = None
    uuid: str | None = None
    model: str | None = None
    driver_version: str | None = None
    #: The driver has put it out of use (its memory or its link is broken).
    excluded: bool = False
    #: Its name among the RDMA devices, and its virtual functions in the order of their numbers.
    rdma: str | None = None
    functions: tuple[str, ...] = ()
    #: A virtual function of another one.
    virtual: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The whole machine at one moment. Equal machines are equal values."""

    cpus: tuple[Cpu, ...] = ()
    nodes: tuple[Node, ...] = ()
    caches: tuple[Cache, ...] = ()
    devices: tuple[Device, ...] = ()
    possible: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    present: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    online: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    offline: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    isolated: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    nohz_full: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    #: Nodes that have memory: v1 refuses any other node in ``cpuset.mems``.
    memory_nodes: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    smt: str | None = None
    #: Whether CPUs may run above their base frequency.
    turbo: bool | None = None
    vendor: str | None = None
    model_name: str | None = None
    arch: str | None = None
    flags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    #: Files that gave no answer: what they say is missing here, or is what it was before.
    unread: frozenset[str] = frozenset()

    def by_node(
        self, cpus: cpuset.CPUSet
    ) -> tuple[tuple[int | None, int | None, cpuset.CPUSet], ...]:
        """Split a set by NUMA node: (socket, node, CPUs), ordered by lowest CPU.

        CPUs without a node come together under ``None``, so nothing is ever lost.
        """
        parts: dict[int | None, int] = {}
        sockets: dict[int | None, int | None] = {}
        for cpu in self.cpus:
            if cpu.cpu in cpus:
                parts[cpu.node] = parts.get(cpu.node, 0) | 1 << cpu.cpu
                sockets.setdefault(cpu.node, cpu.socket)
        rows = [(sockets[node], node, cpuset.CPUSet(bits)) for node, bits in parts.items()]
        return tuple(sorted(rows, key=lambda row: row[2].first))

    def cores(self) -> tuple[cpuset.CPUSet, ...]:
        """Online SMT siblings, ordered by core number; a CPU of unknown core stands alone."""
        cores: dict[tuple[int, int], int] = {}
        for cpu in self.cpus:
            if cpu.online:
                key = (0, cpu.core) if cpu.core is not None else (1, cpu.cpu)
                cores[key] = cores.get(key, 0) | 1 << cpu.cpu
        return tuple(cpuset.CPUSet(cores[key]) for key in sorted(cores))
