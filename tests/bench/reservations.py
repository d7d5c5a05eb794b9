"""Pods beside reservations: what those cost that mean somebody else, and what using them costs.

* unrelated: one pod among 10 000 reservations for others, against the same pod among none;
* placed: 1 000 reservations find their nodes among 5 000, against plain pods of the same requests;
* drawn: 1 000 pods then draw on them, each choosing among all that are left: looking all of them up
  once is in it.

All with the resources' plugins and the reservations' alone, as the scheduler's kernel is measured.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.cluster.inventory import Cluster
from koordlet.scheduler.framework import cycle, profile
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins import balanced_allocation, reservation, resources
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.sim import shapes
from tests.bench import gate

UNRELATED, PLACED, DRAWN = 1.2, 2.0, 5.0
_NODES, _PODS, _OTHERS, _MINE = 5000, 2000, 10_000, 1000


def _reservation(name: str, app: str, *, node: str = "") -> dict[str, Any]:
    asked = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    return {
        "kind": "Reservation",
        "metadata": {"name": name, "uid": name},
        "spec": {
            "template": {"spec": {"containers": [{"name": "c", "resources": asked}]}},
            "owners": [{"labelSelector": {"matchLabels": {"app": app}}}],
        },
        "status": {"phase": "Available", "nodeName": node} if node else {},
    }


def _scheduler(loaded: Cluster) -> tuple[cycle.Cycle, ReservationCache, reservation.Reservation]:
    """The kernel of the scheduler's benchmark, and reservations."""
    mine, fit = reservation.Reservation({}), resources.NodeResourcesFit({})
    even = balanced_allocation.NodeResourcesBalancedAllocation({})
    cache = ReservationCache(loaded.columns, loaded.decoder)
    mine.attach(cache)
    scores = ((mine, 5000), (fit, 1), (even, 1))
    small = profile.Profile("kernel", (mine, fit, even), (mine, fit), scores)
    return cycle.Cycle(loaded.columns, small), cache, mine


def _pods(
    loaded: Cluster, decisions: cycle.Cycle, mine: reservation.Reservation, pods: list[Pod]
) -> float:
    nodes = loaded.columns.nodes
    gc.collect()
    start = time.process_time()
    for pod in pods:
        row = decisions.choose(pod)
        mine.prepare(pod, getattr(nodes[row], "name", ""))
        loaded.columns.place(pod, row)
    return time.process_time() - start


def among(others: int) -> float:
    """CPU time of a plain pod among reservations of others."""
    loaded = inventory.load(shapes.generate("SchedulingBasic", _NODES, _PODS))
    decisions, cache, mine = _scheduler(loaded)
    names = [node.name for node in loaded.columns.nodes if node is not None]
    for number in range(others):
        body = _reservation(f"r{number}", f"a{number}", node=names[number % _NODES])
        cache.put(body)
    first, *rest = loaded.pending
    loaded.columns.place(first, decisions.choose(first))
    return _pods(loaded, decisions, mine, rest) / len(rest)


def _drawing() -> tuple[float, float]:
    """CPU time of a reservation, and of the pod that draws on it."""
    loaded = inventory.load(_labelled([*shapes.generate("SchedulingBasic", _NODES, _MINE)]))
    decisions, cache, mine = _scheduler(loaded)
    reserve_pods = [cache.put(_reservation(f"r{number}", "mine")) for number in range(_MINE)]
    gc.collect()
    start = time.process_time()
    for reserve_pod in reserve_pods:
        if reserve_pod is not None:
            cache.placed(reserve_pod, decisions.choose(reserve_pod))
    spent = time.process_time() - start
    drawing = _pods(loaded, decisions, mine, loaded.pending)
    drawn = sum(bool(pod.draws_on) for pod in loaded.pending)
    if drawn != _MINE:
        raise ValueError(f"{drawn} of {_MINE} pods drew on a reservation")
    return spent / _MINE, drawing / _MINE


def _labelled(bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for body in bodies:
        if body["kind"] == "Pod":
            body["metadata"] = {**body["metadata"], "labels": {"app": "mine"}}
    return bodies


def whole() -> Iterator[gate.Ratio]:
    """A plain pod among reservations of others, a reservation, and a pod that may draw on any."""
    beside, alone, reserve, draw = (
        min(seconds)
        for seconds in zip(
            *((among(_OTHERS), among(0), *_drawing()) for _ in range(gate.REPEATS)), strict=True
        )
    )
    name = f"a pod among {_OTHERS} unrelated reservations, {_NODES} nodes"
    yield _ratio(name, beside, alone, UNRELATED, "the same pod among none")
    yield _ratio(f"a reservation of {_MINE}, {_NODES} nodes", reserve, alone, PLACED, "a plain pod")
    name = f"a pod that draws on one of {_MINE} reservations, {_NODES} nodes"
    yield _ratio(name, draw, alone, DRAWN, "a plain pod")


def _ratio(name: str, ours: float, reference: float, limit: float, against: str) -> gate.Ratio:
    return gate.Ratio(
        name=name,
        ours=ours * 1e6,
        reference=reference * 1e6,
        limit=limit,
        unit="CPU us",
        against=against,
    )
