"""The machine as the ``v1`` document that ``koordlet topology -o json`` and the API print.

Covers: every key of the contract. Does not cover: printing it, the table (``cli.topology``).

Rules:
1. Keys may be added, never removed or retyped; an unknown column is ``null``.
2. Optional columns of a CPU are left out where they are unknown: most machines have none of them.
"""

from __future__ import annotations

from koordlet.model import topology
from koordlet.report import documents

_COLUMNS = (
    *("cpu", "online", "core", "socket", "node", "l3"),
    *("core_id", "package_id", "die_id", "cluster_id", "l3_id"),
)
_OPTIONAL = ("capacity", "max_khz", "book_id", "drawer_id", "governor")
_DEVICE = "address class=device_class kind driver node name"
_SETS = "possible present online offline isolated nohz_full=nohz_full"


def document(machine: topology.Topology) -> dict[str, object]:
    """The whole document."""
    return {
        "version": "v1",
        "cpus": [_cpu(cpu) for cpu in machine.cpus],
        "nodes": [_node(node) for node in machine.nodes],
        "caches": documents.each(machine.caches, "level type id bytes ways cpus"),
        "devices": documents.each(machine.devices, _DEVICE),
        **documents.fields(machine, f"{_SETS} smt vendor model=model_name arch flags warnings"),
    }


def _cpu(cpu: topology.Cpu) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(cpu, name) for name in _COLUMNS}
    row.update((name, value) for name in _OPTIONAL if (value := getattr(cpu, name)) is not None)
    return row


def _node(node: topology.Node) -> dict[str, object]:
    return {
        **documents.fields(node, "node cpus memory_bytes=memory_bytes"),
        "distances": list(node.distances) or None,
        "hugepages": {
            size: documents.fields(pages, "total free") for size, pages in node.hugepages.items()
        },
    }
