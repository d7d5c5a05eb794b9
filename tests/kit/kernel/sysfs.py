"""What ``/sys/devices/system`` says about the CPUs and nodes of a stand-in machine.

Covers: online/present/possible lists, topology and caches of each CPU, NUMA nodes and their memory,
the hotplug switch of each CPU. Does not cover: frequencies, huge pages, devices.

Formats as a 6.1 kernel prints them, Documentation/ABI/stable/sysfs-devices-system-cpu and -node.
A CPU that is not online keeps its directory and loses ``topology`` and ``cache``.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

from koordlet.model.cpuset import CPUSet, union
from tests.kit.kernel import parsing
from tests.kit.kernel.hardware import Hardware
from tests.kit.kernel.tree import Directory, File, Link, Text, Tree, refused

_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"
#: Level, type, size and who shares it: the CPU, its core or its package.
_CACHES = (
    (1, "Data", "32K", "cpu"),
    (1, "Instruction", "32K", "cpu"),
    (2, "Unified", "2048K", "core"),
    (3, "Unified", "32768K", "package"),
)


def build(tree: Tree, machine: Hardware, switch: Callable[[int, bool], None]) -> None:
    """Everything once; ``refresh`` keeps it true after hotplug."""
    tree.computed(f"{_CPU}/online", lambda: f"{machine.online}\n")
    tree.computed(f"{_CPU}/offline", lambda: f"{_offline(machine)}\n")
    tree.text(f"{_CPU}/possible", f"{machine.possible}\n")
    tree.text(f"{_CPU}/present", f"{machine.present}\n")
    tree.text(f"{_CPU}/kernel_max", "8191\n")
    tree.text(f"{_CPU}/isolated", "\n")
    tree.text(f"{_CPU}/smt/active", f"{int(machine.threads > 1)}\n")
    tree.text(f"{_CPU}/smt/control", "on\n" if machine.threads > 1 else "notsupported\n")
    for cpu in machine.present:
        tree.directory(f"{_CPU}/cpu{cpu}")
        if cpu:
            tree.put(f"{_CPU}/cpu{cpu}/online", _hotplug(machine, cpu, switch))
    _nodes(tree, machine)
    refresh(tree, machine)


def refresh(tree: Tree, machine: Hardware) -> None:
    """Topology and caches of the CPUs that are online, and of no others."""
    for cpu in machine.present:
        here = tree.directory(f"{_CPU}/cpu{cpu}")
        if cpu in machine.online:
            here.put("topology", Directory(_topology(machine, cpu)))
            here.put("cache", _caches(machine, cpu))
            continue
        for name in ("topology", "cache"):
            if name in here.entries:
                here.drop(name)


def _offline(machine: Hardware) -> CPUSet:
    return machine.possible - machine.online


def _hotplug(machine: Hardware, cpu: int, switch: Callable[[int, bool], None]) -> File:
    def write(text: str) -> None:
        value = parsing.strip(text)
        if value not in {"0", "1"}:
            raise refused(errno.EINVAL)
        switch(cpu, value == "1")

    return File(lambda: f"{int(cpu in machine.online)}\n", write)


def _package(machine: Hardware, cpu: int) -> CPUSet:
    return CPUSet.of(other for other in machine.online if machine.near(other, cpu))


def _topology(machine: Hardware, cpu: int) -> dict[str, Text]:
    package, core = _package(machine, cpu), machine.siblings(cpu)
    files = {
        "physical_package_id": str(machine.node_of(cpu)),
        "die_id": "0",
        "cluster_id": "65535",
        "core_id": str(machine.core(cpu)),
    }
    groups = {
        **dict.fromkeys(("package_cpus", "core_siblings", "die_cpus"), package),
        **dict.fromkeys(("core_cpus", "thread_siblings", "cluster_cpus"), core),
    }
    for name, cpus in groups.items():
        files[name] = cpus.mask()
        files[f"{name}_list"] = str(cpus)
    return {name: Text(f"{text}\n") for name, text in files.items()}


def _caches(machine: Hardware, cpu: int) -> Directory:
    shared = {
        "cpu": CPUSet.of([cpu]),
        "core": machine.siblings(cpu),
        "package": _package(machine, cpu),
    }
    indexes: dict[str, Directory] = {}
    for index, (level, kind, size, scope) in enumerate(_CACHES):
        number = {
            "cpu": cpu,
            "core": shared["core"].first,
            "package": machine.node_of(cpu),
        }[scope]
        files = {
            "level": str(level),
            "type": kind,
            "size": size,
            "id": str(number),
            "shared_cpu_list": str(shared[scope]),
            "shared_cpu_map": shared[scope].mask(),
            "coherency_line_size": "64",
            "ways_of_associativity": "16",
        }
        entries = {name: Text(f"{text}\n") for name, text in files.items()}
        indexes[f"index{index}"] = Directory(entries)
    return Directory(indexes)


def _nodes(tree: Tree, machine: Hardware) -> None:
    nodes = machine.node_set
    for name in ("online", "possible"):
        tree.text(f"{_NODE}/{name}", f"{nodes}\n")
    for name in ("has_memory", "has_normal_memory"):
        tree.text(f"{_NODE}/{name}", f"{machine.memory_nodes}\n")
    tree.text(
        f"{_NODE}/has_cpu",
        f"{CPUSet.of(node for node in nodes if machine.nodes[node])}\n",
    )
    for node, cpus in machine.nodes.items():
        place = f"{_NODE}/node{node}"
        tree.put(f"{place}/cpulist", _present(machine, cpus, CPUSet.__str__))
        tree.put(f"{place}/cpumap", _present(machine, cpus, CPUSet.mask))
        distances = " ".join("10" if other == node else "20" for other in nodes)
        tree.text(f"{place}/distance", f"{distances}\n")
        total = machine.node_bytes // 1024 if node in machine.memory_nodes else 0
        tree.text(f"{place}/meminfo", _meminfo(total, f"Node {node} "))
        for cpu in cpus & machine.present:
            tree.put(f"{place}/cpu{cpu}", Link(f"../../cpu/cpu{cpu}"))
            tree.put(f"{_CPU}/cpu{cpu}/node{node}", Link(f"../../node/node{node}"))
    if not union(machine.nodes.values()) >= machine.possible:
        msg = "every possible CPU needs a node"
        raise ValueError(msg)


def _present(machine: Hardware, cpus: CPUSet, shown: Callable[[CPUSet], str]) -> File:
    return File(lambda: f"{shown(cpus & machine.online)}\n")


def _meminfo(kilobytes: int, prefix: str) -> str:
    free = kilobytes * 3 // 4
    rows = {"MemTotal": kilobytes, "MemFree": free, "MemUsed": kilobytes - free}
    rows |= {
        "Active": 0,
        "Inactive": 0,
        "FilePages": kilobytes // 8,
        "AnonPages": kilobytes // 8,
    }
    return "".join(f"{prefix}{name + ':':<16}{value:>8} kB\n" for name, value in rows.items())
