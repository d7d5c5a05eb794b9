"""The NUMA nodes: their CPUs, memory, distances and huge pages.

Covers: memory-only and memoryless nodes, sparse ids, machines without a node directory.
Does not cover: how full the nodes are (the tick reads that).

Kernel facts: a row of ``distance`` has one number per online node in id order, so an index is no
node id (drivers/base/node.c); ``has_memory`` came with 3.8, ``has_normal_memory`` long before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from koordlet.host.fs import sysfs
from koordlet.model import cpuset, topology

_DIR = "devices/system/node"
_MEM_TOTAL = re.compile(r".*?MemTotal:\s*([0-9]{1,18})\s*kB", re.DOTALL)
_PAGES = re.compile(r"hugepages-([0-9]{1,12}kB)\Z")
_MAX_DISTANCE = 255


def scan(reader: sysfs.SysfsReader) -> tuple[tuple[topology.Node, ...], cpuset.CPUSet]:
    """All nodes in id order, and the ids of those that have memory."""
    listed = sysfs.numbered(reader.names(reader.host.sys(_DIR)), "node")
    online = reader.cpus(reader.host.sys(_DIR, "online"))
    if not online:
        online = listed
    elif listed - online:
        reader.warn(
            f"/sys/{_DIR}/online: '{online}' omits the nodes of the directories {listed - online}"
        )
        listed &= online
    if online - listed:
        reader.warn(f"/sys/{_DIR}/online: '{online}' names nodes without directory")
    nodes = tuple(_node(reader, node, online, listed) for node in listed)
    return nodes, _with_memory(reader, nodes)


def amounts(
    reader: sysfs.SysfsReader, nodes: Sequence[topology.Node]
) -> tuple[tuple[topology.Node, ...], cpuset.CPUSet]:
    """The same nodes with the memory and huge pages that they have now, as ``scan``."""
    fresh = tuple(
        replace(
            node,
            memory_bytes=_memory(reader, f"{_DIR}/node{node.node}"),
            hugepages=_hugepages(reader, f"{_DIR}/node{node.node}"),
        )
        for node in nodes
    )
    return fresh, _with_memory(reader, fresh)


def assign(
    reader: sysfs.SysfsReader, nodes: Sequence[topology.Node]
) -> tuple[dict[int, int], dict[int, frozenset[int]]]:
    """The node of each CPU, and of those that more than one claims all of these.

    A kernel that makes nodes up (``numa=fake``) lists a CPU in each that lies on its own.
    """
    seen = twice = 0
    for node in nodes:
        twice |= seen & node.cpus.bits
        seen |= node.cpus.bits
    owner: dict[int, int] = {}
    claims: dict[int, frozenset[int]] = {}
    for node in nodes:
        both = cpuset.CPUSet(node.cpus.bits & twice)
        if both:
            where = reader.host.sys(_DIR, f"node{node.node}", "cpulist")
            reader.damage(where, str(node.cpus), f"CPUs {both} are in more than one node")
            claims.update((cpu, claims.get(cpu, frozenset()) | {node.node}) for cpu in both)
        for cpu in cpuset.CPUSet(node.cpus.bits & ~twice):
            owner[cpu] = node.node
    return owner, claims


def _node(
    reader: sysfs.SysfsReader, node: int, online: cpuset.CPUSet, listed: cpuset.CPUSet
) -> topology.Node:
    at = f"{_DIR}/node{node}"
    cpus = reader.cpus(reader.host.sys(at, "cpulist"))
    if cpus is None:
        cpus = reader.cpus(reader.host.sys(at, "cpumap"), mask=True)
    if cpus is None:
        # Older still, or damaged: the links to the CPUs remain.
        cpus = sysfs.numbered(reader.names(reader.host.sys(at)), "cpu")
    return topology.Node(
        node=node,
        cpus=cpus,
        memory_bytes=_memory(reader, at),
        distances=_distances(reader, at, online, listed),
        hugepages=_hugepages(reader, at),
    )


def _memory(reader: sysfs.SysfsReader, at: str) -> int | None:
    match = reader.match(reader.host.sys(at, "meminfo"), _MEM_TOTAL, "has no MemTotal")
    return int(match[1]) << 10 if match else None


def _distances(
    reader: sysfs.SysfsReader, at: str, online: cpuset.CPUSet, listed: cpuset.CPUSet
) -> tuple[int, ...]:
    """The row cut to the nodes that we list; empty when unknown."""
    path = reader.host.sys(at, "distance")
    text = reader.text(path)
    if text is None:
        return ()
    words = text.split()
    if not all(w.isascii() and w.isdigit() and 0 < int(w[:4]) <= _MAX_DISTANCE for w in words):
        reader.damage(path, text, "not a row of distances")
        return ()
    row = tuple(int(word) for word in words)
    for columns in (listed, online, *_more(reader)):
        if len(row) == len(columns) and listed <= columns:
            return tuple(d for node, d in zip(columns, row, strict=True) if node in listed)
    reader.damage(path, text, f"expected a distance for each of {len(online)} nodes")
    return ()


def _more(reader: sysfs.SysfsReader) -> Iterator[cpuset.CPUSet]:
    """Nodes that a row may be about beside those that run, where it is longer than they are.

    A table of the firmware has a column for a node that is offline, too, such as node 0.
    """
    yield sysfs.numbered(reader.names(reader.host.sys(_DIR)), "node")
    possible = reader.cpus(reader.host.sys(_DIR, "possible"))
    if possible:
        yield possible
        yield cpuset.CPUSet.span(0, max(possible))


def _hugepages(reader: sysfs.SysfsReader, at: str) -> dict[str, topology.HugePages]:
    pages: dict[str, topology.HugePages] = {}
    base = f"{at}/hugepages"
    for name in reader.names(reader.host.sys(base)):
        match = _PAGES.match(name)
        if match is None:
            continue
        total = reader.integer(reader.host.sys(base, name, "nr_hugepages"))
        free = reader.integer(reader.host.sys(base, name, "free_hugepages"))
        if total is not None and free is not None:
            pages[match[1]] = topology.HugePages(total=total, free=free)
    return pages


def _with_memory(reader: sysfs.SysfsReader, nodes: Sequence[topology.Node]) -> cpuset.CPUSet:
    listed = cpuset.CPUSet.of(node.node for node in nodes)
    for name in ("has_memory", "has_normal_memory"):
        path = reader.host.sys(_DIR, name)
        cpus = reader.cpus(path)
        if cpus and cpus <= listed:
            return cpus
        if cpus:
            reader.damage(path, str(cpus), f"the nodes are {listed}")
    return cpuset.CPUSet.of(node.node for node in nodes if node.memory_bytes)
