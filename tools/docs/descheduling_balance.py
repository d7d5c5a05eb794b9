"""Balance and cost of several ways to deschedule, simulated: ``docs/images/descheduling.svg``.

Covers: a cluster after churn, rounds over it, what each costs; the picture of a recorded result.
Does not cover: what a strategy does (``koordlet.scheduler.descheduling``, which is what runs here).

    python -m tools.docs.descheduling_balance --record   # simulates: minutes of CPU
    python -m tools.docs.descheduling_balance            # draws docs/images/descheduling.svg anew

The model: each pod uses a share of its request that is its workload's, and that swings with a
period of an hour. Churn has left half of the nodes with three quarters of the pods. A round comes
each minute and moves at most ``--moves`` pods, two of a node. The scheduler sends each where most
is unrequested. It is gone for ``DOWN`` seconds, and a minute longer where nothing has room; with
room held first it stays then. Reports are live, or show the cluster as it was a minute ago: what
moved since is in none of them. There are several clusters, by their seeds; the mean is drawn.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.round import DeschedulingRound, EvictionProposal
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.objects.usage import NodeUsage
from tools.docs import line_figure

_ROOT = Path(__file__).parents[2]
RECORD = _ROOT / "docs" / "data" / "descheduling.json"
PICTURE = _ROOT / "docs" / "images" / "descheduling.svg"
#: Seconds that a moved pod does not serve: its end, and its start elsewhere.
DOWN = 40.0
_NOW, _MINUTE, _CPUS = 1_800_000_000.0, 60.0, 20
_HOT = 55.0
_BOUNDS = {"lowThresholds": {"cpu": 35}, "highThresholds": {"cpu": _HOT}}
_AGAIN = {"anomalyCondition": {"consecutiveAbnormalities": 2}}
#: Name, strategy, its arguments, whether reports are live, whether room is held first.
_WAYS: tuple[tuple[str, str, Mapping[str, Any], bool, bool], ...] = (
    (
        *("LowNodeUtilization", "LowNodeUtilization"),
        *({"thresholds": {"cpu": 40}, "targetThresholds": {"cpu": 60}}, False, False),
    ),
    ("LowNodeLoad, a minute old", "LowNodeLoad", {**_BOUNDS, **_AGAIN}, False, False),
    ("LowNodeLoad, live", "LowNodeLoad", {**_BOUNDS, **_AGAIN}, True, False),
    ("LowNodeLoad, live, room first", "LowNodeLoad", {**_BOUNDS, **_AGAIN}, True, True),
)


@dataclass(frozen=True, slots=True)
class _Pod:
    """A pod that is known by its use."""

    request: int
    share: float
    phase: float

    def use(self, at: float) -> float:
        """Milli-CPU at a moment."""
        swing = 1 + 0.25 * math.sin(2 * math.pi * at / 3600 + self.phase)
        return self.request * self.share * swing


def _cluster(nodes: int, pods: int, chance: random.Random) -> tuple[list[Any], dict[str, _Pod]]:
    workloads = [
        (chance.choice((500, 1000, 1000, 2000)), min(1.1, chance.lognormvariate(-0.6, 0.5)))
        for _ in range(pods // 25)
    ]
    known, bodies = {}, []
    for number in range(pods):
        request, share = workloads[number % len(workloads)]
        half = nodes // 2
        row = chance.randrange(half) if number % 4 else half + chance.randrange(half)
        known[f"default/p{number}"] = _Pod(request, share, chance.random() * 2 * math.pi)
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"w{number % len(workloads)}",
        }
        spec = {"requests": {"cpu": f"{request}m", "memory": "256Mi"}}
        bodies.append({
            "kind": "Pod",
            "metadata": {
                "name": f"p{number}", "namespace": "default", "uid": f"u{number}",
                "creationTimestamp": moment.spell(_NOW - 86400),
                "ownerReferences": [{**owner, "uid": owner["name"], "controller": True}],
            },
            "spec": {"nodeName": f"n{row}", "containers": [{"name": "c", "resources": spec}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        })  # fmt: skip
    room = {"cpu": str(_CPUS), "memory": "128Gi", "pods": "110"}
    for row in range(nodes):
        ready = [{"type": "Ready", "status": "True"}]
        bodies.append({
            "kind": "Node", "metadata": {"name": f"n{row}"},
            "status": {"allocatable": room, "conditions": ready},
        })  # fmt: skip
    return bodies, known


class _Run:
    """One way over one cluster."""

    def __init__(self, bodies: Sequence[Any], known: Mapping[str, _Pod], way: Any) -> None:
        self.name, strategy, arguments, self._live, self._reserves = way
        self._known = known
        self.state: ClusterState = dump.state(bodies, _NOW)[0]
        plugins = {"balance": {"enabled": [strategy]}}
        evictor = {"name": "DefaultEvictor", "args": {"nodeFit": True}}
        chosen = [{"name": strategy, "args": dict(arguments)}, evictor]
        profile = {"name": "p", "plugins": plugins, "pluginConfig": chosen}
        body = {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy"}
        self._settings = configuration.read({**body, "profiles": [profile]}, "simulation")
        self.moves, self.down = 0, 0.0
        self._before = self._usages(-_MINUTE)

    def percents(self, at: float) -> list[float]:
        """The use of each node."""
        return [
            sum(self._known[key].use(at) for key in pods) / (_CPUS * 10)
            for pods in self.state.columns.pods
        ]

    def step(self, at: float, most: int) -> None:
        """One round; what was moved is there again when the next comes."""
        usages = self._usages(at)
        self.state = dataclasses.replace(
            self.state,
            now=Clock(wall=_NOW + at, steady=at),
            usages=usages if self._live else self._before,
            _residents={},
        )
        self._before = usages
        limits = dataclasses.replace(self._settings.limits, total=most, per_node=2)
        played = DeschedulingRound(self._settings.profiles, limits, self.state)
        gone: list[EvictionProposal] = []
        played.play(gone.append)
        landing = Landing(self.state)
        for proposal in gone:
            self._move(proposal, landing)

    def _usages(self, at: float) -> dict[str, NodeUsage]:
        usages = {}
        for row, pods in enumerate(self.state.columns.pods):
            used = {key: {"cpu": int(self._known[key].use(at))} for key in pods}
            usages[self.state.node(row).name] = NodeUsage(
                updated=_NOW + at, reported=True, whole=True, fed=self._live, pods=used,
                node={"cpu": sum(each["cpu"] for each in used.values())},
            )  # fmt: skip
        return usages

    def _move(self, proposal: EvictionProposal, landing: Landing) -> None:
        columns, pod = self.state.columns, proposal.resident.pod
        row = landing.best(proposal.resident)
        if row < 0 and self._reserves:
            return  # its job ends, and nobody was evicted
        self.moves += 1
        self.down += DOWN
        if row < 0:
            self.down += _MINUTE
            return
        columns.remove(pod)
        columns.place(dataclasses.replace(pod, node=self.state.node(row).name), row)


def _points(run: _Run, rounds: int, most: int) -> list[list[float]]:
    """Before each round: its number, spread, hot nodes, moves, seconds of disruption."""
    points = []
    for number in range(rounds + 1):
        at = number * _MINUTE
        percents = run.percents(at)
        mean = sum(percents) / len(percents)
        spread = math.sqrt(sum((each - mean) ** 2 for each in percents) / len(percents))
        hot = sum(each > _HOT for each in percents)
        points.append([number, round(spread, 2), hot, run.moves, round(run.down)])
        run.step(at, most)
    return points


def simulate(size: Mapping[str, int], rounds: int, seed: int, way: Any) -> dict[str, Any]:
    """One way over one cluster."""
    bodies, known = _cluster(size["nodes"], size["pods"], random.Random(seed))  # noqa: S311 -- the same each time
    points = _points(_Run(bodies, known, way), rounds, size["movesPerRound"])
    sys.stderr.write(f"{way[0]}, seed {seed}: {points[0][1:3]} -> {points[-1][1:]}\n")
    return {"name": way[0], "seed": seed, "points": points}


def _recorded() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return known


def _record(size: Mapping[str, int], args: argparse.Namespace) -> None:
    """Simulate the ways that are wanted; others of the same size stay as they were recorded."""
    known = _recorded()
    same = all(known.get(key) == value for key, value in size.items())
    runs = {(run["name"], run["seed"]): run for run in known["runs"]} if same else {}
    seeds = range(1, args.seeds + 1)
    for place, seed in itertools.product(args.way or range(len(_WAYS)), seeds):
        way = _WAYS[place]
        runs[way[0], seed] = simulate(size, args.rounds, seed, way)
    ordered = itertools.product((way[0] for way in _WAYS), seeds)
    kept = [runs[key] for key in ordered if key in runs]
    text = json.dumps({**size, "hotPercent": _HOT, "runs": kept}, separators=(",", ":"))
    RECORD.write_text(text + "\n", encoding="utf-8")


def means(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """By way, the mean of its seeds, point by point."""
    several = []
    for name in dict.fromkeys(run["name"] for run in runs):
        seeds = [run["points"] for run in runs if run["name"] == name]
        rows = [
            [sum(column) / len(seeds) for column in zip(*points, strict=True)]
            for points in zip(*seeds, strict=True)
        ]
        several.append({"name": name, "points": rows})
    return several


_PANELS = (
    (1, "spread of node use, percentage points (standard deviation)"),
    (2, "nodes above the high threshold"),
    (3, "pods moved"),
)


def picture(result: Mapping[str, Any]) -> str:
    """The recorded result as a picture."""
    title = f"{result['nodes']} nodes, {result['pods']} pods after churn, minute by minute"
    return line_figure.figure(title, means(result["runs"]), _PANELS)


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate where that is wanted, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="simulate anew")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--moves", type=int, default=200, help="pods that a round may move")
    parser.add_argument("--seeds", type=int, default=3, help="clusters of which the mean is drawn")
    parser.add_argument(
        "--way", type=int, action="append", choices=range(len(_WAYS)),
        help="only this one, by place: the others stay as they were recorded",
    )  # fmt: skip
    args = parser.parse_args(argv)
    if args.record:
        _record({"nodes": args.nodes, "pods": args.pods, "movesPerRound": args.moves}, args)
    PICTURE.write_text(picture(_recorded()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
