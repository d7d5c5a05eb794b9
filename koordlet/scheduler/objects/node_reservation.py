"""What a node sets aside for itself, of what it says that it has.

Covers: the annotation ``node.koordinator.sh/reservation`` on a Node, and what is left for pods.
Does not cover: which CPUs those are on the machine (the node decides, its topology says it).

Rules, the peer's:
1. ``reservedCPUs`` counts, where it is there and can be read; otherwise ``resources.cpu``.
2. ``applyPolicy: ReservedCPUsOnly``: the amounts are the kubelet's affair already; only the CPUs
   are withheld from workloads that are bound to CPUs.
3. What best-effort pods may use (``batch-*``) was computed without it already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field

from koordlet.model import cpuset
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.wire import BadObjectError

ANNOTATION = "node.koordinator.sh/reservation"
_BATCH = ("kubernetes.io/batch-cpu", "kubernetes.io/batch-memory")


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """Amounts and CPUs."""

    amounts: Mapping[str, int] = field(default_factory=dict)
    cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)

    def rest(self, allocatable: Mapping[str, int]) -> dict[str, int]:
        """What is left for pods."""
        return {
            name: much if name in _BATCH else max(0, much - self.amounts.get(name, 0))
            for name, much in allocatable.items()
        }


NOTHING = NodeReservation()


def read(annotations: Mapping[str, str]) -> NodeReservation:
    """What a node sets aside; an annotation that cannot be read sets nothing aside."""
    spelled = annotations.get(ANNOTATION)
    if spelled is None:
        return NOTHING
    try:
        body = json.loads(spelled)
    except (ValueError, RecursionError):
        return NOTHING
    return _read(body) if isinstance(body, Mapping) else NOTHING


def _read(body: Mapping[str, object]) -> NodeReservation:
    try:
        amounts = requests.amounts(body, "resources", requests.MOST_ALLOCATABLE)
    except BadObjectError:
        amounts = {}
    cpus = cpus_of(body.get("reservedCPUs"))
    if cpus:
        amounts[requests.CPU] = 1000 * len(cpus)
    if body.get("applyPolicy") == "ReservedCPUsOnly":
        amounts = {}
    return NodeReservation(amounts, cpus)


def cpus_of(spelled: object) -> cpuset.CPUSet:
    """A list of CPUs; none where it cannot be read."""
    if not isinstance(spelled, str):
        return cpuset.CPUSet()
    try:
        return cpuset.CPUSet.parse(spelled)
    except ValueError:
        return cpuset.CPUSet()
