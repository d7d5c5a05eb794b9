"""The last valid strategies of cluster and node survive restarts; damage costs itself."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.history import series
from koordlet.kubeapi import kinds, objects
from koordlet.model import nodeslo, snapshot, strategies
from koordlet.scheduler.store import adapter
from koordlet.workloads import colocation, gatherer, sloconfig, strategy_holding
from tests.agent.test_saved_history import remembered
from tests.kit import clocks, lives

THRESHOLD = "resourceUsedThresholdWithBE"
CONFIG_KEY = "resource-threshold-config"
GOOD: dict[str, Any] = {"enable": True, "cpuSuppressThresholdPercent": 40}
#: The same strategy by each of its sources: the object, and what spoils it.
STRATEGIES: dict[str, tuple[kinds.Kind, dict[str, Any], dict[str, Any]]] = {
    "NodeSLO": (
        kinds.NODE_SLOS,
        {"metadata": {"name": "n1"}, "spec": {THRESHOLD: GOOD}},
        {"spec": {THRESHOLD: {**GOOD, "cpuSuppressThresholdPercent": 4000}}},
    ),
    sloconfig.NAME: (
        kinds.CONFIG_MAPS,
        {
            "metadata": {"name": sloconfig.NAME, "namespace": sloconfig.NAMESPACE},
            "data": {CONFIG_KEY: json.dumps({"clusterStrategy": GOOD})},
        },
        {"data": {CONFIG_KEY: json.dumps({"clusterStrategy": GOOD})[:-1]}},
    ),
}


class Sources(gatherer.Gatherer):
    """Those of a node, with a store in a file that they open themselves."""

    def __init__(self, file: Path) -> None:
        self.file = adapter.Store(file)
        super().__init__(clocks.Clock(100.0), store=self.file, node="n1")

    async def start(self, patience: float) -> None:
        """Open the file, then ask."""
        await self.file.open()
        await super().start(patience)


class Cluster:
    """Objects in a file, and agents that live beside it one after the other."""

    def __init__(self, ram: Path) -> None:
        self.file = ram / "objects.db"
        self.life = lives.Life(ram, sources=lambda: Sources(self.file))
        self.record = self.life.site.paths.checkpoints / "strategies.json"

    async def _do(self, act: Callable[[adapter.Store], Awaitable[object]]) -> None:
        store = adapter.Store(self.file)
        await store.open()
        await act(store)
        await store.close()

    def create(self, kind: kinds.Kind, body: dict[str, Any]) -> None:
        """An object."""
        asyncio.run(self._do(lambda store: store.create(kind, body)))

    def patch(self, kind: kinds.Kind, body: dict[str, Any], changes: dict[str, Any]) -> None:
        """Change it."""
        ref = objects.Ref(kind, body["metadata"]["name"], body["metadata"].get("namespace", ""))
        asyncio.run(self._do(lambda store: store.patch(ref, objects.Merge(changes))))

    def delete(self, kind: kinds.Kind, body: dict[str, Any]) -> None:
        """Take it away."""
        ref = objects.Ref(kind, body["metadata"]["name"], body["metadata"].get("namespace", ""))
        asyncio.run(self._do(lambda store: store.delete(ref)))

    def lived(self) -> nodeslo.NodeSlo | None:
        """The strategies in force when an agent is ready, which then ends."""
        return self.seen().slo

    def seen(self) -> snapshot.Snapshot:
        """The snapshot of an agent that is ready, which then ends."""
        snapshots: list[snapshot.Snapshot] = []

        async def look(life: lives.Life) -> None:
            await life.ready()
            newest = life.shown.views[-1]
            assert newest is not None
            snapshots.append(newest.snapshot)

        self.life.run(look)
        return snapshots[0]


sources = pytest.mark.parametrize("source", STRATEGIES)


@sources
def test_the_last_valid_strategy_holds_after_a_restart(ram: Path, source: str) -> None:
    """A second and a third agent that find it spoiled do what the first did; mended, it is new."""
    kind, body, spoiled = STRATEGIES[source]
    cluster = Cluster(ram)
    cluster.create(kind, body)
    good = cluster.lived()
    cluster.patch(kind, body, spoiled)
    second, third = cluster.lived(), cluster.lived()

    assert good is not None
    assert good.threshold.cpu_suppress_threshold_percent == 40
    for held in (second, third):
        assert held is not None
        assert good.threshold == held.threshold
        assert held.unread
        assert len(held.problems) == 1
    mended = json.loads(json.dumps(body).replace("40", "30"))
    cluster.patch(kind, body, {key: mended[key] for key in ("spec", "data") if key in mended})
    fourth = cluster.lived()
    assert fourth is not None
    assert fourth.threshold.cpu_suppress_threshold_percent == 30
    assert not fourth.unread


@sources
def test_what_was_taken_back_does_not_come_again(ram: Path, source: str) -> None:
    """An object that an agent saw go holds nothing: one that comes spoiled has no past."""
    kind, body, spoiled = STRATEGIES[source]
    cluster = Cluster(ram)
    cluster.create(kind, body)
    cluster.lived()
    cluster.delete(kind, body)
    assert cluster.lived() is None
    cluster.create(kind, {**body, **spoiled})
    spoiled_anew = cluster.lived()

    assert spoiled_anew is not None
    assert spoiled_anew.threshold.cpu_suppress_threshold_percent == 65


def test_a_damaged_strategy_costs_itself(ram: Path) -> None:
    """One other digit is not believed, nor is half a file; what the object says right counts."""
    kind, body, spoiled = STRATEGIES["NodeSLO"]
    cluster = Cluster(ram)
    cluster.create(kind, body)
    cluster.lived()
    cluster.patch(kind, body, spoiled)
    whole = cluster.record.read_bytes()
    for damage in (whole.replace(b"40", b"90"), whole[:40], b"[" * 9999, b"{}"):
        cluster.record.write_bytes(damage)
        held = cluster.lived()
        assert held is not None
        assert (
            held.threshold.enable,
            held.threshold.cpu_suppress_threshold_percent,
        ) == (True, 65)


RATIO = "node.koordinator.sh/cpu-reclaim-ratio"
STATIC = {"midReclaimMode": "static", "midStaticCPUReservedPercent": 20}
OWN = strategies.Colocation(
    mid_reclaim_mode="static", mid_static_cpu_reserved_percent=20, cpu_reclaim_threshold_percent=80
)


def own(annotation: str | None, ratio: str | None) -> dict[str, Any]:
    """A Node that says this for itself; ``None`` takes it back."""
    annotations, labels = {colocation.ANNOTATION: annotation}, {RATIO: ratio}
    return {"metadata": {"name": "n1", "annotations": annotations, "labels": labels}}


@pytest.mark.parametrize(
    "annotation",
    ["{", "7", json.dumps({**STATIC, "midReclaimMode": "none", "midStaticCPUReservedPercent": -1})],
)
def test_a_node_s_own_strategy_holds_after_a_restart(ram: Path, annotation: str) -> None:
    """Annotation and label that are spoiled hold what they said, for a second and a third agent.

    What can be read counts at once, and what an agent saw go does not come again.
    """
    cluster, good = Cluster(ram), own(json.dumps(STATIC), "0.8")
    cluster.create(kinds.NODES, good)
    assert cluster.seen().node.colocation == OWN
    cluster.patch(kinds.NODES, good, own(annotation, "80 %"))
    for _ in range(2):
        node = cluster.seen().node
        assert node.colocation == OWN
        assert {problem.split(": ")[1] for problem in node.problems} == {
            f"annotation {colocation.ANNOTATION}",
            f"label {RATIO}",
        }
    partly = json.dumps({**STATIC, "midStaticCPUReservedPercent": 30, "midReclaimMode": 5})
    cluster.patch(kinds.NODES, good, own(partly, None))
    assert cluster.seen().node.colocation == strategies.Colocation(
        mid_reclaim_mode="static", mid_static_cpu_reserved_percent=30
    )
    cluster.patch(kinds.NODES, good, own(None, None))
    assert cluster.seen().node.colocation is None
    cluster.patch(kinds.NODES, good, own(annotation, None))
    assert cluster.seen().node.colocation in (None, strategies.Colocation())


class Held(gatherer.Gatherer):
    """Sources that hold what they are told."""

    def __init__(self) -> None:
        self.strategies = strategy_holding.HeldStrategies()

    def hold(self, held: strategy_holding.HeldStrategies) -> None:
        """Take them."""
        self.strategies = held

    def held(self) -> strategy_holding.HeldStrategies:
        """Give them."""
        return self.strategies

    @property
    def words(self) -> Mapping[str, object] | None:
        """Those of the cluster."""
        return self.strategies.cluster

    @words.setter
    def words(self, words: Mapping[str, object]) -> None:
        self.strategies = strategy_holding.HeldStrategies(cluster=words)


def test_only_strategies_are_kept_and_only_when_they_change(tmp_path: Path) -> None:
    """No other part of an object is on the disk; without a change nothing is written."""
    keeping, held = remembered(series.History(), tmp_path, "boot-1", 1.0), Held()
    assert keeping.follow(held) == []
    keeping.tick()
    keeping.close()
    assert not (tmp_path / "strategies.json").exists()
    held.words = {THRESHOLD: GOOD, "hostApplications": ["a"], "CPUBurstStrategy": {"policy": "x"}}
    for _ in range(3):
        keeping.tick()
    keeping.close()
    written = (tmp_path / "strategies.json").stat().st_mtime_ns
    keeping.tick()
    keeping.close()
    after = Held()

    assert remembered(series.History(), tmp_path, "boot-2", 1.0).follow(after) == []
    assert after.words == {THRESHOLD: GOOD, "cpuBurstStrategy": {"policy": "x"}}
    assert written == (tmp_path / "strategies.json").stat().st_mtime_ns


def test_words_beyond_the_bound_are_not_kept(tmp_path: Path) -> None:
    """Nor are those before them: what is older than the last words is not the last valid one."""
    deep: dict[str, Any] = {}
    for _ in range(sys.getrecursionlimit() * 100):
        deep = {"a": deep}
    for huge in ({"policy": "x" * (256 << 10)}, deep):
        keeping, held = remembered(series.History(), tmp_path, "boot-1", 1.0), Held()
        keeping.follow(held)
        for words in ({THRESHOLD: GOOD}, {"cpuBurstStrategy": huge}):
            held.words = words
            keeping.tick()
            keeping.close()
        after = Held()

        assert remembered(series.History(), tmp_path, "boot-1", 1.0).follow(after) == []
        assert after.words is None
