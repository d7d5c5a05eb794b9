"""The checkpoint ``memory_manager_state``: memory that the kubelet holds for containers.

Rules: those of ``cpu_state``; this file has had one format only.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import shapes
from koordlet.model import kubelet
from koordlet.model.record import dataclass
from koordlet.workloads.kubelet import checksum

NAME = "memory_manager_state"

_CHECKSUM = shapes.integer(0, 2**32 - 1)
_UINT64 = shapes.integer(0, 2**64 - 1)
_NODE = shapes.integer(0, 4095)

#: Go's names of a table's fields, in the order of the dump, to the keys of the file.
_TABLE = {
    "TotalMemSize": "total",
    "SystemReserved": "systemReserved",
    "Allocatable": "allocatable",
    "Reserved": "reserved",
    "Free": "free",
}

_Entries = dict[str, dict[str, tuple[kubelet.MemoryBlock, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory:
    """One NUMA node in the file."""

    assignments: int
    #: Type of memory to its table, by Go's field names.
    memory: Mapping[str, Mapping[str, int]]
    cells: tuple[int, ...]


def decode(text: str) -> kubelet.MemoryState:
    """The state; ``ValueError`` for a file that says nothing reliable."""
    body = shapes.mapping(shapes.parse_bytes(text.encode(errors="surrogatepass")))
    policy = shapes.text(shapes.find(body, "policyName") or "", [])
    machine = {
        _number(name): _node(shapes.mapping(node))
        for name, node in shapes.mapping(shapes.find(body, "machineState") or {}).items()
    }
    entries = _entries(shapes.find(body, "entries"))
    recorded = _CHECKSUM(shapes.find(body, "checksum") or 0, [])
    if recorded and checksum.fnv1a(dump(policy, machine, entries)) != recorded:
        msg = "the checksum is wrong: the file is incomplete or damaged"
        raise ValueError(msg)
    return kubelet.MemoryState(policy=policy, entries=entries)


def _number(name: str) -> int:
    if not (name.isascii() and name.isdigit()):
        msg = f"{shapes.shown(name)} is not a NUMA node"
        raise ValueError(msg)
    node: int = _NODE(int(name), [])
    return node


def _node(body: Mapping[str, object]) -> NodeMemory:
    tables = shapes.mapping(shapes.find(body, "memoryMap") or {})
    return NodeMemory(
        assignments=shapes.integer()(shapes.find(body, "numberOfAssignments") or 0, []),
        memory={
            kind: {
                name: _UINT64(shapes.find(shapes.mapping(table), key) or 0, [])
                for name, key in _TABLE.items()
            }
            for kind, table in tables.items()
        },
        cells=_nodes(shapes.find(body, "cells")),
    )


def _nodes(value: object) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        msg = f"expected a list of NUMA nodes, found {shapes.shown(value)}"
        raise ValueError(msg)
    return tuple(_NODE(one, []) for one in value)


def _entries(value: object) -> _Entries:
    return {
        uid: {name: _blocks(listed) for name, listed in shapes.mapping(containers).items()}
        for uid, containers in shapes.mapping(value or {}).items()
    }


def _blocks(value: object) -> tuple[kubelet.MemoryBlock, ...]:
    if not isinstance(value, list):
        msg = f"expected a list of memory blocks, found {shapes.shown(value)}"
        raise ValueError(msg)
    return tuple(
        kubelet.MemoryBlock(
            nodes=_nodes(shapes.find(one, "numaAffinity")),
            type=shapes.text(shapes.find(one, "type") or "", []),
            size=_UINT64(shapes.find(one, "size") or 0, []),
        )
        for one in map(shapes.mapping, value)
    )


def dump(policy: str, machine: Mapping[int, NodeMemory], entries: _Entries) -> str:
    """The text that the checksum is made of."""
    nodes = " ".join(f"{number}:<*>{_node_dump(node)}" for number, node in sorted(machine.items()))
    held = " ".join(
        f"{uid}:map[" + " ".join(f"{n}:[{_blocks_dump(b)}]" for n, b in sorted(one.items())) + "]"
        for uid, one in sorted(entries.items())
    )
    return (
        f"(*state.MemoryManagerCheckpoint){{PolicyName:(string){policy}"
        f" MachineState:(state.NUMANodeMap)map[{nodes}]"
        f" Entries:(state.ContainerMemoryAssignments)map[{held}] Checksum:(checksum.Checksum)0}}"
    )


def _node_dump(node: NodeMemory) -> str:
    tables = " ".join(
        f"{kind}:<*>{{" + " ".join(f"{name}:(uint64){size}" for name, size in table.items()) + "}"
        for kind, table in sorted(node.memory.items())
    )
    cells = " ".join(map(str, node.cells))
    return (
        f"{{NumberOfAssignments:(int){node.assignments}"
        f" MemoryMap:(map[v1.ResourceName]*state.MemoryTable)map[{tables}] Cells:([]int)[{cells}]}}"
    )


def _blocks_dump(blocks: tuple[kubelet.MemoryBlock, ...]) -> str:
    return " ".join(
        f"{{NUMAAffinity:([]int)[{' '.join(map(str, block.nodes))}]"
        f" Type:(v1.ResourceName){block.type} Size:(uint64){block.size}}}"
        for block in blocks
    )
