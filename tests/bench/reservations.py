"""Pods beside reservations: what those cost that mean somebody else, and what using them costs.

* unrelated: one pod among 10 000 reservations for others, against the same pod among none;
* used: 1 000 reservations on 5 000 nodes are placed, and 1 000 pods draw on them, against 2 000
  plain pods of the same requests, both with the resources' plugins and the reservations' alone.
"""

from __future__ import annotations

import gc
import time
from typing import Any

from koordlet.scheduler import cluster, cycle, profile, shapes
from koordlet.scheduler.cluster import Cluster
from koordlet.scheduler.plugins import reservation, resources
from koordlet.scheduler.pods import Pod
from koordlet.scheduler.reservation.register import Register
from tests.bench import gate

UNRELATED, USED = 1.2, 2.0
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


def _scheduler(loaded: Cluster) -> tuple[cycle.Cycle, Register, reservation.Reservation]:
    """The kernel of the scheduler's benchmark, and reservations."""
    mine, fit = reservation.Reservation({}), resources.NodeResourcesFit({})
    even = resources.NodeResourcesBalancedAllocation({})
    register = Register(loaded.columns, loaded.decoder)
    mine.book = register.book
    scores = ((mine, 5000), (fit, 1), (even, 1))
    small = profile.Profile("kernel", (mine, fit, even), (mine, fit), scores)
    return cycle.Cycle(loaded.columns, small), register, mine


def _pods(
    loaded: Cluster, one: cycle.Cycle, mine: reservation.Reservation, pods: list[Pod]
) -> float:
    nodes = loaded.columns.nodes
    gc.collect()
    start = time.process_time()
    for pod in pods:
        row = one.choose(pod)
        mine.prepare(pod, getattr(nodes[row], "name", ""))
        loaded.columns.place(pod, row)
    return time.process_time() - start


def _among(others: int) -> float:
    """CPU time of a plain pod among reservations of others."""
    loaded = cluster.load(shapes.generate("SchedulingBasic", _NODES, _PODS))
    one, register, mine = _scheduler(loaded)
    names = [node.name for node in loaded.columns.nodes if node is not None]
    for number in range(others):
        body = _reservation(f"r{number}", f"a{number}", node=names[number % _NODES])
        register.put(body)
    first, *rest = loaded.pending
    loaded.columns.place(first, one.choose(first))
    return _pods(loaded, one, mine, rest) / len(rest)


def _drawing() -> float:
    """CPU time of a reservation and of the pod that draws on it, each."""
    loaded = cluster.load(_labelled([*shapes.generate("SchedulingBasic", _NODES, _MINE)]))
    one, register, mine = _scheduler(loaded)
    stand_ins = [register.put(_reservation(f"r{number}", "mine")) for number in range(_MINE)]
    start = time.process_time()
    for stand_in in stand_ins:
        if stand_in is not None:
            register.placed(stand_in, one.choose(stand_in))
    spent = time.process_time() - start
    spent += _pods(loaded, one, mine, loaded.pending)
    drawn = sum(bool(pod.draws_on) for pod in loaded.pending)
    if drawn != _MINE:
        raise ValueError(f"{drawn} of {_MINE} pods drew on a reservation")
    return spent / (2 * _MINE)


def _labelled(bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for body in bodies:
        if body["kind"] == "Pod":
            body["metadata"] = {**body["metadata"], "labels": {"app": "mine"}}
    return bodies


def measure() -> list[gate.Ratio]:
    """Both budgets."""
    among, alone = gate.interleaved(lambda: _among(_OTHERS), lambda: _among(0))
    drawing, plain = gate.interleaved(_drawing, lambda: _among(0))
    return [
        gate.Ratio(
            name="a pod among 10 000 unrelated reservations, 5000 nodes",
            ours=among * 1e6,
            reference=alone * 1e6,
            limit=UNRELATED,
            unit="CPU us a pod",
            against="among none",
        ),
        gate.Ratio(
            name="1 000 reservations and their pods, 5000 nodes",
            ours=drawing * 1e6,
            reference=plain * 1e6,
            limit=USED,
            unit="CPU us each",
            against="plain pods",
        ),
    ]
