"""Device: the accelerators of this node, as far as the PCI bus tells. Pure.

Covers: GPUs with their NUMA node. Does not cover: memory of a GPU and its health beyond a bound
driver, which only the vendor's library knows; so this object is written on request only.
"""

from __future__ import annotations

from typing import Any

from koordlet.model import topology
from koordlet.report import view

_GPU = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}


def render(now: view.View) -> dict[str, Any]:
    """Everything of the object that is ours; minors count in the order of the addresses."""
    seen = now.snapshot
    found = [one for one in seen.topology.devices if one.kind == "gpu"]
    return {
        "metadata": {
            "name": seen.node.name,
            "labels": {"app.kubernetes.io/managed-by": "Koordinator"},
        },
        "spec": {
            "devices": [
                _device(one, minor, seen.topology)
                for minor, one in enumerate(sorted(found, key=lambda one: one.address))
            ]
        },
    }


def _device(one: topology.Device, minor: int, machine: topology.Topology) -> dict[str, Any]:
    node = -1 if one.node is None else one.node
    sockets = {
        cpu.socket for cpu in machine.cpus if cpu.node == one.node and cpu.socket is not None
    }
    socket = min(sockets) if node >= 0 and sockets else -1
    # Domain and bus of ``0000:3b:00.0``: devices below one root port share them.
    root = one.address.rpartition(":")[0]
    return {
        "type": "gpu",
        "id": one.address,
        "minor": minor,
        "health": one.driver is not None,
        "resources": dict(_GPU),
        "topology": {"socketID": socket, "nodeID": node, "pcieID": root, "busID": one.address},
    }
