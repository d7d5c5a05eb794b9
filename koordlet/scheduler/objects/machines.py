"""What a node's agent says of its machine: the NodeResourceTopology as the CPU allocator needs it.

Covers: CPUs, CPUs that no pod of ours may have, zones, the kubelet's and the node's policies.
Does not cover: choosing CPUs (``policy.cpu.allocation``), writing such objects (the agent).

Whatever cannot be read is as if it were not there; without CPUs a machine has no topology.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from koordlet.kubeapi import node_annotations, shapes
from koordlet.model import cpuset, topology
from koordlet.model.record import dataclass
from koordlet.policy.cpu import shape as cpu_shape
from koordlet.scheduler.objects import json_annotations, requests, wire
from koordlet.scheduler.objects.wire import Body

_TOPOLOGY = "node.koordinator.sh/cpu-topology"
_KUBELET = "kubelet.koordinator.sh/cpu-manager-policy"
_HELD = "node.koordinator.sh/pod-cpu-allocs"
_TOPOLOGY_STRUCTURE = {"detail": [dict.fromkeys(("id", "core", "socket", "node"))]}
_KUBELET_STRUCTURE = dict.fromkeys(("policy", "options", "reservedCPUs"))
_HELD_STRUCTURE = dict.fromkeys(("cpuset", "managedByKubelet"))
#: The topology manager of the kubelet, as the peers derive a policy from it.
_POLICIES = {
    "SingleNUMANodePodLevel": "SingleNUMANode",
    "SingleNUMANodeContainerLevel": "SingleNUMANode",
    "RestrictedPodLevel": "Restricted",
    "RestrictedContainerLevel": "Restricted",
    "Restricted": "Restricted",
    "BestEffortPodLevel": "BestEffort",
    "BestEffortContainerLevel": "BestEffort",
    "BestEffort": "BestEffort",
}
_MOST_CPUS = 8192
#: A number of a NUMA node has fewer.
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine."""

    shape: cpu_shape.Shape
    #: CPUs that nobody is bound to: reserved, of the system, of pods that the kubelet binds.
    withheld: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)
    #: What is allocatable by NUMA node: CPU in thousandths, all else in units.
    zones: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    numa_policy: str = ""
    whole_cores: bool = False


def decode(body: Body) -> tuple[str, Machine]:
    """The name of a node, and its machine; ``BadObjectError`` without a name."""
    meta = wire.mapping(body, "metadata")
    name = wire.name(meta)
    notes = shapes.texts(wire.mapping(meta, "annotations"), [], "annotation")
    kubelet = json_annotations.body(notes.get(_KUBELET), _KUBELET_STRUCTURE)
    options = kubelet.get("options")
    full = isinstance(options, Mapping) and options.get("full-pcpus-only") == "true"
    policies = wire.strings(body, "topologyPolicies")
    return name, Machine(
        _shape(notes.get(_TOPOLOGY, "")),
        _withheld(notes, kubelet),
        _zones(body),
        _POLICIES.get(policies[0], "") if policies else "",
        kubelet.get("policy") == "static" and full,
    )


def _withheld(notes: Mapping[str, str], kubelet: Body) -> cpuset.CPUSet:
    node = node_annotations.reservation(notes.get(node_annotations.RESERVATION, "{}"))
    system = node_annotations.system(notes.get(node_annotations.SYSTEM_QOS, "{}"))
    held = (
        _cpus(row.get("cpuset"))
        for row in json_annotations.bodies(notes.get(_HELD), _HELD_STRUCTURE)
        if row.get("managedByKubelet") is True
    )
    return cpuset.union(
        [
            _cpus(kubelet.get("reservedCPUs")),
            node.cpus or cpuset.CPUSet(),
            (system.exclusive and system.cpus) or cpuset.CPUSet(),
            *held,
        ]
    )


def _cpus(spelled: object) -> cpuset.CPUSet:
    """A list of CPUs; none where it cannot be read."""
    return shapes.guarded(shapes.cpus, spelled, "cpuset", []) or cpuset.CPUSet()


@functools.lru_cache(maxsize=256)
def _shape(spelled: str) -> cpu_shape.Shape:
    """Machines of one model have one shape."""
    rows = json_annotations.body(spelled, _TOPOLOGY_STRUCTURE).get("detail")
    cpus: dict[int, topology.Cpu] = {}
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, Mapping):
            continue
        numbers: list[Any] = [row.get(key) for key in ("id", "core", "socket", "node")]
        if all(isinstance(n, int) and -1 <= n <= _MOST_CPUS for n in numbers):
            cpu, core, socket, node = numbers
            if cpu >= 0:
                # Some agents number cores anew in each socket.
                cpus[cpu] = topology.Cpu(
                    cpu=cpu, core=max(core, 0) + max(socket, 0) * _MOST_CPUS,
                    socket=socket, node=node,
                )  # fmt: skip
    return cpu_shape.Shape.of(topology.Topology(cpus=tuple(cpus[cpu] for cpu in sorted(cpus))))


def _zones(body: Body) -> dict[int, dict[str, int]]:
    zones: dict[int, dict[str, int]] = {}
    for zone in wire.bodies(body, "zones"):
        name = str(zone.get("name", ""))
        number = name.removeprefix("node-")
        plain = number.isascii() and number.isdigit() and len(number) < _DIGITS
        if zone.get("type") == "Node" and plain:
            listed = {
                str(row.get("name")): row.get("allocatable", row.get("capacity"))
                for row in wire.bodies(zone, "resources")
            }
            zones[int(number)] = requests.readable(listed, requests.MOST_ALLOCATABLE)
    return zones
