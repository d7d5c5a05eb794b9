"""Devices as agents report them, and what pods were given of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.kit import clusters
from tests.kit.clusters import Body

ALLOCATED = "scheduling.koordinator.sh/device-allocated"
CORE = "koordinator.sh/gpu-core"
MEMORY = "koordinator.sh/gpu-memory"
RATIO = "koordinator.sh/gpu-memory-ratio"
PERCENT = "koordinator.sh/gpu"
RDMA = "koordinator.sh/rdma"


def gpu(minor: int, *, memory: str = "16Gi", health: bool = True, **more: Any) -> Body:
    """One card; without ``memory`` its driver does not tell how much it has."""
    room = {CORE: "100", RATIO: "100", **({MEMORY: memory} if memory else {})}
    return {
        "type": "gpu",
        "id": f"GPU-{minor}",
        "minor": minor,
        "health": health,
        "resources": room,
        "topology": {"socketID": 0, "nodeID": 0, "pcieID": "0000:3b", "busID": f"0000:3b:0{minor}"},
        **more,
    }


def rdma(minor: int, **more: Any) -> Body:
    """One RDMA device."""
    device = {"type": "rdma", "id": f"0000:5e:00.{minor}", "minor": minor, "health": True}
    return {**device, "resources": {RDMA: "100"}, **more}


def report(name: str, *several: Body, labels: Body | None = None) -> Body:
    """The Device of a node; two cards where none are given."""
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Device",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"devices": list(several or (gpu(0), gpu(1)))},
    }


HINT = "scheduling.koordinator.sh/device-allocate-hint"
JOINT = "scheduling.koordinator.sh/device-joint-allocate"
PARTITION = "scheduling.koordinator.sh/gpu-partition-spec"
PARTITIONS = "scheduling.koordinator.sh/gpu-partitions"
POLICY = "node.koordinator.sh/gpu-partition-policy"


def switched(device: Body, switch: int, *, per_numa: int = 2) -> Body:
    """The same device on a PCIe switch, of which each NUMA node has so many."""
    where = {"nodeID": switch // per_numa, "pcieID": str(switch), "busID": device["id"]}
    return {**device, "topology": where}


def functions(switch: int, count: int = 2, **labels: str) -> list[Body]:
    """A group of virtual functions of the NIC on a switch."""
    several = [{"minor": n, "busID": f"0000:{switch}f:00.{n + 2}"} for n in range(count)]
    return [{"labels": labels or {"type": "general"}, "vfs": several}]


def server(name: str, *without: tuple[str, int], nics: bool = True, **more: Any) -> Body:
    """Eight cards on four PCIe switches of two NUMA nodes, each switch with a NIC.

    ``without``: the types and minors of devices that are not there; ``annotations`` and ``labels``
    are those of the report.
    """
    cards = [switched(gpu(minor), minor // 2) for minor in range(8)]
    network = [switched(rdma(n, vfGroups=functions(n)), n) for n in range(4)] if nics else []
    several = [each for each in (*cards, *network) if (each["type"], each["minor"]) not in without]
    body = report(name, *several, labels=more.get("labels"))
    body["metadata"]["annotations"] = more.get("annotations", {})
    return body


def wishing(name: str, gpus: int, rdma: int = 0, **wishes: Any) -> Body:
    """A pod that wants so many cards, so much RDMA, and more about them: ``hint``, ``joint``."""
    keys = {"hint": HINT, "joint": JOINT, "partition": PARTITION}
    notes = {keys[key]: json.dumps(wish) for key, wish in wishes.items() if key in keys}
    more = {key: wish for key, wish in wishes.items() if key not in keys}
    asked = {PERCENT: str(100 * gpus)} if gpus else {}
    asked |= {RDMA: str(rdma)} if rdma else {}
    return clusters.pod(name, requests=asked, meta={"annotations": notes}, **more)


def taken(name: str, kind: str, *minors: int, on: str = "n", bus: str = "") -> Body:
    """A pod that runs with all of these devices, or with one virtual function of each."""
    part = {CORE: "100", RATIO: "100", MEMORY: "16Gi"} if kind == "gpu" else {RDMA: "100"}
    if bus:
        part = {RDMA: "1"}
    more = {"extension": {"vfs": [{"busID": bus, "minor": 0}]}} if bus else {}
    allocated = {kind: [{"minor": minor, "resources": part, **more} for minor in minors]}
    asked = {PERCENT: str(100 * len(minors))} if kind == "gpu" else part
    meta = {"annotations": {ALLOCATED: json.dumps(allocated)}}
    return clusters.pod(name, requests=asked, on=on, meta=meta)


def asking(name: str, amount: int | str = 100, kind: str = PERCENT, **more: Any) -> Body:
    """A pod that asks for devices."""
    return clusters.pod(name, requests={kind: str(amount), **more.pop("requests", {})}, **more)


def having(name: str, *minors: int, share: int = 100, on: str = "n", **more: Any) -> Body:
    """A pod that runs with so much of these cards of 16 GiB."""
    part = {CORE: str(share), RATIO: str(share), MEMORY: str(share * (16 << 30) // 100)}
    allocated = {"gpu": [{"minor": minor, "resources": part} for minor in minors]}
    meta = {"annotations": {ALLOCATED: json.dumps(allocated)}}
    return asking(name, share * len(minors), on=on, meta=meta, **more)


def minors(annotation: Any, kind: str = "gpu") -> list[int]:
    """The minors of one type in the text or the object of an annotation."""
    allocated = json.loads(annotation) if isinstance(annotation, str) else annotation or {}
    return [allocation["minor"] for allocation in allocated.get(kind, ())]


def annotated(body: Mapping[str, Any], kind: str = "gpu") -> list[int]:
    """The minors that an object of the store was given."""
    return minors((body["metadata"].get("annotations") or {}).get(ALLOCATED), kind)


def given(*bodies: Body, kind: str = "gpu", config: Any = None) -> dict[str, list[int]]:
    """Pod to minors, of those that a simulation placed."""
    placements = clusters.tried(*bodies, config=config)["placements"]
    return {
        placement["pod"].removeprefix("d/"): minors(placement.get("devices"), kind)
        for placement in placements
    }
