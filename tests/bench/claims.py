"""One device among 8 on each of 5 000 nodes: the pod after another that asks for the same.

Covers: the answers of all nodes when one node has changed, against a search on all of them.
Does not cover: the plugin around it, CEL.
"""

from __future__ import annotations

import statistics
import time

from koordlet.scheduler.claims import (
    allocator,
    demand,
    devices_in_use,
    node_answers,
    pools,
    results,
)
from koordlet.scheduler.objects import device_classes, resource_claims, resource_slices
from tests.bench import gate
from tests.kit import device_claims as kit

NODES, DEVICES, PODS = 5000, 8, 20
LIMIT = 0.05


class _Any:
    """Selects every device."""

    def __init__(self, expression: str) -> None:
        self._expression = expression

    def matches(self, _device: resource_slices.SliceDevice, _driver: str) -> bool:
        return bool(self._expression)


def next_pod() -> gate.Ratio:
    """The median of some pods, each of which takes a device on another node."""
    book, in_use = pools.PoolBook(), devices_in_use.DevicesInUse()
    nodes: dict[str, dict[str, str]] = {f"n{n}": {} for n in range(NODES)}
    for node, labels in nodes.items():
        devices = [kit.device(f"g{n}", {"index": n}) for n in range(DEVICES)]
        book.put(resource_slices.decode(kit.resource_slice(devices, node=node)))
        book.view(node, labels)
    answers = node_answers.NodeAnswers(book, in_use)
    classes = {"gpu": device_classes.decode(kit.device_class("gpu", "true"))}
    spent = []
    for node in list(nodes)[: PODS + 1]:
        began = time.process_time()
        claim = resource_claims.decode(kit.claim(kit.request()))
        wanted = demand.prepare([claim], classes, _Any)
        assert answers.of(wanted, nodes)[node] == ""
        solution = allocator.search(wanted, book.view(node, nodes[node]), in_use)
        (made,) = results.allocations(wanted, solution, node, str)
        in_use.add(made)
        spent.append(time.process_time() - began)
    return gate.Ratio(
        name="claims.next_pod",
        ours=statistics.median(spent[1:]),
        reference=spent[0],
        limit=LIMIT,
        unit="CPU s",
        against="a search on every node",
    )
