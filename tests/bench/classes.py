"""Many classes of pods, pods that preempt, nodes that come and go; memory of a node and of a pod.

* classes: the whole cycle with all default plugins where so many classes of pods come in turn;
* preemption: upstream's PreemptionBasic, each pod evicting others for its place;
* churn: upstream's SchedulingWithMixedChurn: nodes and large pods come and go meanwhile;
* memory: what a node and a pod with a place cost, against their own JSON.

Reference of the first three: the full scan of all nodes in C, as for the other shapes.
"""

from __future__ import annotations

import functools
import gc
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import cycle, profile
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.sim import shapes, simulation
from tests.bench import gate, scheduler

_NODES, _PODS, _PREEMPTED = 5000, 2000, 1000
#: In full scans in C. A preemption asks the nodes that changed why they do not take the pod, and
#: looks at a hundred of which is remembered who would go: 0.37 ms.
FEW, MANY, ALL, PREEMPTION, CHURN = 80.0, 260.0, 450.0, 680.0, 40.0
#: In bytes of JSON: of a node that says what it has, and of a pod that asks for amounts.
NODE, POD = 8.0, 2.5
#: Pods between two changes of the cluster: 1 s at the pace that upstream asks for.
_BETWEEN = 265
_PAGE = 4096


def of_classes(classes: int, pods: int) -> float:
    """CPU time of a pod where so many classes come in turn."""
    bodies = [*shapes.generate("SchedulingBasic", _NODES, pods)]
    numbers = iter(range(pods))
    for body in bodies:
        if body["kind"] == "Pod":
            labels = {"class": str(next(numbers) % classes)}
            body["metadata"] = {**body["metadata"], "labels": labels}
    tried = simulation.Simulation(inventory.load(bodies), ties=False)
    del bodies
    gc.collect()
    start = time.process_time()
    tried.run()
    return (time.process_time() - start) / pods


def _preempting() -> float:
    loaded = inventory.load(shapes.generate("PreemptionBasic", _PREEMPTED, _PREEMPTED))
    tried = simulation.Simulation(loaded, ties=False)
    gc.collect()
    start = time.process_time()
    result = tried.run()
    spent = time.process_time() - start
    if not result.preemptions or len(result.placements) != _PREEMPTED:
        raise ValueError(f"{len(result.preemptions)} preempted, {len(result.placements)} placed")
    return spent / _PREEMPTED


def _churning() -> float:
    """Each second a node comes, one goes, and a pod is refused that fits nowhere."""
    bodies = [*shapes.generate("SchedulingBasic", _NODES, _PODS)]
    template = next(body for body in bodies if body["kind"] == "Node")
    loaded = inventory.load(bodies)
    decisions = cycle.Cycle(loaded.columns, profile.default())
    large = loaded.decoder.decode(_large(), 0)
    gc.collect()
    start = time.process_time()
    for number, pod in enumerate(loaded.pending):
        if number % _BETWEEN == 0:
            meta = {**template["metadata"], "name": f"churn-{number}"}
            loaded.columns.put(nodes.decode({**template, "metadata": meta}))
            if decisions.choose(large) < 0:
                decisions.failure(large)
            if number:
                loaded.columns.drop(f"churn-{number - _BETWEEN}")
        loaded.columns.place(pod, decisions.choose(pod))
    return (time.process_time() - start) / len(loaded.pending)


def _large() -> dict[str, Any]:
    asked = {"requests": {"cpu": "9999"}}
    return {
        "metadata": {"name": "large", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "resources": asked}], "priority": 10},
    }


def few() -> gate.Ratio:
    """Forty classes in turn."""
    ours = functools.partial(of_classes, 40, _PODS)
    return scheduler.against_c("cycle, 40 classes in turn", ours, _NODES, FEW)


def many() -> gate.Ratio:
    """A thousand classes in turn."""
    ours = functools.partial(of_classes, 1000, 2 * _PODS)
    return scheduler.against_c("cycle, 1 000 classes in turn", ours, _NODES, MANY, repeats=2)


def every() -> gate.Ratio:
    """Each pod of a class of its own: more than are kept, so that each has its view built."""
    ours = functools.partial(of_classes, 5000, 5000)
    return scheduler.against_c("cycle, 5 000 classes", ours, _NODES, ALL, repeats=1)


def preemption() -> gate.Ratio:
    """Each pod makes its own place."""
    return scheduler.against_c(
        *("cycle, preemption", _preempting, _PREEMPTED, PREEMPTION), repeats=3
    )


def churn() -> gate.Ratio:
    """Plain pods, while nodes come and go."""
    return scheduler.against_c("cycle, mixed churn", _churning, _NODES, CHURN)


def node_memory() -> gate.Ratio:
    """Resident memory of a node."""
    return _memory("a node", NODE, pods=False)


def pod_memory() -> gate.Ratio:
    """Resident memory of a pod that has its place."""
    return _memory("a pod with its place", POD, pods=True)


def _memory(name: str, limit: float, *, pods: bool) -> gate.Ratio:
    """In a process of its own: nothing of it may have been used before."""
    words = [sys.executable, "-m", "tests.bench.classes", "pods" if pods else "nodes"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    ours, reference = (float(number) for number in done.stdout.split())
    return gate.Ratio(
        name=f"memory of {name}",
        ours=ours,
        reference=reference,
        limit=limit,
        unit="bytes",
        against="its JSON",
    )


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def _weigh(*, pods: bool) -> tuple[float, float]:
    """Bytes of one object in the scheduler, and of its JSON."""
    count = 20_000 if pods else 10_000
    sizes = (_PODS, count) if pods else (count, 1)
    # What is loaded once belongs to neither.
    simulation.Simulation(
        inventory.load(shapes.generate("SchedulingBasic", 10, 10)), ties=False
    ).run()
    several = [*shapes.generate("SchedulingBasic", *sizes)]
    kind = "Pod" if pods else "Node"
    mine = [json.dumps(body) for body in several if body["kind"] == kind]
    loaded = inventory.load([body for body in several if pods and body["kind"] != "Pod"])
    del several
    before = _resident()
    for number, text in enumerate(mine):
        if pods:
            pod = loaded.decoder.decode(json.loads(text), number)
            loaded.columns.place(pod, number % _PODS)
        else:
            loaded.columns.put(nodes.decode(json.loads(text)))
    return (_resident() - before) / count, sum(map(len, mine)) / count


if __name__ == "__main__":
    print(*_weigh(pods=sys.argv[1] == "pods"))
