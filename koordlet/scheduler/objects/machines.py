"""What a node's agent says of its machine: the NodeResourceTopology as the CPU allocator needs it.

Covers: CPUs, CPUs that no pod of ours may have, zones, the kubelet's and the node's policies.
Does not cover: choosing CPUs (``policy.cpu.allocation``), writing such objects (the agent).

Whatever cannot be read is as if it were not there; without CPUs a machine has no topology.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field

from koordlet.model import cpuset, topology
from koordlet.model.record import dataclass
from koordlet.policy.cpu import shape as cpu_shape
from koordlet.scheduler.objects import json_annotations, node_reservation, requests, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

_TOPOLOGY = "node.koordinator.sh/cpu-topology"
_KUBELET = "kubelet.koordinator.sh/cpu-manager-policy"
_HELD = "node.koordinator.sh/pod-cpu-allocs"
_SYSTEM = "node.koordinator.sh/system-qos-resource"
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
    name = wire.text(meta, "name")
    if not name:
        raise BadObjectError("metadata.name is missing")
    notes = wire.mapping(meta, "annotations")
    kubelet = json_annotations.body(notes.get(_KUBELET))
    options = kubelet.get("options")
    full = isinstance(options, Mapping) and options.get("full-pcpus-only") == "true"
    return name, Machine(
        _shape(str(notes.get(_TOPOLOGY, ""))),
        _withheld(notes, kubelet),
        _zones(body),
        _numa_policy(body),
        kubelet.get("policy") == "static" and full,
    )


def _withheld(notes: Body, kubelet: Body) -> cpuset.CPUSet:
    system = json_annotations.body(notes.get(_SYSTEM))
    exclusive = system.get("cpusetExclusive") is not False
    held = [
        node_reservation.cpus_of(body.get("cpuset"))
        for body in json_annotations.bodies(notes.get(_HELD))
        if body.get("managedByKubelet") is True
    ]
    return cpuset.union(
        [
            node_reservation.cpus_of(kubelet.get("reservedCPUs")),
            node_reservation.cpus_of(
                json_annotations.body(notes.get(node_reservation.ANNOTATION)).get("reservedCPUs")
            ),
            node_reservation.cpus_of(system.get("cpuset")) if exclusive else cpuset.CPUSet(),
            *held,
        ]
    )


@functools.lru_cache(maxsize=256)
def _shape(spelled: str) -> cpu_shape.Shape:
    """Machines of one model have one shape."""
    rows = json_annotations.body(spelled).get("detail")
    found: dict[int, topology.Cpu] = {}
    for one in rows if isinstance(rows, list) else ():
        numbers = [one.get(key) for key in ("id", "core", "socket", "node")]
        if all(isinstance(n, int) and -1 <= n <= _MOST_CPUS for n in numbers):
            cpu, core, socket, node = numbers
            if cpu >= 0:
                # Some agents number cores anew in each socket.
                found[cpu] = topology.Cpu(
                    cpu=cpu, core=max(core, 0) + max(socket, 0) * _MOST_CPUS,
                    socket=socket, node=node,
                )  # fmt: skip
    return cpu_shape.Shape.of(topology.Topology(cpus=tuple(found[cpu] for cpu in sorted(found))))


def _zones(body: Body) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for zone in wire.bodies(body, "zones"):
        name = str(zone.get("name", ""))
        number = name.removeprefix("node-")
        plain = number.isascii() and number.isdigit() and len(number) < _DIGITS
        if zone.get("type") != "Node" or not plain:
            continue
        amounts: dict[str, int] = {}
        for one in wire.bodies(zone, "resources"):
            amount = one.get("allocatable", one.get("capacity"))
            try:
                part = requests.amounts(
                    {"a": {str(one.get("name")): amount}}, "a", requests.MOST_ALLOCATABLE
                )
            except BadObjectError:
                continue
            amounts |= part
        found[int(number)] = amounts
    return found


def _numa_policy(body: Body) -> str:
    policies = wire.strings(body, "topologyPolicies")
    return _POLICIES.get(policies[0], "") if policies else ""
