"""Claims of one device among 8 on each of 5 000 nodes: what a pod with one costs.

Covers: the cycle with a claim against the cycle without, in one cluster; the answers of all nodes
when one has changed, against a search on all of them. Does not cover: writing claims.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Iterator
from typing import Any

from koordlet.cli import scheduler
from koordlet.scheduler.claims import allocator, demand, devices_in_use, node_answers, pools
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.objects import device_classes, resource_claims, resource_slices
from koordlet.scheduler.sim import shapes, simulation
from tests.bench import gate
from tests.kit import claim_search
from tests.kit import device_claims as kit

NODES, DEVICES, PODS = 5000, 8, 20
LIMIT = 0.05
#: A pod with a claim in pods without: what is held, and what it shall be.
CYCLE, GOAL = 4.0, 3.0
_WORKLOAD = "SchedulingWithResourceClaimTemplate"
#: Pods of the cycle: those before have every node looked at once; of each slice the fastest counts.
_BEFORE, _MEASURED, _SLICE, _REPEATS = 5000, 2000, 500, 3


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
    classes = {"gpu": device_classes.decode(kit.device_class("gpu", "true"))}
    claim = resource_claims.decode(kit.claim(kit.request()))
    wanted = demand.prepare([claim], classes, _Any)
    answers = node_answers.NodeAnswers(wanted, book, in_use, claim_search.ENDLESS)
    spent = []
    for node in list(nodes)[: PODS + 1]:
        began = time.process_time()
        assert not any(answer.why_not for answer in answers.of(nodes.items()))
        solution = allocator.search(
            wanted, book.view(node, nodes[node]), in_use, claim_search.ENDLESS
        )
        in_use.add(_taken(solution))
        spent.append(time.process_time() - began)
    return gate.Ratio(
        name="claims.next_pod",
        ours=statistics.median(spent[1:]),
        reference=spent[0],
        limit=LIMIT,
        unit="CPU s",
        against="a search on every node",
    )


def _taken(solution: allocator.Solution) -> resource_claims.ClaimAllocation:
    (choice,) = solution.devices
    driver, pool, device = choice.device.id
    result = resource_claims.AllocatedDevice("r", driver, pool, device)
    return resource_claims.ClaimAllocation((result,))


def _cycle(*, claims: bool) -> Iterator[float]:
    """CPU seconds of each slice of pods in a cluster with devices, with a claim or without."""
    bodies: list[dict[str, Any]] = list(shapes.generate(_WORKLOAD, NODES, _BEFORE + _MEASURED))
    for body in bodies:
        if body["kind"] == "Pod" and not claims:
            body["spec"] = {k: v for k, v in body["spec"].items() if k != "resourceClaims"}
    tried = simulation.Simulation(inventory.load(bodies), ties=False)
    times: dict[int, float] = {}
    # Whether the collector walks the whole cluster meanwhile is chance, and no pod's cost.
    gc.collect()
    gc.freeze()
    before = gc.get_threshold()
    gc.set_threshold(scheduler.YOUNG_OBJECTS)  # as the scheduler's process has it
    tried.run(lambda done, _total: times.update({done: time.process_time()}))
    gc.set_threshold(*before)
    gc.unfreeze()
    for first in range(_BEFORE, _BEFORE + _MEASURED, _SLICE):
        yield times[first + _SLICE] - times[first]


def cycle() -> gate.Ratio:
    """The whole cycle of a pod that gets a device."""
    ours, reference = gate.sliced(
        lambda: _cycle(claims=True), lambda: _cycle(claims=False), _REPEATS
    )
    return gate.Ratio(
        name="claims.cycle",
        ours=ours / _MEASURED * 1e6,
        reference=reference / _MEASURED * 1e6,
        limit=CYCLE,
        goal=GOAL,
        unit="CPU us a pod",
        against="a pod without claims",
    )
