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
        "cpus": [_cpu(cpu) for cpu in machine.cpus],
        "nodes": [_node(node) for node in machine.nodes],
        "caches": [_cache(cache) for cache in machine.caches],
        "devices": [_device(device) for device in machine.devices],
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


def _cpu(cpu: topology.Cpu) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(cpu, name) for name in _COLUMNS}
    row.update((name, value) for name in _OPTIONAL if (value := getattr(cpu, name)) is not None)
    return row


def _node(node: topology.Node) -> dict[str, object]:
    return {
        "node": node.node,
        "cpus": str(node.cpus),
        "memory_bytes": node.memory_bytes,
        "distances": list(node.distances) or None,
        "hugepages": {
            size: {"total": pages.total, "free": pages.free}
            for size, pages in node.hugepages.items()
        },
    }


def _cache(cache: topology.Cache) -> dict[str, object]:
    return {
        "level": cache.level,
        "type": cache.type,
        "id": cache.id,
        "bytes": cache.bytes,
        "ways": cache.ways,
        "cpus": str(cache.cpus),
    }


def _device(device: topology.Device) -> dict[str, object]:
    return {
        "address": device.address,
        "class": device.device_class,
        "kind": device.kind,
        "driver": device.driver,
        "node": device.node,
        "name": device.name,
    }
