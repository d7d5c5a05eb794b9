"""How good each node is that may run a pod."""

from __future__ import annotations

from tests.oracle import load, neighbours, numa, spreading
from tests.oracle.filters import used
from tests.oracle.objects import (
    Amounts,
    Body,
    add,
    affinity,
    name,
    requests,
    room,
    taints,
    term_matches,
    tolerated,
)
from tests.oracle.world import World

#: The resources that the default profile weighs, equally.
WEIGHED = ("cpu", "memory")
MEBI = 1 << 20


def least_allocated(world: World, pod: Body, node: Body) -> int:
    """Room that stays free, in hundredths."""
    free = room(node)
    wanted = add(used(world.on[name(node)], assume=True), requests(pod, assume=True))
    parts = [
        max(0, (free[resource] - wanted[resource]) * 100 // free[resource])
        for resource in WEIGHED
        if free.get(resource)
    ]
    return sum(parts) // len(parts) if parts else 0


def evenness(room: Amounts, wanted: Amounts) -> int:
    """100 where CPU and memory are used to the same part."""
    parts = [
        min(1.0, wanted.get(resource, 0) / room[resource])
        for resource in WEIGHED
        if room.get(resource)
    ]
    unlike = abs(parts[0] - parts[1]) / 2 if len(parts) == len(WEIGHED) else 0.0
    return int((1 - unlike) * 100)


def balanced(world: World, pod: Body, node: Body) -> int:
    """Whether the pod makes the node's use more even: 75 is neither."""
    mine, taken = requests(pod), used(world.on[name(node)])
    if not any(mine.get(resource) for resource in WEIGHED):
        return 0
    free = room(node)
    return 50 + (50 + evenness(free, add(mine, taken)) - evenness(free, taken)) // 2


def tag(image: str) -> str:
    """The name with ``:latest`` where it says nothing."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def image_locality(world: World, pod: Body, node: Body) -> int:
    """Bytes that need no download, worth less where few nodes have them."""
    spec = pod["spec"]
    containers = spec.get("initContainers", []) + spec["containers"]
    have = {
        name(known_node): {
            n: i["sizeBytes"] for i in known_node["status"].get("images", []) for n in i["names"]
        }
        for known_node in world.nodes
    }
    total = 0
    for image in (tag(container["image"]) for container in containers):
        if image in have[name(node)]:
            share = sum(image in images for images in have.values()) / len(world.nodes)
            total += int(have[name(node)][image] * share)
    low, top = 23 * MEBI, 1000 * MEBI * len(containers)
    return 100 * (min(max(total, low), top) - low) // (top - low)


def soft_taints(pod: Body, nodes: list[Body]) -> dict[str, int]:
    """Fewest taints that the pod would rather avoid."""
    raw = {
        name(node): sum(not tolerated(pod, taint) for taint in taints(node, "PreferNoSchedule"))
        for node in nodes
    }
    top = max(raw.values())
    return {k: 100 - 100 * v // top if top else 100 for k, v in raw.items()}


def node_wishes(pod: Body, nodes: list[Body]) -> dict[str, int]:
    """Most weight of preferred node affinity."""
    terms = affinity(pod, "nodeAffinity").get("preferredDuringSchedulingIgnoredDuringExecution", [])
    raw = {
        name(node): sum(term["weight"] for term in terms if term_matches(term["preference"], node))
        for node in nodes
    }
    top = max(raw.values())
    return {k: 100 * v // top if top else 0 for k, v in raw.items()}


def totals(world: World, pod: Body, nodes: list[Body]) -> dict[str, int]:
    """All scores with the default profile's weights."""
    soft, wishes = soft_taints(pod, nodes), node_wishes(pod, nodes)
    spread, near = spreading.scores(world, pod, nodes), neighbours.scores(world, pod, nodes)
    return {
        name(node): 3 * soft[name(node)]
        + 2 * (wishes[name(node)] + spread[name(node)] + near[name(node)])
        + least_allocated(world, pod, node)
        + balanced(world, pod, node)
        + image_locality(world, pod, node)
        + load.score(world, pod, node)
        + numa.score(world, pod, node)
        for node in nodes
    }
