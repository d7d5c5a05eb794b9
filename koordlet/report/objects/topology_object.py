"""NodeResourceTopology: the machine and its CPU pools, as both peers read them. Pure.

Covers: zones, costs, resources, attributes, policies, the annotations; laying them over an object
that others write to as well. Does not cover: when it is written (``report.writing``).

Rules:
1. Zones are in the order of their numbers: ``node-2`` before ``node-10``.
2. What others wrote stays: other annotations and labels, other resources of a zone that is here,
   other attributes. Zones that this machine does not have go, as the peer does it. Lists are one
   value with one owner (``atomic``), also in our definition: a list that a server merges has not
   the order of rule 1. So what others have in ours is read, and applied with it.
3. ``available`` is what is left of ``allocatable`` after exclusive CPUs; the peer's own view has no
   such difference, and its scheduler subtracts what it gave away itself. ``AvailableView`` chooses.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.model import kubelet, ledger, quantity_text, resources, snapshot, topology
from koordlet.report import documents, view
from koordlet.report.objects import fingerprint

MANAGED_BY = "app.kubernetes.io/managed-by"
_PREFIX = "node.koordinator.sh/"
CPU_TOPOLOGY = f"{_PREFIX}cpu-topology"
LS_POOLS = f"{_PREFIX}cpu-shared-pools"
BE_POOLS = f"{_PREFIX}be-cpu-shared-pools"
POD_ALLOCS = f"{_PREFIX}pod-cpu-allocs"
RESERVATION = f"{_PREFIX}reservation"
SYSTEM_QOS = f"{_PREFIX}system-qos-resource"
BASIC_INFO = f"{_PREFIX}cpu-basic-info"
NUMA_RESERVATION = f"{_PREFIX}enable-numa-reservation"
KUBELET_POLICY = "kubelet.koordinator.sh/cpu-manager-policy"

#: The kubelet's policy to the first half of the word that says it, without its scope.
_POLICIES = {
    "single-numa-node": "SingleNUMANode",
    "restricted": "Restricted",
    "best-effort": "BestEffort",
}
#: The level of the cache whose ways the peer's scheduler is told of.
_L3 = 3


class AvailableView(enum.Enum):
    """Meaning of ``available``."""

    EXACT = "exact"
    PEER = "peer"


def render(now: view.ReportView, how: AvailableView = AvailableView.EXACT) -> dict[str, Any]:
    """Everything of the object that is ours."""
    seen = now.snapshot
    labels = {MANAGED_BY: "Koordinator"}
    if seen.node.labels.get(NUMA_RESERVATION) == "true":
        labels[NUMA_RESERVATION] = "true"
    return {
        "metadata": {
            "name": seen.node.name,
            "labels": labels,
            "annotations": _annotations(now),
        },
        "topologyPolicies": [_policy(seen)],
        "zones": _zones(now, how),
        "attributes": _attributes(seen),
    }


def _configured(seen: snapshot.Snapshot) -> kubelet.Configuration:
    configuration = seen.kubelet.configuration if seen.kubelet is not None else None
    return configuration or kubelet.Configuration()


def _policy(seen: snapshot.Snapshot) -> str:
    configured = _configured(seen)
    word = _POLICIES.get(configured.topology_manager_policy)
    scope = "Pod" if configured.topology_manager_scope == "pod" else "Container"
    return "None" if word is None else f"{word}{scope}Level"


# Zones --------------------------------------------------------------------------------------------


def _zones(now: view.ReportView, how: AvailableView) -> list[dict[str, Any]]:
    nodes = sorted(now.snapshot.topology.nodes, key=lambda node: node.node)
    order = [node.node for node in now.snapshot.topology.nodes]
    return [
        {
            "name": f"node-{node.node}",
            "type": "Node",
            "costs": [
                {"name": f"node-{other}", "value": distance}
                for other, distance in sorted(zip(order, node.distances, strict=False))
            ],
            "resources": _resources(now, node, how),
        }
        for node in nodes
    ]


def _resources(
    now: view.ReportView, node: topology.Node, how: AvailableView
) -> list[dict[str, str]]:
    seen, book = now.snapshot, now.plan.ledger
    cpus = node.cpus & seen.allowed
    reserved = book.held(ledger.Owner.RESERVED, ledger.Owner.SYSTEM) & cpus
    held = (book.held(ledger.Owner.LSE, ledger.Owner.LSR) & cpus) - reserved
    sizes_of_pages = {size: int(size.removesuffix("kB")) << 10 for size in node.hugepages}
    pages = {
        f"hugepages-{quantity_text.binary(each)}": each * node.hugepages[size].total
        for size, each in sizes_of_pages.items()
    }
    memory = max(0, (node.memory_bytes or 0) - sum(pages.values()))
    capacity = {resources.CPU: len(cpus) * 1000, resources.MEMORY: memory, **pages}
    if how is AvailableView.PEER:
        allocatable = _reduced(seen, capacity)
        free = dict(allocatable)
    else:
        left = {**capacity, resources.CPU: 1000 * len(cpus - reserved)}
        allocatable = _reduced(seen, capacity, left)
        taken = {resources.CPU: 1000 * len(held), resources.MEMORY: _pinned(seen, node.node)}
        free = {name: max(0, size - taken.get(name, 0)) for name, size in allocatable.items()}
    offer = now.plan.offer.zones.get(node.node, {}) if now.plan.offer is not None else {}
    rows = [(name, capacity[name], allocatable[name], free[name]) for name in capacity]
    rows += [(name, size, size, size) for name, size in offer.items()]
    return [
        {
            "name": name,
            **{
                key: resources.texts({name: size})[name]
                for key, size in zip(("capacity", "allocatable", "available"), sizes, strict=True)
            },
        }
        for name, *sizes in sorted(rows)
    ]


def _reduced(
    seen: snapshot.Snapshot, capacity: Mapping[str, int], left: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Reduce each zone by its part of the node reservation, if the node asks for it."""
    base = dict(capacity if left is None else left)
    node = seen.node
    if node.labels.get(NUMA_RESERVATION) != "true" or not seen.topology.nodes:
        return base
    for name in (resources.CPU, resources.MEMORY):
        if name in node.capacity and name in node.allocatable:
            kept = max(0, node.capacity[name] - node.allocatable[name])
            part = -(-kept // len(seen.topology.nodes))
            base[name] = min(base[name], max(0, capacity[name] - part))
    return base


def _pinned(seen: snapshot.Snapshot, node: int) -> int:
    """Memory that the kubelet holds for single containers on a NUMA node."""
    state = seen.kubelet.memory if seen.kubelet is not None else None
    if state is None:
        return 0
    return sum(
        block.size // len(block.nodes)
        for containers in state.entries.values()
        for blocks in containers.values()
        for block in blocks
        if block.type == resources.MEMORY and node in block.nodes
    )


def _attributes(seen: snapshot.Snapshot) -> list[dict[str, str]]:
    configured = _configured(seen)
    return [
        {"name": "topologyManagerPolicy", "value": configured.topology_manager_policy},
        {"name": "topologyManagerScope", "value": configured.topology_manager_scope},
        {"name": fingerprint.ATTRIBUTE, "value": _fingerprint(seen)},
        {"name": fingerprint.METHOD, "value": "exclude-terminal"},
    ]


def _fingerprint(seen: snapshot.Snapshot) -> str:
    return fingerprint.of(
        (pod.namespace, pod.name)
        for pod in seen.pods
        if pod.active and pod.namespace and pod.source not in ("configuration", "NodeSLO")
    )


# Annotations --------------------------------------------------------------------------------------


def _annotations(now: view.ReportView) -> dict[str, str]:
    seen, book = now.snapshot, now.plan.ledger
    values: dict[str, Any] = {
        CPU_TOPOLOGY: {"detail": _detail(seen)},
        LS_POOLS: _pools(book, "LS"),
        BE_POOLS: _pools(book, "BE"),
        POD_ALLOCS: _allocs(seen, book) or None,
        BASIC_INFO: _basic(seen),
        KUBELET_POLICY: _kubelet_policy(seen),
    }
    reserved = book.held(ledger.Owner.RESERVED)
    if reserved:
        values[RESERVATION] = {"reservedCPUs": str(reserved)}
    system = book.held(ledger.Owner.SYSTEM)
    if system:
        values[SYSTEM_QOS] = {"cpuset": str(system), "cpusetExclusive": True}
    texts = {name: json.dumps(value, separators=(",", ":")) for name, value in values.items()}
    return {**texts, fingerprint.ANNOTATION: _fingerprint(seen)}


def _detail(seen: snapshot.Snapshot) -> list[dict[str, int]]:
    """Only CPUs that are placed and can be had: the peer's scheduler would give away any other."""
    allowed = seen.allowed
    return [
        {"id": cpu.cpu, "core": cpu.core, "socket": cpu.socket, "node": cpu.node or 0}
        for cpu in sorted(seen.topology.cpus, key=lambda cpu: cpu.cpu)
        if cpu.cpu in allowed and cpu.core is not None and cpu.socket is not None
    ]


def _pools(book: ledger.Ledger, kind: str) -> list[dict[str, Any]]:
    pools = [pool for pool in book.pools if pool.kind == kind]
    return [
        {"socket": pool.socket or 0, "node": pool.node or 0, "cpuset": str(pool.cpus)}
        for pool in sorted(pools, key=lambda pool: (pool.socket or 0, pool.node or 0))
    ]


def _allocs(seen: snapshot.Snapshot, book: ledger.Ledger) -> list[dict[str, Any]]:
    """CPUs assigned by the kubelet's static policy; koordlet's are in the pods' annotations."""
    pods = {pod.uid: pod for pod in seen.pods}
    rows = []
    for claim in sorted(book.claims, key=lambda claim: claim.uid):
        if claim.kubelet and claim.uid:
            known = pods.get(claim.uid)
            names = {"namespace": known.namespace, "name": known.name} if known is not None else {}
            own = {"uid": claim.uid, "cpuset": str(claim.cpus), "managedByKubelet": True}
            rows.append({**names, **own})
    return rows


def _basic(seen: snapshot.Snapshot) -> dict[str, Any]:
    machine = seen.topology
    caches = seen.resctrl.hardware.caches if seen.resctrl is not None else ()
    return {
        "cpuModel": machine.model_name or "",
        "hyperThreadEnabled": machine.smt == "on",
        "turboEnabled": machine.turbo is True,
        "catL3CbmMask": next((f"{cache.mask:x}" for cache in caches if cache.level == _L3), ""),
        "vendorID": machine.vendor or "",
    }


def _kubelet_policy(seen: snapshot.Snapshot) -> dict[str, Any]:
    configured = _configured(seen)
    policy: dict[str, Any] = {"policy": configured.cpu_manager_policy}
    if configured.cpu_manager_options:
        policy["options"] = dict(configured.cpu_manager_options)
    if configured.cpu_manager_policy == "static" and configured.reserved_cpus:
        policy["reservedCPUs"] = str(configured.reserved_cpus)
    return policy


# Foreign content ----------------------------------------------------------------------------------

#: Annotations and labels that go when we do not name them: ours alone, and not always there.
_OWN = (RESERVATION, SYSTEM_QOS, NUMA_RESERVATION)


def laid_over(there: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Merge our fields with the rest; lists have one owner (rule 2)."""
    before = there.get("metadata") or {}
    metadata: dict[str, dict[str, Any]] = {
        part: {
            **{key: None for key in _OWN if key in (before.get(part) or {})},
            **ours["metadata"][part],
        }
        for part in ("labels", "annotations")
    }
    return {
        "metadata": metadata,
        "topologyPolicies": ours["topologyPolicies"],
        "zones": [_zone(there, our) for our in ours["zones"]],
        "attributes": _named(there.get("attributes"), ours["attributes"]),
    }


def _zone(there: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    known = (zone for zone in documents.rows(there, "zones") if zone.get("name") == ours["name"])
    before: Mapping[str, Any] = next(known, {})
    return {**before, **ours, "resources": _named(before.get("resources"), ours["resources"])}


def _named(before: Any, ours: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Ours, and what others put beside them, by name."""
    made = [dict(our) for our in ours]
    names = {row["name"] for row in made}
    foreign = before if isinstance(before, list) else []
    made += [dict(o) for o in foreign if isinstance(o, Mapping) and o.get("name") not in names]
    return made
