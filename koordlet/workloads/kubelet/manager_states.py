"""The kubelet's checkpoints: CPUs and memory that its static policies hold.

Rules:
1. A wrong checksum refuses the file: half of it may be of before, half of after. None, or zero, is
   accepted as the kubelet accepts it from older versions.
2. Keys are matched as Go matches them: older kubelets wrote ``defaultCPUSet``.
3. The oldest format of CPUs names containers by id, without pods: it is refused with that reason.
4. An entry that is no CPU list refuses the file: to leave it out would free CPUs that are held.
5. From 1.36 on a kubelet may hold CPUs and memory for whole pods (PodLevelResourceManagers). Its
   dump has a field more, also where no pod holds anything and the file does not show it. Where one
   does, the checksum is not looked at: that gate is alpha there, and later kubelets have rule 6.
6. Later kubelets have everything in a text, with a checksum of its own, and read nothing else: what
   stands beside it is for older ones, and lacks the memory of whole pods.

The checksum is FNV-1a in 32 bits (draft-eastlake-fnv) over a text dump of the structure with the
checksum zero: every value with its Go type, keys of maps sorted.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import shapes
from koordlet.model import cpuset, kubelet
from koordlet.model.record import dataclass

CPU_STATE = "cpu_manager_state"
MEMORY_STATE = "memory_manager_state"

_CHECKSUM = shapes.integer(0, 2**32 - 1)
_UINT64 = shapes.integer(0, 2**64 - 1)
_NODE = shapes.integer(0, 4095)
_DAMAGED = "the checksum is wrong: the file is incomplete or damaged"

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


def _body(text: str, *texts: str) -> tuple[Mapping[str, object], list[str]]:
    """What counts of a file (rule 6), and some of its texts."""
    body = shapes.mapping(shapes.parse_bytes(text.encode(errors="surrogatepass")))
    inner = shapes.text(shapes.find(body, "data") or "", [])
    if inner:
        if fnv1a(f"(string){inner}") != _CHECKSUM(shapes.find(body, "dataChecksum") or 0, []):
            raise ValueError(_DAMAGED)
        body = shapes.mapping(shapes.parse_bytes(inner.encode(errors="surrogatepass")))
    return body, [shapes.text(shapes.find(body, key) or "", []) for key in texts]


def _check(body: Mapping[str, object], dumped: str, older: str, of_pods: str) -> None:
    """Rules 1 and 5: ``older`` is Go's name of the type without, ``of_pods`` that of the field."""
    recorded = _CHECKSUM(shapes.find(body, "checksum") or 0, [])
    head, checksum, tail = dumped.rpartition(" Checksum:")
    spellings = (
        dumped,
        f"(*state.{older}){dumped[dumped.index('{') :]}",
        f"{head} PodEntries:(state.{of_pods})map[]{checksum}{tail}",
    )
    if recorded and recorded not in map(fnv1a, spellings):
        raise ValueError(_DAMAGED)


def fnv1a(text: str) -> int:
    """32 bits of FNV-1a over the text's UTF-8."""
    checksum = 0x811C9DC5
    for byte in text.encode(errors="surrogatepass"):
        checksum = (checksum ^ byte) * 0x01000193 & 0xFFFFFFFF
    return checksum


def cpus(text: str) -> kubelet.CpuState:
    """The CPU manager's state; ``ValueError`` for a file that says nothing reliable."""
    body, (policy, default) = _body(text, "policyName", "defaultCpuSet")
    entries = _cpu_entries(shapes.find(body, "entries"))
    of_pods = shapes.find(body, "podEntries")
    if of_pods is None:
        dumped = cpu_dump(policy, default, entries)
        _check(body, dumped, "CPUManagerCheckpointV2", "PodCPUAssignments")
    held = {
        uid: {name: cpuset.CPUSet.parse(listed) for name, listed in containers.items()}
        for uid, containers in entries.items()
    }
    for uid, entry in shapes.mapping(of_pods or {}).items():
        listed = shapes.text(shapes.find(shapes.mapping(entry), "cpuSet") or "", [])
        held.setdefault(uid, {})[""] = cpuset.CPUSet.parse(listed)
    return kubelet.CpuState(policy=policy, default=cpuset.CPUSet.parse(default), entries=held)


def _cpu_entries(value: object) -> dict[str, dict[str, str]]:
    entries: dict[str, dict[str, str]] = {}
    for uid, containers in shapes.mapping(value or {}).items():
        if isinstance(containers, str):
            msg = "the file has the format of Kubernetes 1.17 or older, which does not name pods"
            raise ValueError(msg)
        listed = shapes.mapping(containers)
        entries[uid] = {name: shapes.text(cpus, []) for name, cpus in listed.items()}
    return entries


def cpu_dump(policy: str, default: str, entries: Mapping[str, Mapping[str, str]]) -> str:
    """The text that the checksum is made of."""
    listed = " ".join(
        f"{uid}:map[" + " ".join(f"{name}:{cpus}" for name, cpus in sorted(held.items())) + "]"
        for uid, held in sorted(entries.items())
    )
    return (
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){policy}"
        f" DefaultCPUSet:(string){default}"
        f" Entries:(map[string]map[string]string)map[{listed}] Checksum:(checksum.Checksum)0}}"
    )


def memory(text: str) -> kubelet.MemoryState:
    """The memory manager's state; ``ValueError`` for a file that says nothing reliable."""
    body, (policy,) = _body(text, "policyName")
    machine = {
        _number(name): _node(shapes.mapping(node))
        for name, node in shapes.mapping(shapes.find(body, "machineState") or {}).items()
    }
    entries = {
        uid: {name: _blocks(listed) for name, listed in shapes.mapping(containers).items()}
        for uid, containers in shapes.mapping(shapes.find(body, "entries") or {}).items()
    }
    of_pods = shapes.find(body, "podEntries")
    if of_pods is None:
        dumped = memory_dump(policy, machine, entries)
        _check(body, dumped, "MemoryManagerCheckpointV1", "PodMemoryAssignments")
    for uid, entry in shapes.mapping(of_pods or {}).items():
        # What its containers have is of that.
        entries[uid] = {"": _blocks(shapes.find(shapes.mapping(entry), "memoryBlocks") or [])}
    return kubelet.MemoryState(policy=policy, entries=entries)


def _number(name: str) -> int:
    if not (name.isascii() and name.isdigit()):
        raise ValueError(f"{shapes.shown(name)} is not a NUMA node")
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
        raise ValueError(f"expected a list of NUMA nodes, found {shapes.shown(value)}")
    return tuple(_NODE(number, []) for number in value)


def _blocks(value: object) -> tuple[kubelet.MemoryBlock, ...]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list of memory blocks, found {shapes.shown(value)}")
    return tuple(
        kubelet.MemoryBlock(
            nodes=_nodes(shapes.find(block, "numaAffinity")),
            type=shapes.text(shapes.find(block, "type") or "", []),
            size=_UINT64(shapes.find(block, "size") or 0, []),
        )
        for block in map(shapes.mapping, value)
    )


def memory_dump(policy: str, machine: Mapping[int, NodeMemory], entries: _Entries) -> str:
    """The text that the checksum is made of."""
    nodes = " ".join(f"{number}:<*>{_node_dump(node)}" for number, node in sorted(machine.items()))
    held = " ".join(
        f"{uid}:map["
        + " ".join(f"{n}:[{_blocks_dump(b)}]" for n, b in sorted(containers.items()))
        + "]"
        for uid, containers in sorted(entries.items())
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
