"""Pods, states of devices, objects and their scheduler, for the lives of devices."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from koordlet.scheduler.allocation import devices
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework import profile
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins import conversion
from koordlet.scheduler.plugins.reservation import Reservation
from koordlet.scheduler.reservation.cache import ReservationCache
from tests.kit import clusters, reservations
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
    report,
    switched,
)

NODES = ("n1", "n2")


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
FUNCTION = wish({RDMA: "1"}, hint={"rdma": {"vfSelector": {}}})
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
    FUNCTION,
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


class Truth:
    """The objects as a store has them."""

    def __init__(self) -> None:
        self.devices: dict[str, Body] = {name: report(name, *STATES[0]) for name in NODES}
        self.pods: dict[str, Body] = {}
        self.reservations: dict[str, Body] = {}
        self.now = reservations.NOW


class Scheduler:
    """What a scheduler knows: derived from objects, nothing else."""

    def __init__(self, truth: Truth) -> None:
        self.columns, self.decoder = Columns(), Decoder({})
        self.profile = profile.default()
        ready = conversion.Chooser({self.profile.name: self.profile}).ready
        self.reservations = ReservationCache(self.columns, self.decoder, ready)
        plugin = self.profile.find(Reservation)
        assert plugin is not None
        self.plugin: Reservation = plugin
        self.plugin.attach(self.reservations)
        self.cycle = Cycle(self.columns, self.profile)
        self.pods: dict[str, Pod] = {}
        for name in NODES:
            room = {"nvidia.com/gpu": "3"}
            self.columns.put(nodes.decode(clusters.node(name, cpu="64", allocatable=room)))
        for body in truth.devices.values():
            self.columns.furnish(*devices.decode(body))
        for body in truth.pods.values():
            self.seen(body)
        for body in truth.reservations.values():
            self.reservations.put(body)
        for info in self.reservations.by_uid.values():
            self.reservations.step(info, truth.now)

    def seen(self, body: Body) -> None:
        """A pod is on a node."""
        pod = self.decoder.decode(body, 0)
        self.columns.place(pod, self.columns.rows[pod.node])
        self.pods[pod.key] = pod
