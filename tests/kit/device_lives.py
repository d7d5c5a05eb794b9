"""What pods ask for, and what becomes of a node's devices, in the lives of devices."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.kit.clusters import Body
from tests.kit.devices import (
    CORE,
    HINT,
    JOINT,
    MEMORY,
    PARTITION,
    PERCENT,
    RATIO,
    RDMA,
    functions,
    gpu,
    rdma,
    switched,
)


@dataclass(frozen=True)
class Wish:
    """The requests of a pod, and its annotations about them."""

    requests: Body
    notes: dict[str, str] = field(default_factory=dict)


def wish(requests: Body, **wishes: Any) -> Wish:
    """The wish of these requests: ``hint``, ``joint``, ``partition``."""
    keys = {"hint": HINT, "joint": JOINT, "partition": PARTITION}
    return Wish(requests, {keys[key]: json.dumps(wish) for key, wish in wishes.items()})


_PAIR = {"deviceTypes": ["gpu", "rdma"], "requiredScope": "SamePCIe"}
WISHES = (
    wish({PERCENT: "30"}),
    wish({PERCENT: "50"}),
    wish({PERCENT: "100"}),
    wish({PERCENT: "200"}),
    wish({MEMORY: "5Gi"}),
    wish({CORE: "20", MEMORY: "3Gi"}),
    wish({CORE: "70", RATIO: "10"}),
    wish({"nvidia.com/gpu": "1"}),
    wish({RDMA: "40"}),
    wish({PERCENT: "50", RDMA: "100"}),
    wish({}),
    wish({RDMA: "1"}, hint={"rdma": {"vfSelector": {}}}),
    wish({RDMA: "1"}, hint={"rdma": {"allocateStrategy": "ApplyForAll"}}),
    wish({PERCENT: "100", RDMA: "1"}, joint=_PAIR, hint={"rdma": {"vfSelector": {}}}),
    wish({PERCENT: "200", RDMA: "30"}, joint=_PAIR),
    wish({PERCENT: "50", RDMA: "30"}, joint={"deviceTypes": ["rdma", "gpu"]}),
    wish({PERCENT: "100"}, hint={"gpu": {"exclusivePolicy": "PCIeLevel"}}),
    wish({PERCENT: "200"}, hint={"gpu": {"requiredTopologyScope": "NUMANode"}}),
    wish({PERCENT: "200"}, partition={"allocatePolicy": "Restricted"}),
)
#: In some states it is known where the devices are.
_PLACED = tuple(
    [switched(gpu(n), n // 2, per_numa=1) for n in range(4)]
    + [switched(rdma(0, vfGroups=functions(0, 3)), 0, per_numa=1)]
    + [switched(rdma(1), 1, per_numa=1)]
)
STATES: tuple[tuple[Body, ...], ...] = (
    _PLACED,
    (gpu(0), gpu(1), gpu(2), rdma(0), rdma(1)),
    (gpu(0), gpu(1, health=False), gpu(2), rdma(0)),
    (gpu(0), gpu(2, memory="8Gi"), rdma(0), rdma(1)),
    (gpu(1), gpu(2, memory=""), gpu(3)),
    (gpu(0, memory="32Gi"), gpu(1, memory="8Gi"), gpu(2), rdma(0)),
    (*_PLACED[1:4], rdma(0, vfGroups=functions(0, 1)), rdma(1, health=False)),
)
