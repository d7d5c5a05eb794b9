"""The machine as the ``v1`` document that ``koordlet topology -o json`` and the API print.

Covers: every key of the contract. Does not cover: printing it, the table (``cli.topology``).

Rules:
1. Keys may be added, never removed or retyped; an unknown column is ``null``.
2. Optional columns of a CPU are left out where they are unknown: most machines have none of them.
"""

from __future__ import annotations

from koordlet.model import topology

_COLUMNS = (
    "cpu",
    "online",
    "core",
    "socket",
    "node",
    "l3",
    "core_id",
    "package_id",
    "die_id",
    "cluster_id",
    "l3_id",
)
_OPTIONAL = ("capacity", "max_khz", "book_id", "drawer_id", "governor")


def document(machine: topology.Topology) -> dict[str, object]:
    """The whole document."""
    return {
        "version": "v1",
        "cpus": [_cpu(one) for one in machine.cpus],
        "nodes": [_node(one) for one in machine.nodes],
        "caches": [_cache(one) for one in machine.caches],
        "devices": [_device(one) for one in machine.devices],
        "possible": str(machine.possible),
        "present": str(machine.present),
        "online": str(machine.online),
        "offline": str(machine.offline),
        "isolated": str(machine.isolated),
        "nohz_full": str(machine.nohz_full),
        "smt": machine.smt,
        "vendor": machine.vendor,
        "model": machine.model_name,
        "arch": machine.arch,
        "flags": list(machine.flags),
        "warnings": list(machine.warnings),
    }


def _cpu(one: topology.Cpu) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(one, name) for name in _COLUMNS}
    row.update((name, value) for name in _OPTIONAL if (value := getattr(one, name)) is not None)
    return row


def _node(one: topology.Node) -> dict[str, object]:
    return {
        "node": one.node,
        "cpus": str(one.cpus),
        "memory_bytes": one.memory_bytes,
        "distances": list(one.distances) or None,
        "hugepages": {
            size: {"total": pages.total, "free": pages.free}
            for size, pages in one.hugepages.items()
        },
    }


def _cache(one: topology.Cache) -> dict[str, object]:
    return {
        "level": one.level,
        "type": one.type,
        "id": one.id,
        "bytes": one.bytes,
        "ways": one.ways,
        "cpus": str(one.cpus),
    }


def _device(one: topology.Device) -> dict[str, object]:
    return {
        "address": one.address,
        "class": one.device_class,
        "kind": one.kind,
        "driver": one.driver,
        "node": one.node,
        "name": one.name,
    }
