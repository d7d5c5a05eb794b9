"""NUMA nodes of who is not bound to CPUs: every set is looked at."""

from __future__ import annotations

import itertools

from tests.oracle.objects import (
    Amounts,
    Body,
    add,
    amounts,
    annotation,
    key,
    labels,
    name,
    requests,
    room,
)
from tests.oracle.world import World

POLICY = "node.koordinator.sh/numa-topology-policy"
STRATEGY = "node.koordinator.sh/numa-allocate-strategy"
SPEC = "scheduling.koordinator.sh/numa-topology-spec"
STATUS = "scheduling.koordinator.sh/resource-status"
Parts = dict[int, Amounts]


def given(world: World, pod: Body) -> Parts:
    """What a pod has of NUMA nodes: as it was written, or decided since."""
    if key(pod) in world.parts:
        return world.parts[key(pod)]
    recorded = annotation(pod, STATUS).get("numaNodeResources", [])
    return {part["node"]: amounts(part["resources"]) for part in recorded}


def reserved(node: Body) -> set[int]:
    """CPUs that the node keeps for itself."""
    text = annotation(node, "node.koordinator.sh/reservation").get("reservedCPUs", "")
    first, _, last = text.partition("-")
    return set(range(int(first), int(last or first) + 1)) if text else set()


def zones(world: World, node: Body) -> Parts:
    """What NUMA nodes have, without the CPUs that are kept."""
    machine = world.topologies.get(name(node))
    if machine is None:
        return {}
    parts = {
        int(zone["name"].removeprefix("node-")): amounts(
            {resource["name"]: resource["allocatable"] for resource in zone["resources"]}
        )
        for zone in machine["zones"]
    }
    for cpu in annotation(machine, "node.koordinator.sh/cpu-topology")["detail"]:
        if cpu["id"] in reserved(node):
            parts[cpu["node"]]["cpu"] = max(0, parts[cpu["node"]]["cpu"] - 1000)
    return parts


def held(world: World, node: Body) -> Parts:
    """What is given away of them."""
    total: Parts = {}
    for pod in world.on[name(node)]:
        for number, part in given(world, pod).items():
            total[number] = add(total.get(number, {}), part)
    return total


def free(world: World, node: Body) -> Parts:
    """What is left."""
    taken = held(world, node)
    return {
        number: {
            resource: max(0, amount - taken.get(number, {}).get(resource, 0))
            for resource, amount in zone.items()
        }
        for number, zone in zones(world, node).items()
    }


def policy(pod: Body, node: Body) -> str:
    """The node's, else the pod's; a contradiction is for the filter."""
    return str(labels(node).get(POLICY) or annotation(pod, SPEC).get("numaTopologyPolicy", ""))


def barred(world: World, pod: Body, node: Body, chosen: tuple[int, ...]) -> bool:
    """Who insists on being alone may not have these."""
    spec = annotation(pod, SPEC)
    wish = spec.get("singleNUMANodeExclusive")
    if wish != "Required" and (wish or not spec.get("numaTopologyPolicy")):
        return False
    neighbours = [given(world, neighbour) for neighbour in world.on[name(node)]]
    shared = {number for parts in neighbours if len(parts) > 1 for number in parts}
    single = {number for parts in neighbours if len(parts) == 1 for number in parts} - shared
    return chosen[0] in shared if len(chosen) == 1 else bool(single & set(chosen))


