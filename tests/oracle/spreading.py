"""Topology spread constraints, hard and soft."""

from __future__ import annotations

import math

from tests.oracle.objects import (
    Body,
    labels,
    name,
    namespace,
    repelled,
    selects,
    terminating,
    wants,
    with_label_keys,
)
from tests.oracle.world import World

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
MISMATCH = "node(s) didn't match pod topology spread constraints"


def constraints(pod: Body, when: str) -> list[Body]:
    """The pod's own of one kind, their selectors complete."""
    return [
        {
            **constraint,
            "labelSelector": with_label_keys(
                constraint.get("labelSelector"), constraint, labels(pod)
            ),
        }
        for constraint in pod["spec"].get("topologySpreadConstraints", [])
        if constraint["whenUnsatisfiable"] == when
    ]


def counted(pod: Body, node: Body, constraint: Body) -> bool:
    """The constraint's policies include the node."""
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not wants(pod, node):
        return False
    return constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore" or not repelled(pod, node)


def matching(world: World, pod: Body, node: Body, selector: Body | None) -> int:
    """Pods on the node that the selector means; an empty selector counts none."""
    if not selector or not any(selector.values()):
        return 0
    return sum(
        namespace(neighbour) == namespace(pod)
        and not terminating(neighbour)
        and selects(selector, labels(neighbour))
        for neighbour in world.on[name(node)]
    )


def has_all(node: Body, wanted: list[Body]) -> bool:
    """The node has every topology key."""
    return all(constraint["topologyKey"] in labels(node) for constraint in wanted)


def verdict(world: World, pod: Body, node: Body) -> tuple[list[str], bool]:
    """Reasons against a node, and whether preemption could help."""
    hard = constraints(pod, "DoNotSchedule")
    eligible = [known_node for known_node in world.nodes if has_all(known_node, hard)]
    for constraint in hard:
        key, selector = constraint["topologyKey"], constraint["labelSelector"]
        if key not in labels(node):
            return [f"{MISMATCH} (missing required label)"], False
        counts: dict[str, int] = {}
        for known_node in eligible:
            if counted(pod, known_node, constraint):
                value = labels(known_node)[key]
                counts[value] = counts.get(value, 0) + matching(world, pod, known_node, selector)
        few = len(counts) < constraint.get("minDomains", 1)
        least = 0 if few else min(counts.values())
        mine = counts.get(labels(node)[key], 0) + selects(selector, labels(pod))
        if mine - least > constraint["maxSkew"]:
            return [MISMATCH], True
    return [], True


def soft(world: World, pod: Body) -> tuple[list[Body], bool]:
    """The constraints that score, and whether they are the pod's own."""
    if pod["spec"].get("topologySpreadConstraints"):
        return constraints(pod, "ScheduleAnyway"), True
    selector = world.default_selector(pod)
    if not selector["matchLabels"]:
        return [], False
    return [
        {"topologyKey": HOST, "maxSkew": 3, "labelSelector": selector},
        {"topologyKey": ZONE, "maxSkew": 5, "labelSelector": selector},
    ], False


def domain_count(
    world: World, pod: Body, node: Body, constraint: Body, wanted: list[Body] | None
) -> int:
    """Matching pods in the node's domain, or on the node itself for host names."""
    key, selector = constraint["topologyKey"], constraint["labelSelector"]
    if key == HOST:
        return matching(world, pod, node, selector)
    return sum(
        matching(world, pod, known_node, selector)
        for known_node in world.nodes
        if labels(known_node).get(key) == labels(node)[key]
        and (wanted is None or has_all(known_node, wanted))
        and counted(pod, known_node, constraint)
    )


def scores(world: World, pod: Body, nodes: list[Body]) -> dict[str, int]:
    """Normalised over the nodes that passed."""
    wanted, own = soft(world, pod)
    if not wanted:
        return {name(node): 0 for node in nodes}
    heard = [node for node in nodes if not own or has_all(node, wanted)]
    raw: dict[str, int] = {}
    for node in heard:
        total = 0.0
        for constraint in wanted:
            key = constraint["topologyKey"]
            if key not in labels(node):
                continue
            # Where not every key is needed, to have no value is one more.
            values = {labels(known_node).get(key) for known_node in heard}
            size = len(heard) if key == HOST else len(values)
            count = domain_count(world, pod, node, constraint, wanted if own else None)
            total += count * math.log(size + 2) + (constraint["maxSkew"] - 1)
        raw[name(node)] = math.floor(total + 0.5)
    top, low = max(raw.values(), default=0), min(raw.values(), default=0)
    done = {k: 100 * (top + low - v) // top if top else 100 for k, v in raw.items()}
    return {name(node): done.get(name(node), 0) for node in nodes}
