"""May this pod run on this node, and if not, why."""

from __future__ import annotations

from tests.oracle import load, neighbours, numa, spreading, volumes
from tests.oracle.messages import Verdict
from tests.oracle.objects import (
    Amounts,
    Body,
    add,
    name,
    repelled,
    requests,
    required_terms,
    room,
    tolerated,
    wants,
)
from tests.oracle.world import World

CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
ANY = ("", "0.0.0.0")  # noqa: S104 - the address that collides with all


def candidates(pod: Body) -> set[str] | None:
    """The only nodes that the affinity's fields allow, where every term names some."""
    terms = required_terms(pod)
    allowed: set[str] = set()
    for term in terms or []:
        named = [
            set(field["values"])
            for field in term.get("matchFields", [])
            if field["key"] == "metadata.name" and field["operator"] == "In"
        ]
        if not named:
            return None
        allowed |= set.intersection(*named)
    return allowed if terms else None


def ports(pod: Body) -> list[tuple[str, str, int]]:
    """Protocol, address and number of the host ports that run beside each other."""
    spec = pod["spec"]
    beside = [
        container
        for container in spec.get("initContainers", [])
        if container.get("restartPolicy") == "Always"
    ]
    return [
        (port.get("protocol", "TCP"), port.get("hostIP", ""), port["hostPort"])
        for container in spec["containers"] + beside
        for port in container.get("ports", [])
        if port.get("hostPort", 0) > 0
    ]


def collide(left: tuple[str, str, int], right: tuple[str, str, int]) -> bool:
    """Two host ports exclude each other."""
    equal = (left[0], left[2]) == (right[0], right[2])
    return equal and (left[1] == right[1] or left[1] in ANY or right[1] in ANY)


def used(pods: list[Body], *, assume: bool = False) -> Amounts:
    """What pods ask for together."""
    total: Amounts = {}
    for pod in pods:
        total = add(total, requests(pod, assume=assume))
    return total


def fit(world: World, pod: Body, node: Body) -> Verdict:
    """Room for the pod."""
    free, taken = room(node), used(world.on[name(node)])
    reasons, helpful = [], True
    if len(world.on[name(node)]) + 1 > free.get("pods", 0):
        reasons.append("Too many pods")
    for resource, wanted in requests(pod).items():
        if wanted > 0 and wanted > free.get(resource, 0) - taken.get(resource, 0):
            reasons.append(f"Insufficient {resource}")
            helpful &= wanted <= free.get(resource, 0)
    return Verdict(reasons, helpful)


def alone(pod: Body, node: Body) -> str:
    """The first reason that no preemption removes, of those that the node itself gives."""
    if node["spec"].get("unschedulable") and not tolerated(pod, CORDONED):
        return "node(s) were unschedulable"
    if repelled(pod, node):
        return "node(s) had untolerated taint(s)"
    if not wants(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


#: Of those that look at pods, in their order.
RULES = (
    *(fit, load.verdict, numa.verdict),
    *(volumes.restrictions, volumes.limits, volumes.binding, volumes.zone),
    *(spreading.verdict, neighbours.verdict),
)


def check(world: World, pod: Body, node: Body) -> Verdict:
    """All filters in their order; the first that objects speaks."""
    named = candidates(pod)
    if named is not None and name(node) not in named:
        return Verdict(["node(s) didn't satisfy plugin(s) [NodeAffinity]"], helpful=False)
    if reason := volumes.refusal(world, pod):
        return Verdict([reason], helpful=False)
    if reason := alone(pod, node):
        return Verdict([reason], helpful=False)
    taken = [port for neighbour in world.on[name(node)] for port in ports(neighbour)]
    if any(collide(wanted, port) for wanted in ports(pod) for port in taken):
        reason = "node(s) didn't have free ports for the requested pod ports"
        return Verdict([reason], helpful=True)
    for rule in RULES:
        verdict = Verdict(*rule(world, pod, node))
        if verdict.reasons:
            return verdict
    return Verdict([], helpful=True)
