"""Machines with CPUs and NUMA nodes, pods that are bound to CPUs, and which CPUs they get."""

from __future__ import annotations

import json
from typing import Any

from tests.kit import clusters
from tests.kit.clusters import Body, node, pod

SPEC = "scheduling.koordinator.sh/resource-spec"
STATUS = "scheduling.koordinator.sh/resource-status"


def topology(name: str, *, cpus: int = 8, sockets: int = 2, **notes: Any) -> Body:
    """A machine of two threads a core and one NUMA node a socket, 16 GiB each."""
    each = cpus // sockets
    detail = [
        {"id": cpu, "core": cpu // 2, "socket": cpu // each, "node": cpu // each}
        for cpu in range(cpus)
    ]
    zones = [
        {
            "type": "Node",
            "name": f"node-{number}",
            "resources": [
                {"name": "cpu", "capacity": str(each), "allocatable": str(each)},
                {"name": "memory", "capacity": "16Gi", "allocatable": "16Gi"},
            ],
        }
        for number in range(sockets)
    ]
    annotations = {"node.koordinator.sh/cpu-topology": json.dumps({"detail": detail})}
    annotations |= {key: json.dumps(value) for key, value in notes.pop("notes", {}).items()}
    return {
        "kind": "NodeResourceTopology",
        "metadata": {"name": name, "annotations": annotations},
        "zones": zones,
        **notes,
    }


def machine(name: str, *, labels: Body | None = None, **more: Any) -> Body:
    """A node of 8 CPUs and 32 GiB."""
    return node(name, cpu="8", labels=labels, allocatable={"memory": "32Gi"}, **more)


def bound(name: str, cpu: str, notes: Body | None = None, *, on: str = "") -> Body:
    """A pod that wants CPUs of its own."""
    meta = {"annotations": {key: json.dumps(value) for key, value in (notes or {}).items()}}
    labels = {"koordinator.sh/qosClass": "LSR"}
    return pod(name, on=on, cpu=cpu, labels=labels, meta=meta)


def cpusets(*bodies: Body) -> dict[str, str]:
    """Pod to CPUs."""
    return {
        placement["pod"]: placement["cpuset"] for placement in clusters.tried(*bodies)["placements"]
    }
