"""Balance and cost of three ways to deschedule, simulated: ``docs/images/descheduling.svg``.

Covers: a cluster after churn, rounds over it, what each costs; the picture of a recorded result.
Does not cover: what a strategy does (``koordlet.scheduler.descheduling``, which is what runs here).

    python -m tools.docs.descheduling_balance --record   # simulates: minutes of CPU
    python -m tools.docs.descheduling_balance            # draws docs/images/descheduling.svg anew

The model: each pod uses a share of its request that is its workload's, and that swings with a
period of an hour. Churn has left half of the nodes with three quarters of the pods. A round comes
each minute and moves at most ``--moves`` pods, two of a node. The scheduler sends each where most
is unrequested. It is gone for ``DOWN`` seconds, and a minute longer where nothing has room; with
room held first it stays then. Reports are a minute old, or live.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.round import DeschedulingRound, EvictionProposal
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.objects.usage import NodeUsage

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
    ("LowNodeLoad, NodeMetric", "LowNodeLoad", {**_BOUNDS, **_AGAIN}, False, False),
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

    def percents(self, at: float) -> list[float]:
        """The use of each node."""
        return [
            sum(self._known[key].use(at) for key in pods) / (_CPUS * 10)
            for pods in self.state.columns.pods
        ]

    def step(self, at: float, most: int) -> None:
        """One round; what was moved is there again when the next comes."""
        seen = at if self._live else at - _MINUTE
        self.state = dataclasses.replace(
            self.state,
            now=Clock(wall=_NOW + at, steady=at),
            usages=self._usages(seen),
            _residents={},
        )
        limits = dataclasses.replace(self._settings.limits, total=most, per_node=2)
        played = DeschedulingRound(self._settings.profiles, limits, self.state)
        gone: list[EvictionProposal] = []

        def answer(proposal: EvictionProposal) -> bool:
            gone.append(proposal)
            return True

        played.play(answer)
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


def record(nodes: int, pods: int, rounds: int, most: int, ways: Sequence[Any]) -> dict[str, Any]:
    """Simulate, and what came of it."""
    bodies, known = _cluster(nodes, pods, random.Random(7))  # noqa: S311 -- the same each time
    runs = []
    for way in ways:
        run, points = _Run(bodies, known, way), []
        for number in range(rounds + 1):
            at = number * _MINUTE
            percents = run.percents(at)
            mean = sum(percents) / len(percents)
            spread = math.sqrt(sum((each - mean) ** 2 for each in percents) / len(percents))
            hot = sum(each > _HOT for each in percents)
            points.append([number, round(spread, 2), hot, run.moves, round(run.down)])
            run.step(at, most)
        sys.stderr.write(f"{run.name}: {points[0][1:3]} -> {points[-1][1:]}\n")
        runs.append({"name": run.name, "points": points})
    return {"nodes": nodes, "pods": pods, "movesPerRound": most, "hotPercent": _HOT, "runs": runs}


# The picture.

_WIDTH, _LEFT, _RIGHT, _HEIGHT, _GAP = 960, 60, 230, 130, 46
_COLOURS = ("#9aa0a6", "#d98c21", "#1b6ca8")
_PANELS = (
    (1, "spread of node use, percentage points (standard deviation)"),
    (2, "nodes above the high threshold"),
    (3, "pods moved"),
)


def picture(result: Mapping[str, Any]) -> str:
    """The recorded result as a picture."""
    title = f"{result['nodes']} nodes, {result['pods']} pods after churn, minute by minute"
    parts = [f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>']
    for place, (column, label) in enumerate(_PANELS):
        top = 60 + place * (_HEIGHT + _GAP)
        parts += _panel(result["runs"], column, label, top)
    height = 60 + len(_PANELS) * (_HEIGHT + _GAP)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" role="img" style="font:12px sans-serif;fill:#202124">\n'
        f"<title>{escape(title)}</title>\n{body}\n</svg>\n"
    )


def _panel(runs: Sequence[Mapping[str, Any]], column: int, label: str, top: int) -> Iterator[str]:
    right = _WIDTH - _RIGHT
    most = max(point[column] for run in runs for point in run["points"]) or 1
    last = max(point[0] for run in runs for point in run["points"]) or 1
    yield f'<text x="{_LEFT}" y="{top - 8}">{escape(label)}</text>'
    for part in range(3):
        y = top + _HEIGHT - _HEIGHT * part / 2
        yield f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e0e0e0"/>'
        value = f"{most * part / 2:.4g}"
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value}</text>'
    for place, run in enumerate(runs):
        colour = _COLOURS[place]
        path = " L".join(
            f"{_LEFT + (right - _LEFT) * point[0] / last:.1f}"
            f" {top + _HEIGHT - _HEIGHT * point[column] / most:.1f}"
            for point in run["points"]
        )
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        y = top + 14 + 18 * place
        ends = f'x1="{right + 12}" x2="{right + 32}" y1="{y - 4}" y2="{y - 4}"'
        yield f'<line {ends} stroke="{colour}"/>'
        yield f'<text x="{right + 38}" y="{y}">{escape(str(run["name"]))}</text>'


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate where that is wanted, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="simulate anew")
    parser.add_argument(
        "--way",
        type=int,
        action="append",
        choices=range(len(_WAYS)),
        help="only this one, by place",
    )
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--moves", type=int, default=200, help="pods that a round may move")
    args = parser.parse_args(argv)
    if args.record:
        ways = [_WAYS[place] for place in args.way or range(len(_WAYS))]
        result = record(args.nodes, args.pods, args.rounds, args.moves, ways)
        if args.way:
            # The others stay as they were recorded.
            kept = json.loads(RECORD.read_text(encoding="utf-8"))["runs"] if RECORD.exists() else []
            several = {run["name"]: run for run in (*kept, *result["runs"])}
            result["runs"] = [several[way[0]] for way in _WAYS if way[0] in several]
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(result, separators=(",", ":")) + "\n", encoding="utf-8")
    PICTURE.write_text(picture(json.loads(RECORD.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
