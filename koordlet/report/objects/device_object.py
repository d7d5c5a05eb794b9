"""Device: the accelerators and RDMA devices of this node, as far as the kernel tells. Pure.

Covers: GPUs and RDMA devices with their NUMA node, virtual functions; a GPU's identity, model and
memory where its driver has them in a file (``host.topology.devices``).
Does not cover: what only a vendor's library knows: memory of NVIDIA's GPUs; health beyond a bound
driver that has not excluded the GPU. So this object is written on request only.

As with the peer's agent, the object's labels are those of its GPUs: where they differ, those of the
first one. A node is expected to have GPUs of one model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.model import topology
from koordlet.report import documents, view

#: What we write; devices of other types are somebody else's.
TYPES = frozenset({"gpu", "rdma"})
_LABEL = "node.koordinator.sh/gpu-"
_TOLD = ("vendor", "model", "driver-version")
_VENDORS = {"amdgpu": "amd", "nvidia": "nvidia"}
_GPU = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}


def render(now: view.ReportView) -> dict[str, Any]:
    """Everything of the object that is ours; minors count within a type, by address or driver."""
    seen = now.snapshot
    every = sorted(seen.topology.devices, key=lambda device: device.address)
    gpus = [device for device in every if device.kind == "gpu"]
    # Drivers count from 0 as well, but not always in the order of the addresses: all or none.
    by_driver = all(gpu.minor is not None for gpu in gpus)
    minors = [gpu.minor if by_driver else None for gpu in gpus]
    made = [
        _gpu(device, number if minor is None else minor, seen.topology)
        for number, (device, minor) in enumerate(zip(gpus, minors, strict=True))
    ]
    rdma = (device for device in every if device.rdma is not None and not device.virtual)
    made += [_rdma(device, number, seen.topology) for number, device in enumerate(rdma)]
    return {
        "metadata": {
            "name": seen.node.name,
            "labels": {"app.kubernetes.io/managed-by": "Koordinator", **_labels(gpus)},
        },
        "spec": {"devices": made},
    }


def laid_over(there: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Merge our devices with devices of other types, which other writers own."""
    devices = documents.rows(documents.part(there, "spec"), "devices")
    foreign = [device for device in devices if device.get("type") not in TYPES]
    before = documents.part(there, "metadata", "labels")
    gone = {f"{_LABEL}{name}": None for name in _TOLD if f"{_LABEL}{name}" in before}
    labels = {**gone, **ours["metadata"]["labels"]}
    return {
        "metadata": {"labels": labels},
        "spec": {"devices": [*ours["spec"]["devices"], *foreign]},
    }


def _labels(gpus: Sequence[topology.Device]) -> dict[str, str]:
    """Vendor, model and driver, as far as they are known and can be values of labels."""
    if not gpus:
        return {}
    first = gpus[0]
    described = (_VENDORS.get(first.driver or ""), first.model, first.driver_version)
    # What labels cannot hold is a hyphen; they begin and end with a letter or a digit.
    words = (re.sub(r"[^A-Za-z0-9._-]+", "-", text or "")[:63].strip("._-") for text in described)
    return {f"{_LABEL}{name}": word for name, word in zip(_TOLD, words, strict=True) if word}


def _gpu(device: topology.Device, minor: int, machine: topology.Topology) -> dict[str, Any]:
    resources = dict(_GPU)
    if device.memory_bytes is not None:
        resources["koordinator.sh/gpu-memory"] = str(device.memory_bytes)
    return {**_device(device, "gpu", minor, machine), "id": device.uuid or device.address,
            "resources": resources}  # fmt: skip


def _rdma(device: topology.Device, minor: int, machine: topology.Topology) -> dict[str, Any]:
    made = {**_device(device, "rdma", minor, machine), "resources": {"koordinator.sh/rdma": "100"}}
    functions = [{"minor": minor, "busID": bus} for minor, bus in enumerate(device.functions)]
    return {**made, "vfGroups": [{"vfs": functions}]} if functions else made


def _device(
    device: topology.Device, kind: str, minor: int, machine: topology.Topology
) -> dict[str, Any]:
    node = -1 if device.node is None else device.node
    sockets = {
        cpu.socket for cpu in machine.cpus if cpu.node == device.node and cpu.socket is not None
    }
    socket = min(sockets) if node >= 0 and sockets else -1
    # Domain and bus of ``0000:3b:00.0``: devices below one root port share them.
    root = device.address.rpartition(":")[0]
    return {
        "type": kind,
        "id": device.address,
        "minor": minor,
        "health": device.driver is not None and not device.excluded,
        "topology": {"socketID": socket, "nodeID": node, "pcieID": root, "busID": device.address},
    }
