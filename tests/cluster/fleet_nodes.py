"""What only few nodes of a fleet are: without room of some kind, huge, odd, about to go.

Each rule changes a node that the oracle's maker made, in its place.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.oracle.objects import Body

#: Who has it stays when it is deleted, until the finalizer goes.
HELD = "example.com/held"


def vary_node(node: Body, roll: random.Random) -> None:
    """Let each rule have its chance."""
    for chance, rule in _RULES:
        if roll.random() < chance:
            rule(node, roll)


def _huge_pages(node: Body, _: random.Random) -> None:
    _room(node)["hugepages-2Mi"] = "128Mi"


def _no_pods(node: Body, _: random.Random) -> None:
    _room(node)["pods"] = "0"


def _without(node: Body, roll: random.Random) -> None:
    del _room(node)[roll.choice(("pods", "cpu", "memory", "ephemeral-storage"))]


def _odd_numbers(node: Body, roll: random.Random) -> None:
    """As much as others in numbers that have to be rounded, or that no file of a kubelet has."""
    room = _room(node)
    room["cpu"] = roll.choice(("4e0", "3999500u", "3.5", "0.0321k"))
    room["memory"] = roll.choice(("8589934592500m", "7.45Gi", "8e9", "16777216Ki"))


def _huge(node: Body, _: random.Random) -> None:
    _room(node).update(cpu="1M", memory="30P")


def _sizes(node: Body, roll: random.Random) -> None:
    node["metadata"]["labels"]["size"] = roll.choice(("007", "x", "", "0", "99999999999999999999"))


def _ending(node: Body, _: random.Random) -> None:
    node["metadata"]["finalizers"] = [HELD]


def _cordoned_by_hand(node: Body, roll: random.Random) -> None:
    """The taint without the field, or one without a value."""
    key = roll.choice(("node.kubernetes.io/unschedulable", "a"))
    node["spec"]["taints"].append({"key": key, "effect": "NoSchedule"})


def _room(node: Body) -> Body:
    room: Body = node["status"]["allocatable"]
    return room


_RULES: tuple[tuple[float, Callable[[Body, random.Random], None]], ...] = (
    (0.30, _huge_pages),
    (0.03, _no_pods),
    (0.08, _odd_numbers),
    (0.02, _huge),
    (0.05, _without),
    (0.08, _sizes),
    (0.04, _ending),
    (0.03, _cordoned_by_hand),
)
