"""Runs in the guest: what lscpu, lstopo and numactl say of the machine, as JSON.

In the form of ``fixtures/sysfs/NAME.json``, with nothing of the project. Each tool is asked for
what it is right about: lscpu for cores, sockets and nodes of online CPUs; lstopo for who shares
which cache, and for exact memory (it leaves out nodes without memory); numactl for all nodes and
their distances.
"""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping


def told(*command: str) -> str:
    """What a tool printed."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def ranges(cpus: Iterable[int]) -> str:
    """The kernel's list form."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def groups(sets: Iterable[Iterable[int]]) -> list[str]:
    """Groups in the order of their lowest CPU."""
    return [
        ranges(members)
        for members in sorted((sorted(cpus) for cpus in sets), key=lambda members: members[0])
    ]


def lscpu() -> dict[str, object]:
    """Cores, sockets and what the processor is called."""
    table = told("lscpu", "--all", "--parse=CPU,CORE,SOCKET,NODE,ONLINE")
    rows = [line.split(",") for line in table.splitlines() if not line.startswith("#")]
    running = [row for row in rows if row[4] == "Y"]

    def column(number: int) -> list[str]:
        sets: dict[str, list[int]] = {}
        for row in running:
            sets.setdefault(row[number], []).append(int(row[0]))
        return groups(sets.values())

    summary = dict(line.split(":", 1) for line in told("lscpu").splitlines() if ":" in line)
    return {
        "present": ranges(int(row[0]) for row in rows),
        "online": ranges(int(row[0]) for row in running),
        "cores": column(1),
        "sockets": column(2),
        "by_node": {
            row[3]: ranges(int(r[0]) for r in running if r[3] == row[3]) for row in running
        },
        "vendor": summary["Vendor ID"].strip(),
        "arch": summary["Architecture"].strip(),
    }


def bitmap(text: str) -> list[int]:
    """The members of hwloc's ``0x00000001,0x000000ff``; an empty word is zero."""
    bits = 0
    for word in text.split(","):
        bits = bits << 32 | int(word or "0", 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def lstopo() -> dict[str, object]:
    """Caches, and memory by node."""
    top = ET.fromstring(told("lstopo", "--of", "xml"))  # noqa: S314 -- our own tool printed it
    caches: dict[str, int] = {}
    l3: list[list[int]] = []
    memory: dict[str, int] = {}
    for element in top.iter("object"):
        kind = re.match(r"L(\d)(i?)Cache", element.get("type", ""))
        if kind:
            word = {"0": "Unified", "1": "Data", "2": "Instruction"}[element.get("cache_type", "")]
            name = f"{kind[1]} {word}"
            caches[name] = caches.get(name, 0) + 1
            if kind[1] == "3":
                l3.append(bitmap(element.get("cpuset", "")))
        if element.get("type") == "NUMANode":
            memory[element.get("os_index", "")] = int(element.get("local_memory", "0"))
    return {"caches": dict(sorted(caches.items())), "l3": groups(l3), "memory": memory}


def numactl() -> dict[str, list[int]]:
    """Every node's row of distances."""
    rows = re.findall(r"^\s*(\d+):((?:\s+\d+)+)\s*$", told("numactl", "-H"), re.MULTILINE)
    return {node: [int(word) for word in row.split()] for node, row in rows}


def answer() -> Mapping[str, object]:
    """All of it."""
    facts, drawn = lscpu(), lstopo()
    by_node, memory = facts.pop("by_node"), drawn.pop("memory")
    assert isinstance(by_node, dict)
    assert isinstance(memory, dict)
    nodes = {
        node: {
            "cpus": by_node.get(node, ""),
            "memory_bytes": memory.get(node, 0),
            "distances": row,
        }
        for node, row in numactl().items()
    }
    with_memory = ranges(int(node) for node, amount in memory.items() if amount)
    return {**facts, **drawn, "nodes": nodes, "memory_nodes": with_memory, "warnings": 0}


if __name__ == "__main__":
    print(json.dumps(answer(), indent=2))
