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
    found = {"type": "rdma", "id": f"0000:5e:00.{minor}", "minor": minor, "health": True}
    return {**found, "resources": {RDMA: "100"}, **more}


def report(name: str, *several: Body, labels: Body | None = None) -> Body:
    """The Device of a node; two cards where none are given."""
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Device",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"devices": list(several or (gpu(0), gpu(1)))},
    }


def asking(name: str, amount: int | str = 100, kind: str = PERCENT, **more: Any) -> Body:
    """A pod that asks for devices."""
    return clusters.pod(name, requests={kind: str(amount), **more.pop("requests", {})}, **more)


def having(name: str, *minors: int, share: int = 100, on: str = "n", **more: Any) -> Body:
    """A pod that runs with so much of these cards of 16 GiB."""
    part = {CORE: str(share), RATIO: str(share), MEMORY: str(share * (16 << 30) // 100)}
    told = {"gpu": [{"minor": minor, "resources": part} for minor in minors]}
    meta = {"annotations": {ALLOCATED: json.dumps(told)}}
    return asking(name, share * len(minors), on=on, meta=meta, **more)


def minors(told: Any, kind: str = "gpu") -> list[int]:
    """The minors of one type in the text or the object of an annotation."""
    found = json.loads(told) if isinstance(told, str) else told or {}
    return [one["minor"] for one in found.get(kind, ())]


def annotated(body: Mapping[str, Any], kind: str = "gpu") -> list[int]:
    """The minors that an object of the store was given."""
    return minors((body["metadata"].get("annotations") or {}).get(ALLOCATED), kind)


def given(*bodies: Body, kind: str = "gpu", config: Any = None) -> dict[str, list[int]]:
    """Pod to minors, of those that a simulation placed."""
    found = clusters.tried(*bodies, config=config)["placements"]
    return {one["pod"].removeprefix("d/"): minors(one.get("devices"), kind) for one in found}
