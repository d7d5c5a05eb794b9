"""Discovery on made machines, and how tests look at the outcome.

Covers: groups of a column, warnings, the contract that holds for every machine.
Does not cover: the machines (``tests.kit.machines``).
"""

from __future__ import annotations

import json

from koordlet.host.topology import discovery
from koordlet.model import cpuset, topology
from tests.kit import machines


def discover(tree: machines.Tree) -> topology.Topology:
    """Discovery on a tree."""
    return discovery.discover(machines.to_host(tree))


def groups(machine: topology.Topology, column: str) -> list[str]:
    """A column's groups as lists, in the order of their numbers, which must be dense."""
    members: dict[int, list[int]] = {}
    for row in machine.cpus:
        number = getattr(row, column)
        if number is not None:
            members.setdefault(number, []).append(row.cpu)
    assert list(range(len(members))) == sorted(members)
    return [machines.ranges(members[number]) for number in sorted(members)]


def summary(machine: topology.Topology) -> dict[str, object]:
    """The machine in the form of the answers in ``fixtures/sysfs``."""
    caches: dict[str, int] = {}
    for cache in machine.caches:
        name = f"{cache.level} {cache.type}"
        caches[name] = caches.get(name, 0) + 1
    ids = {row.l3: row.l3_id for row in machine.cpus if row.l3 is not None}
    return {
        "present": str(machine.present),
        "online": str(machine.online),
        "isolated": str(machine.isolated),
        "nohz_full": str(machine.nohz_full),
        "cores": groups(machine, "core"),
        "sockets": groups(machine, "socket"),
        "l3": groups(machine, "l3"),
        "l3_ids": [ids[number] for number in sorted(ids)],
        "nodes": {
            str(node.node): {
                "cpus": _cpus(machine, node),
                "memory_bytes": node.memory_bytes,
                "distances": list(node.distances),
            }
            for node in machine.nodes
        },
        "memory_nodes": str(machine.memory_nodes),
        "caches": caches,
        "smt": machine.smt,
        "vendor": machine.vendor,
        "arch": machine.arch,
        "warnings": len(machine.warnings),
    }


def _cpus(machine: topology.Topology, node: topology.Node) -> str:
    """The CPUs of a node, as its own row and the rows of the CPUs say alike."""
    by_cpu = machines.ranges(row.cpu for row in machine.cpus if row.node == node.node)
    assert str(node.cpus) == by_cpu
    return by_cpu


def warned(machine: topology.Topology, *words: str) -> bool:
    """Whether one warning holds all of these."""
    return any(all(word in warning for word in words) for warning in machine.warnings)


def check_contract(document: dict[str, object]) -> None:
    """The parts of the contract that hold for every machine, damaged or not."""
    text = json.dumps(document)
    again = json.loads(text)
    present = set(cpuset.CPUSet.parse(again["present"]))
    online = set(cpuset.CPUSet.parse(again["online"]))
    assert [row["cpu"] for row in again["cpus"]] == sorted(present)
    for row in again["cpus"]:
        assert row["online"] == (row["cpu"] in online)
    for column in ("core", "socket", "l3"):
        seen: list[int] = []
        for row in again["cpus"]:
            if row[column] is not None and row[column] not in seen:
                seen.append(row[column])
        assert seen == list(range(len(seen)))
    ids = [node["node"] for node in again["nodes"]]
    assert ids == sorted(set(ids))
    for node in again["nodes"]:
        assert node["distances"] is None or len(node["distances"]) == len(ids)
    for row in again["cpus"]:
        assert row["node"] is None or row["node"] in ids
