"""DeviceShare: concrete devices, of nodes that report theirs one by one.

Covers: which nodes have them, which ones a pod or a reservation gets, the annotation.
Does not cover: the choice (``scheduler.allocation.device_choice``), what is asked for
(``scheduler.allocation.device_requests``), choosing NUMA nodes (``numa``).

Rules:
1. A node without a Device object is judged by amounts, as for any extended resource.
2. What pods have follows from the pods on the node. Reservations hold theirs, and hand them over.
3. Where a policy gives a pod NUMA nodes, they are chosen for CPUs, memory and devices at once, and
   its devices are on them.
4. A class that asks for no devices takes no part: no filter, no score.
5. A node of a model that the arguments exclude gives no shares of a GPU; nor does one to who names
   a provider of isolation that it does not name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from koordlet.model import remember
from koordlet.scheduler import framework
from koordlet.scheduler.allocation import (
    device_choice,
    device_requests,
    device_room,
    devices,
    gpu_templates,
    handover,
)
from koordlet.scheduler.allocation.device_alignment import DeviceAlignment
from koordlet.scheduler.allocation.device_requests import DeviceAsk
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.objects import peer_keys, wire
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins import numa, resources
from koordlet.scheduler.reservation import keys
from koordlet.scheduler.reservation.info import ReservationInfo

_NOT_ISOLATED = "GPUIsolationProviderHAMICore not found on the node"


class DeviceShare(framework.Plugin):
    """Which node has the devices, and which devices they are."""

    name = "DeviceShare"
    listens = (
        (ActionType.NODE ^ ActionType.NODE_TAINTS) | ActionType.NODE_FEED | ActionType.POD_GONE
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
        models = wire.bodies(args, "gpuShareUnsupportedModels")
        self._undivided = {wire.texts(model, "vendor", "model") for model in models}
        self._aligned = not wire.flag(args, "disableDeviceNUMATopologyAlignment")
        self._columns: Columns | None = None
        self._numa: numa.NodeNUMAResource | None = None
        #: The ConfigMap that lists templates of shared GPUs.
        self.templates = gpu_templates.source(args)
        self._templates: gpu_templates.Templates = {}
        #: What a class wants; one placement asks several times.
        self.ask = remember.last(self._ask)

    def meet(self, others: Iterable[framework.Plugin]) -> None:
        if self._aligned:
            self._numa = next((p for p in others if isinstance(p, numa.NodeNUMAResource)), None)
        if self._numa is not None:
            self._numa.align(self.alignment)

    def teach(self, where: tuple[str, str], templates: gpu_templates.Templates) -> None:
        """Take note of what a ConfigMap says, if it is the one that lists templates."""
        if where == (self.templates.namespace, self.templates.name):
            self._templates = templates
            self.ask = remember.last(self._ask)

    def _ask(self, pod_class: PodClass) -> DeviceAsk:
        asked = ask(pod_class)
        for request in asked.requests:
            if request.shared and not self.templates.matched.isdisjoint(request.each):
                matching = gpu_templates.matching(self._templates, request.each)
                if not matching:
                    raise framework.RefusedError(gpu_templates.NO_MATCH)
                return replace(asked, templates=matching)
        return asked

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        self._columns = columns
        asked = self.ask(pod_class)

        shares = any(request.kind == devices.GPU and request.shared for request in asked.requests)

        def refuses(node: Node, row: int) -> framework.Verdict | None:
            if shares and (reason := self._no_shares(pod_class, node)):
                return framework.Verdict((reason,), resolvable=False)
            if node.name not in columns.devices:
                return None
            trial = device_choice.trial(asked, columns, row, _apart(pod_class, row), self.taste)
            if trial is None or trial.fits():
                return None
            chosen = trial.admit()
            if not isinstance(chosen, device_room.DeviceRefusal):
                return None
            return framework.Verdict(chosen.reasons, resolvable=not chosen.final)

        return framework.ByNode(columns, refuses) if asked.requests else None

    def _no_shares(self, pod_class: PodClass, node: Node) -> str:
        """Why a node gives a class no shares of GPUs, whatever is free; empty: it does."""
        isolation = pod_class.labels.get(peer_keys.GPU_ISOLATION)
        if isolation and isolation != node.labels.get(peer_keys.GPU_ISOLATION):
            return _NOT_ISOLATED
        vendor = node.labels.get(peer_keys.GPU_VENDOR, "")
        model = node.labels.get(peer_keys.GPU_MODEL, "")
        if (vendor, model) in self._undivided:
            return f'model "{model}" of vendor "{vendor}" does not support GPU Share'
        return ""

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        asked = self.ask(pod_class)

        def rates(_node: Node, row: int) -> int:
            """How much of the node's devices would be left, or used."""
            apart = _apart(pod_class, row)
            trial = device_choice.trial(asked, columns, row, apart, self.taste)
            return 0 if trial is None else max(0, min(framework.MAX_SCORE, trial.share()))

        return framework.ScoreByNode(columns, rates) if asked.requests else None

    def outlook(self, pod_class: PodClass, columns: Columns, row: int) -> str:
        answer = self.admit(pod_class, self.ask(pod_class), row, _apart(pod_class, row))
        parts = () if isinstance(answer, device_room.DeviceRefusal) else answer
        return devices.brief(devices.spelled(parts))

    def alignment(
        self, pod_class: PodClass, columns: Columns, row: int, draws: ReservationInfo | None
    ) -> DeviceAlignment | None:
        """What the devices of a class say about NUMA nodes; ``None``: nothing."""
        context = device_room.DrawContext(draws, _ignores(pod_class))
        trial = device_choice.trial(self.ask(pod_class), columns, row, context, self.taste)
        return None if trial is None else DeviceAlignment(trial)

    def admit(
        self, pod_class: PodClass, asked: DeviceAsk, row: int, context: device_room.DrawContext
    ) -> device_choice.Answer:
        """The devices that a pod gets on a node now, on the NUMA nodes that it gets there."""
        columns = self._columns
        if columns is None:
            return ()
        trial = device_choice.trial(asked, columns, row, context, self.taste, reserving=True)
        if trial is None:
            return ()
        nodes = None
        if self._numa is not None and not pod_class.adopts:
            nodes = self._numa.nodes(pod_class, columns, row, context.draws)
        return trial.admit(nodes)

    def prepare(self, pod: Pod, node: str) -> None:
        """Take the devices; the pod carries them from here on."""
        columns = self._columns
        if columns is None or device_requests.NAMES.isdisjoint(pod.pod_class.requests.real):
            return
        context = device_room.DrawContext(columns.drawn_reservation(pod), _ignores(pod.pod_class))
        asked = self.ask(pod.pod_class)
        chosen = self.admit(pod.pod_class, asked, columns.rows[node], context)
        if isinstance(chosen, device_room.DeviceRefusal):
            raise framework.RefusedError(", ".join(chosen.reasons), resolvable=not chosen.final)
        pod.devices = chosen

    def unreserve(self, pod: Pod, node: str) -> None:
        pod.devices = ()

    def marks(self, pod: Pod, node: str) -> Mapping[str, str]:
        return marks(pod)


def ask(pod_class: PodClass) -> DeviceAsk:
    """What a class asks for in devices; ``RefusedError`` where no node could serve it.

    Nothing for a reservation that adopts pods: it chooses when it has their room (``conversion``).
    """
    try:
        asked = device_requests.ask(pod_class.requests.real, pod_class.annotations)
    except BadObjectError as error:
        raise framework.RefusedError(str(error)) from error
    return device_requests.NOTHING if pod_class.adopts else asked


def marks(pod: Pod) -> dict[str, str]:
    """The annotation by which agents and the next scheduler know its devices."""
    if not pod.devices:
        return {}
    return {peer_keys.DEVICE_ALLOCATED: json.dumps(devices.spelled(pod.devices))}


def _apart(pod_class: PodClass, row: int) -> device_room.DrawContext:
    return device_room.DrawContext(handover.drawn(pod_class, row), _ignores(pod_class))


def _ignores(pod_class: PodClass) -> bool:
    return pod_class.labels.get(keys.IGNORED) == "true"