def worth(world: World, pod: Body, node: Body, chosen: tuple[int, ...], *, most: bool) -> int:
    """CPU and memory of a set with the pod there, in hundredths."""
    mine, taken, there = requests(pod), held(world, node), zones(world, node)
    parts = []
    for resource in ("cpu", "memory"):
        whole = sum(there[number].get(resource, 0) for number in chosen)
        if whole:
            full = sum(taken.get(n, {}).get(resource, 0) for n in chosen) + mine.get(resource, 0)
            parts.append((min(full, whole) if most else max(0, whole - full)) * 100 // whole)
    return sum(parts) // len(parts) if parts else 0


def wanted(world: World, pod: Body, node: Body) -> Amounts:
    """What is asked of NUMA nodes."""
    have = {resource for zone in zones(world, node).values() for resource in zone}
    return {
        resource: amount
        for resource, amount in requests(pod).items()
        if amount > 0 and resource in have
    }


def sets(world: World, pod: Body, node: Body) -> list[tuple[int, ...]]:
    """Those in which the pod fits, all members having some of everything."""
    left, wants = free(world, node), wanted(world, pod, node)
    return [
        chosen
        for size in range(1, len(left) + 1)
        for chosen in itertools.combinations(sorted(left), size)
        if all(
            sum(left[n][resource] for n in chosen) >= amount for resource, amount in wants.items()
        )
        and all(left[n][resource] > 0 for n in chosen for resource in wants)
    ]


def choose(world: World, pod: Body, node: Body) -> tuple[int, ...] | list[str]:
    """The NUMA nodes of a pod, or why it has none."""
    kind = policy(pod, node)
    fitting = sets(world, pod, node)
    allowed = [numa_nodes for numa_nodes in fitting if not barred(world, pod, node, numa_nodes)]
    if kind == "SingleNUMANode":
        allowed = [numa_nodes for numa_nodes in allowed if len(numa_nodes) == 1]
    if kind == "BestEffort" and fitting:
        least = min(map(len, fitting))
        smallest = [numa_nodes for numa_nodes in fitting if len(numa_nodes) == least]
        allowed = [numa_nodes for numa_nodes in allowed if len(numa_nodes) == least] or smallest
    if not allowed:
        if kind == "BestEffort":
            return tuple(sorted(zones(world, node)))
        if fitting:
            return ["node(s) NUMA Topology affinity error"]
        return [f"Unsatisfied NUMA {resource}" for resource in sorted(wanted(world, pod, node))]
    most = labels(node).get(STRATEGY) == "MostAllocated"

    def order(numa_nodes: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        return len(numa_nodes), -worth(world, pod, node, numa_nodes, most=most), numa_nodes

    return min(allowed, key=order)


def split(world: World, pod: Body, node: Body, chosen: tuple[int, ...]) -> Parts | list[str]:
    """As even as possible, the poorest first; or what is missing."""
    left, short = free(world, node), []
    parts: Parts = {number: {} for number in chosen}
    for resource, amount in sorted(wanted(world, pod, node).items()):
        rest = amount
        for at, number in enumerate(sorted(chosen, key=lambda n: (left[n].get(resource, 0), n))):
            even = -(-rest // (len(chosen) - at))
            part = min(left[number].get(resource, 0), even)
            if part:
                parts[number][resource] = part
            rest -= part
        if rest:
            short.append(f"Insufficient NUMA {resource}")
    return short or {number: part for number, part in parts.items() if part}


def concerned(world: World, pod: Body, node: Body) -> bool:
    """NUMA nodes matter to the pod there."""
    return bool(policy(pod, node)) and name(node) in world.topologies and bool(requests(pod))


def verdict(world: World, pod: Body, node: Body) -> tuple[list[str], bool]:
    """A policy that cannot be kept."""
    mine, theirs = annotation(pod, SPEC).get("numaTopologyPolicy"), labels(node).get(POLICY)
    asks = any(requests(pod).values())
    if asks and mine and theirs and mine != theirs:
        return ["node(s) NUMA Topology policy not match"], False
    if not asks or not policy(pod, node):
        return [], True
    if name(node) not in world.topologies:
        return (["node(s) invalid CPU Topology"], False) if theirs else ([], True)
    chosen = choose(world, pod, node)
    if isinstance(chosen, list):
        return chosen, True
    parts = split(world, pod, node, chosen)
    return (parts, True) if isinstance(parts, list) else ([], True)


def place(world: World, pod: Body, node: Body) -> Parts:
    """What a pod that comes is given."""
    if not any(requests(pod).values()) or not concerned(world, pod, node):
        return {}
    chosen = choose(world, pod, node)
    parts = split(world, pod, node, chosen) if isinstance(chosen, tuple) else {}
    return parts if isinstance(parts, dict) else {}


def score(world: World, pod: Body, node: Body) -> int:
    """Room of the NUMA nodes that would be chosen, or of the whole node."""
    mine = requests(pod)
    matters = annotation(pod, SPEC).get("numaTopologyPolicy") or any(
        POLICY in labels(known_node) for known_node in world.nodes
    )
    if not any(mine.values()) or not matters:
        return 0
    parts = place(world, pod, node)
    if parts:
        return worth(world, pod, node, tuple(parts), most=False)
    if policy(pod, node) and name(node) not in world.topologies:
        return 0
    total: Amounts = {}
    for neighbour in world.on[name(node)]:
        total = add(total, requests(neighbour))
    have = room(node)
    shares = [
        max(0, have[resource] - total.get(resource, 0) - mine.get(resource, 0))
        * 100
        // have[resource]
        for resource in ("cpu", "memory")
        if have.get(resource)
    ]
    return sum(shares) // len(shares) if shares else 0
