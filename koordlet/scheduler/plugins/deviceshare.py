"""DeviceShare: concrete devices, of nodes that report theirs one by one.

Covers: which nodes have them, which ones a pod or a reservation gets, the annotation.
Does not cover: what is free and the choice (``scheduler.allocation.device_room``), what is asked
for (``scheduler.allocation.device_requests``).

Rules:
1. A node without a Device object is judged by amounts, as for any extended resource.
2. What pods have follows from the pods on the node. Reservations hold theirs, and hand them over.
3. Wishes about devices that are not served here are refused where devices are chosen, by name.
4. A class that asks for no devices takes no part: no filter, no score.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from koordlet.scheduler import framework
from koordlet.scheduler.allocation import device_requests, device_room, devices, handover
from koordlet.scheduler.allocation.device_requests import DeviceRequest
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.objects import peer_keys, wire
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins import resources
from koordlet.scheduler.reservation import keys

#: Annotations that wish for more than this plugin knows.
_UNSERVED = (peer_keys.DEVICE_HINT, peer_keys.DEVICE_JOINT, peer_keys.GPU_PARTITION)
_PARTITIONED = "node(s) GPU partitions are not supported"
_Wants = tuple[DeviceRequest, ...]


class DeviceShare(framework.Plugin):
    """Which node has the devices, and which devices they are."""

    name = "DeviceShare"
    listens = (
        ActionType.NODE_NEW | ActionType.NODE_ROOM | ActionType.NODE_FEED | ActionType.POD_GONE
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        strategy = wire.mapping(args, "scoringStrategy")
        kind = wire.text(strategy, "type", "LeastAllocated")
        if kind not in {"LeastAllocated", "MostAllocated"}:
            raise BadObjectError(f"scoringStrategy.type {kind!r} is unknown")
        named = wire.bodies(strategy, "resources")
        weights = dict(resources.weighted(named)) if named else None
        self.taste = device_room.DevicePreference(
            weights or device_room.SCORED, most=kind == "MostAllocated"
        )
        self._columns: Columns | None = None

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        self._columns = columns
        wants = wanted(pod_class)

        def refuses(node: Node, row: int) -> framework.Verdict | None:
            if node.name not in columns.devices:
                return None
            chosen = self.admit(pod_class, wants, columns, row, _apart(pod_class, row))
            if not isinstance(chosen, device_room.DeviceRefusal):
                return None
            return framework.Verdict(chosen.reasons, resolvable=not chosen.final)

        return framework.ByNode(columns, refuses) if wants else None

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        wants = wanted(pod_class)

        def rates(node: Node, row: int) -> int:
            """How much of the node's devices would be left, or used."""
            reported = columns.devices.get(node.name)
            if reported is None:
                return 0
            room = device_room.DeviceRoom.of(reported, columns, row, _apart(pod_class, row))
            shares = [room.share(want, self.taste) for want in wants]
            return max(0, min(framework.MAX_SCORE, sum(shares) // len(shares)))

        return framework.ScoreByNode(columns, rates) if wants else None

    def admit(
        self,
        pod_class: PodClass,
        wants: _Wants,
        columns: Columns,
        row: int,
        apart: device_room.DrawContext,
    ) -> tuple[devices.Slice, ...] | device_room.DeviceRefusal:
        """The devices that a class would get on a node now."""
        node = columns.nodes[row]
        reported = columns.devices.get(node.name) if node is not None else None
        if reported is None:
            return ()
        for key in _UNSERVED:
            if pod_class.annotations.get(key):
                return device_room.DeviceRefusal(
                    (f"node(s) annotation {key} is not served",), final=True
                )
        # Partitions are groups of whole cards.
        if reported.partitioned and any(
            want.kind == devices.GPU and want.each.get(devices.RATIO, 0) >= 100 for want in wants
        ):
            return device_room.DeviceRefusal((_PARTITIONED,), final=True)
        return device_room.admit(wants, columns, row, apart, self.taste)

    def prepare(self, pod: Pod, node: str) -> None:
        """Take the devices; the pod carries them from here on."""
        columns = self._columns
        if columns is None or device_requests.NAMES.isdisjoint(pod.pod_class.requests.real):
            return
        context = device_room.DrawContext(columns.drawn_reservation(pod), _ignores(pod.pod_class))
        wants = wanted(pod.pod_class)
        chosen = self.admit(pod.pod_class, wants, columns, columns.rows[node], context)
        if isinstance(chosen, device_room.DeviceRefusal):
            raise framework.RefusedError(", ".join(chosen.reasons), resolvable=not chosen.final)
        pod.devices = chosen

    def unreserve(self, pod: Pod, node: str) -> None:
        pod.devices = ()

    def marks(self, pod: Pod, node: str) -> Mapping[str, str]:
        return marks(pod)


def wanted(pod_class: PodClass) -> _Wants:
    """The device requests of a class; ``RefusedError`` where no node could serve them.

    None for a reservation that adopts pods: it chooses when it has their room (``conversion``).
    """
    if device_requests.NAMES.isdisjoint(pod_class.requests.real):
        return ()
    try:
        requests = device_requests.of(pod_class.requests.real)
    except BadObjectError as error:
        raise framework.RefusedError(str(error)) from error
    return () if pod_class.adopts else requests


def marks(pod: Pod) -> dict[str, str]:
    """The annotation by which agents and the next scheduler know its devices."""
    if not pod.devices:
        return {}
    return {peer_keys.DEVICE_ALLOCATED: json.dumps(devices.spelled(pod.devices))}


def _apart(pod_class: PodClass, row: int) -> device_room.DrawContext:
    return device_room.DrawContext(handover.drawn(pod_class, row), _ignores(pod_class))


def _ignores(pod_class: PodClass) -> bool:
    return pod_class.labels.get(keys.IGNORED) == "true"
