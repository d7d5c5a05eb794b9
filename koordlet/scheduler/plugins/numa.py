"""NodeNUMAResource: concrete CPUs and NUMA nodes, decided here by the allocator of the nodes.

Covers: who gets CPUs of his own, which nodes can give them, which ones they are, amplified CPUs.
Does not cover: choosing among the CPUs of a node (``policy.cpu.allocation``), what a node's machine
is (``scheduler.objects.machines``).

Rules:
1. Bound to CPUs is who is labelled LSE or LSR, is production, and asks for whole CPUs; on a node
   with a bind policy of its own, everybody who asks for CPU. Where CPUs count more than once, those
   of bound pods do, which leaves less to everybody.
2. What pods hold follows from the pods on the node: the CPUs that were written to them, or that
   they were given when they were assumed. There is no other account, so nothing in it can be stale.
   What was chosen for a reservation is handed to its owners (``scheduler.allocation.handover``).
3. A node passes only if the CPUs could be taken at this moment: what is then prepared cannot fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from koordlet.kubeapi import classes, pod_annotations
from koordlet.model import node_ratios, remember
from koordlet.model import resources as amounts
from koordlet.policy.cpu import accumulator, allocation
from koordlet.scheduler import framework
from koordlet.scheduler.allocation import handover, placement
from koordlet.scheduler.allocation.device_alignment import DeviceAlignment
from koordlet.scheduler.allocation.placement import (
    INTEGER,
    Bind,
    NodeOffer,
    PlacementTrial,
    TopologyRequest,
)
from koordlet.scheduler.allocation.zones import Weights, worth
from koordlet.scheduler.cluster.columns import FIXED, Columns
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.objects import peer_keys, requests, wire
from koordlet.scheduler.objects.machines import Machine
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins import resources
from koordlet.scheduler.reservation.info import ReservationInfo

_Alignments = Callable[[PodClass, Columns, int, ReservationInfo | None], DeviceAlignment | None]
_BINDS = {"FullPCPUs", "SpreadByPCPUs"}
_STRATEGIES = {strategy.value: strategy for strategy in accumulator.Strategy}
_NUMA = {"BestEffort", "Restricted", "SingleNUMANode"}


class NodeNUMAResource(framework.Plugin):
    """Which node has the CPUs, and which CPUs they are."""

    name = "NodeNUMAResource"
    listens = ActionType.NODE | ActionType.NODE_FEED | ActionType.POD_GONE

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        #: By name of the node; given by whoever reads the objects.
        self.machines: dict[str, Machine] = {}
        default = wire.text(args, "defaultCPUBindPolicy") or "FullPCPUs"
        if default not in _BINDS:
            raise BadObjectError(f"defaultCPUBindPolicy {default!r} is unknown")
        self._default = default
        kind = wire.text(wire.mapping(args, "numaScoringStrategy"), "type")
        self._strategy = _STRATEGIES.get(kind, accumulator.Strategy.LEAST)
        strategy = wire.mapping(args, "scoringStrategy")
        self._full = wire.text(strategy, "type", "LeastAllocated") == "MostAllocated"
        self._resources = resources.weighted(wire.bodies(strategy, "resources"))
        self._columns: Columns | None = None
        #: By generation and number of nodes whether CPUs of any count more than once.
        self._multiplied = -1, -1, False
        self._alignments: _Alignments | None = None
        #: What a class wants; one placement asks several times.
        self.request = remember.last(self._request)

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        self._columns = columns
        request = self.request(pod_class)
        if pod_class.adopts:
            return None
        if request.bound and request.cpu % 1000:
            raise framework.RefusedError(INTEGER)

        def refuses(_node: Node, row: int) -> framework.Verdict | None:
            trial = self.trial(pod_class, columns, row, handover.drawn(pod_class, row))
            answer = trial.admit() if trial is not None else None
            if not isinstance(answer, allocation.Refusal):
                return None
            return framework.Verdict(answer.reasons, resolvable=not answer.final)

        return framework.ByNode(columns, refuses) if self._concerned(request, columns) else None

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        if not self._concerned(self.request(pod_class), columns):
            return None
        held = resources.Chosen(columns, pod_class.requests.real, self._resources, nonzero=False)
        whole = resources.Most(held) if self._full else resources.Least(held)
        return NumaScore(self, pod_class, columns, whole, most=self._full)

    def _concerned(self, request: TopologyRequest, columns: Columns) -> bool:
        """Whether anything of this matters to a class on any node."""
        if not request.asks:
            return False
        if request.bound or request.numa or self._multiplies(columns):
            return True
        labelled = (peer_keys.BIND_POLICY, peer_keys.NUMA_POLICY)
        return any(bool((columns.index.label(key).ids >= 0).any()) for key in labelled) or any(
            machine.whole_cores or machine.numa_policy for machine in self.machines.values()
        )

    def _multiplies(self, columns: Columns) -> bool:
        """Whether the CPUs of any node count more than once."""
        if self._multiplied[:2] != (columns.generation, columns.size):
            noted = (node.annotations for node in columns.nodes if node is not None)
            multiplies = any(node_ratios.AMPLIFICATION in notes for notes in noted)
            self._multiplied = columns.generation, columns.size, multiplies
        return self._multiplied[2]

    def _request(self, pod_class: PodClass) -> TopologyRequest:
        notes = pod_class.annotations
        binding = pod_annotations.binding_of(notes)
        zoned = pod_annotations.numa_of(notes)
        asked = pod_class.requests.real
        policy, required = binding.policy
        named = policy or self._default
        cpu = asked.get(requests.CPU, 0)
        # The label counts, not what Kubernetes would derive, and for production only.
        labelled = pod_class.labels.get(classes.QOS_LABEL) in {"LSE", "LSR"}
        exclusive = labelled and pod_class.band == "koord-prod"
        return TopologyRequest(
            cpu=cpu,
            bound=exclusive and named in _BINDS and cpu > 0,
            required=Bind(named) if required and named in _BINDS else None,
            preferred=Bind(named) if named in _BINDS else Bind.FULL_CORES,
            exclusive=accumulator.Exclusive(binding.exclusive or "None"),
            numa=zoned.policy or "",
            alone=zoned.exclusive == "Required" or bool(not zoned.exclusive and zoned.policy),
            others={
                key: amount for key, amount in asked.items() if key != requests.CPU and amount > 0
            },
            weights=tuple(
                (name, weight)
                for name, weight in self._resources
                if name in FIXED or asked.get(name, 0)
            ),
        )

    def offer(self, node: Node) -> NodeOffer:
        """What a node says."""
        machine = self.machines.get(node.name)
        label = node.labels.get(peer_keys.BIND_POLICY, "")
        bind = Bind.SPREAD if label == "SpreadByPCPUs" else None
        if label == "FullPCPUsOnly" or (machine is not None and machine.whole_cores):
            bind = Bind.FULL_CORES
        own = machine.numa_policy if machine is not None else ""
        numa = node.labels.get(peer_keys.NUMA_POLICY) or own
        named = node.labels.get(peer_keys.NUMA_STRATEGY)
        usual = self._strategy if named is None else accumulator.Strategy.LEAST
        strategy = _STRATEGIES.get(named or "", usual)
        ratio = placement.ratio(node)
        return NodeOffer(node, machine, bind, numa if numa in _NUMA else "", strategy, ratio)

    def align(self, devices: _Alignments) -> None:
        """Ask this from now on what devices say about NUMA nodes."""
        self._alignments = devices

    def trial(
        self,
        pod_class: PodClass,
        columns: Columns,
        row: int,
        draws: ReservationInfo | None,
    ) -> PlacementTrial | None:
        """A class on a node as both stand now, with its devices; ``None``: there is no node."""
        node = columns.nodes[row]
        if node is None:
            return None
        trial = PlacementTrial(self.request(pod_class), self.offer(node), columns, row, draws)
        if not trial.numa or self._alignments is None:
            return trial
        return replace(trial, devices=self._alignments(pod_class, columns, row, draws))

    def nodes(
        self, pod_class: PodClass, columns: Columns, row: int, draws: ReservationInfo | None
    ) -> tuple[int, ...] | None:
        """The NUMA nodes that a class gets on a node; ``None``: none in particular."""
        trial = self.trial(pod_class, columns, row, draws)
        answer = trial.admit() if trial is not None and trial.numa else None
        return answer.nodes if isinstance(answer, allocation.Grant) else None

    def outlook(self, pod_class: PodClass, columns: Columns, row: int) -> str:
        trial = self.trial(pod_class, columns, row, handover.drawn(pod_class, row))
        answer = None if trial is None or pod_class.adopts else trial.admit()
        if not isinstance(answer, allocation.Grant):
            return ""
        nodes = ",".join(map(str, answer.nodes or ()))
        return " ".join(
            [
                *([f"cpus={answer.cpus}"] if answer.cpus else []),
                *([f"nodes={nodes}"] if nodes else []),
            ]
        )

    def prepare(self, pod: Pod, node: str) -> None:
        """Take the CPUs; the pod carries them from here on."""
        columns = self._columns
        if columns is None or pod.pod_class.adopts or not self.request(pod.pod_class).asks:
            return
        draws = columns.drawn_reservation(pod)
        trial = self.trial(pod.pod_class, columns, columns.rows[node], draws)
        answer = trial.admit() if trial is not None else None
        if isinstance(answer, allocation.Refusal):
            raise framework.RefusedError(answer.why, resolvable=not answer.final)
        if trial is not None and answer is not None:
            pod.cpus = answer.cpus or None
            pod.parts = answer.parts if trial.numa else {}

    def unreserve(self, pod: Pod, node: str) -> None:
        pod.cpus, pod.parts = None, {}

    def marks(self, pod: Pod, node: str) -> Mapping[str, str]:
        status = spelled(pod)
        return {pod_annotations.RESOURCE_STATUS: json.dumps(status)} if status else {}


class NumaScore(framework.Score):
    """How empty a node would be, or how full; only the NUMA nodes that would be chosen, if any."""

    kind = framework.Kind.LOAD

    def __init__(
        self,
        plugin: NodeNUMAResource,
        pod_class: PodClass,
        columns: Columns,
        whole: resources.Least,
        *,
        most: bool,
    ) -> None:
        self._plugin, self._pod_class, self._columns = plugin, pod_class, columns
        self._request = plugin.request(pod_class)
        self._whole = whole
        self._most = most

    def raw(self, rows: Rows) -> Ints:
        scores = self._whole.raw(rows)
        for at, row in enumerate(rows.tolist()):
            scores[at] = self._of(row, int(scores[at]))
        return scores

    def one(self, row: int) -> int:
        return self._of(row, self._whole.one(row))

    def _of(self, row: int, whole: int) -> int:
        """A node's score, given that of all that it has."""
        draws = handover.drawn(self._pod_class, row)
        trial = self._plugin.trial(self._pod_class, self._columns, row, draws)
        if trial is None:
            return 0
        if trial.numa:
            return self._of_zones(trial, whole)
        ratio = trial.offer.ratio
        return self._amplified(trial, ratio) if ratio is not None and ratio > 1 else whole

    def _of_zones(self, trial: PlacementTrial, whole: int) -> int:
        answer, machine = trial.admit(), trial.offer.machine
        if isinstance(answer, allocation.Refusal) or answer is None or machine is None:
            return 0
        if not answer.parts:
            return whole
        weights, bound = Weights(self._most, self._request.weights), bool(answer.cpus)
        return trial.zones(machine).score(tuple(answer.parts), trial.asked, weights, bound=bound)

    def _amplified(self, trial: PlacementTrial, ratio: float) -> int:
        columns, row = self._columns, trial.row
        held = {
            name: columns.requested.item(columns.resource(name), row)
            for name, _ in self._request.weights
        }
        held[requests.CPU] = placement.amplified(ratio, columns, row)
        room = {name: trial.offer.node.allocatable.get(name, 0) for name in held}
        return worth(room, held, trial.asked, Weights(self._most, self._request.weights))


def spelled(pod: Pod) -> dict[str, Any]:
    """What of it is written to the pod, as the peers' agents read it."""
    status: dict[str, Any] = {}
    if pod.cpus:
        status["cpuset"] = str(pod.cpus)
    # -1 is a machine without nodes: nothing is told of where on it.
    parts = [
        {"node": number, "resources": amounts.texts(part)}
        for number, part in sorted(pod.parts.items())
        if number >= 0
    ]
    if parts:
        status["numaNodeResources"] = parts
    return status
