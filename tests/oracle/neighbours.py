"""Affinity and anti-affinity between pods."""

from __future__ import annotations

from tests.oracle.objects import Body, affinity, labels, name, namespace, selects, with_label_keys
from tests.oracle.world import World

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def required(pod: Body, kind: str) -> list[Body]:
    """Terms that must hold."""
    return list(affinity(pod, kind).get(REQUIRED, []))


def preferred(pod: Body) -> list[tuple[int, Body]]:
    """Terms with their weights, below zero for anti-affinity."""
    return [
        (sign * term["weight"], term["podAffinityTerm"])
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1))
        for term in affinity(pod, kind).get(PREFERRED, [])
    ]


def means(world: World, owner: Body, term: Body, candidate: Body) -> bool:
    """The term of ``owner`` matches the pod ``other``."""
    spaces, by = term.get("namespaces", []), term.get("namespaceSelector")
    if not spaces and by is None:
        spaces = [namespace(owner)]
    space = namespace(candidate)
    if space not in spaces and not selects(by, world.spaces.get(space, {})):
        return False
    selector = with_label_keys(term.get("labelSelector"), term, labels(owner))
    return selects(selector, labels(candidate))


def together(term: Body, left: Body, right: Body) -> bool:
    """Both nodes are in one domain of the term."""
    value = labels(left).get(term["topologyKey"])
    return value is not None and labels(right).get(term["topologyKey"]) == value


def attracted(world: World, pod: Body, node: Body) -> bool:
    """The required affinity holds, or the pod is the first of its kind."""
    terms = required(pod, "podAffinity")
    if not all(term["topologyKey"] in labels(node) for term in terms):
        return False
    friends = [
        place
        for friend, place in world.placed()
        if all(means(world, pod, term, friend) for term in terms)
    ]
    if all(any(together(term, node, place) for place in friends) for term in terms):
        return True
    known = any(term["topologyKey"] in labels(place) for place in friends for term in terms)
    return not known and all(means(world, pod, term, pod) for term in terms)


def verdict(world: World, pod: Body, node: Body) -> tuple[list[str], bool]:
    """Reasons against a node, and whether preemption could help."""
    if not attracted(world, pod, node):
        return ["node(s) didn't match pod affinity rules"], False
    for term in required(pod, "podAntiAffinity"):
        for neighbour, place in world.placed():
            if means(world, pod, term, neighbour) and together(term, node, place):
                return ["node(s) didn't match pod anti-affinity rules"], True
    for neighbour, place in world.placed():
        for term in required(neighbour, "podAntiAffinity"):
            if means(world, neighbour, term, pod) and together(term, node, place):
                return ["node(s) didn't satisfy existing pods anti-affinity rules"], True
    return [], True


def raw(world: World, pod: Body, node: Body) -> int:
    """The sum of all wishes that a node fulfils."""
    total = 0
    for neighbour, place in world.placed():
        mine = [pair for pair in preferred(pod) if means(world, pod, pair[1], neighbour)]
        theirs = preferred(neighbour) + [(1, term) for term in required(neighbour, "podAffinity")]
        theirs = [pair for pair in theirs if means(world, neighbour, pair[1], pod)]
        total += sum(weight for weight, term in mine + theirs if together(term, node, place))
    return total


def scores(world: World, pod: Body, nodes: list[Body]) -> dict[str, int]:
    """Stretched over the nodes that passed: the worst 0, the best 100."""
    sums = {name(node): raw(world, pod, node) for node in nodes}
    low, span = min(sums.values()), max(sums.values()) - min(sums.values())
    return {k: int(100.0 * ((v - low) / span)) if span else 0 for k, v in sums.items()}
