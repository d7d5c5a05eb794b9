"""What was learned survives restarts and boots; damage costs one part, with a word."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.agent import saved_history
from koordlet.history import expectation, series
from koordlet.host import machine
from koordlet.kubeapi import kinds, objects
from koordlet.model import meter, nodeslo, snapshot, strategies
from koordlet.scheduler.store import adapter
from koordlet.state import checkpoint
from koordlet.workloads import colocation, gatherer, sloconfig, strategy_holding
from tests.kit import clocks, counting, lives, pasts


def memory(
    models: expectation.Expectation, where: Path, boot: str, at: float
) -> saved_history.SavedHistory:
    """The memory of an agent that runs in this boot."""
    known = series.History()
    known.expectation = models
    return remembered(known, where, boot, at)


def remembered(
    known: series.History, where: Path, boot: str, at: float, suspended: float = 0.0
) -> saved_history.SavedHistory:
    """The same of a whole history."""
    files = checkpoint.Checkpoints(where, machine_id="m", boot_id=boot)
    now = machine.Now(at=at, wall=1000.0 + at, suspended=suspended)
    return saved_history.SavedHistory(known, files, lambda: now)


def learned(number: int = 100) -> expectation.Expectation:
    """Models of so many subjects."""
    made = expectation.Expectation()
    for n in range(number):
        made.train(f"uid-{n}", 1.0, 1e9, 50.0)
    return made


def save(models: expectation.Expectation, where: Path) -> None:
    """As many ticks as it takes to save every part once."""
    saving = memory(models, where, "boot-1", 60.0)
    for _ in range(40 * expectation.PARTS):
        saving.tick()


def test_over_a_boot(tmp_path: Path) -> None:
    """All models are back after a restart of the machine."""
    save(learned(), tmp_path)
    back = expectation.Expectation()

    assert memory(back, tmp_path, "boot-2", 5.0).revive() == []
    assert len(back) == 100


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"{}", b'{"format": 1}', b"\xff\xfe", b"[" * 100_000]
)
def test_damage_costs_one_part(tmp_path: Path, damage: bytes) -> None:
    """A part that is no part is discarded and said; the others are taken."""
    save(learned(), tmp_path)
    (tmp_path / "expectation-03.json").write_bytes(damage)
    back = expectation.Expectation()
    problems = memory(back, tmp_path, "boot-2", 5.0).revive()

    assert len(problems) == 1
    assert "expectation-03" in problems[0]
    assert 80 < len(back) < 100


def test_truncated_anywhere(tmp_path: Path) -> None:
    """A part that was cut short anywhere is refused or whole, and never breaks the start."""
    save(learned(1), tmp_path)
    path = next(tmp_path.glob("expectation-*.json"))
    whole = path.read_bytes()
    for size in range(len(whole) - 1):
        path.write_bytes(whole[:size])
        assert len(memory(expectation.Expectation(), tmp_path, "boot-1", 60.0).revive()) == 1


def test_nothing_is_written_for_nobody(tmp_path: Path) -> None:
    """Without workloads there are no files; who is gone goes from his file."""
    models = expectation.Expectation()
    save(models, tmp_path)
    assert list(tmp_path.iterdir()) == []

    models.train("uid-1", 1.0, 1.0, 50.0)
    save(models, tmp_path)
    models.forget(10_000.0)
    save(models, tmp_path)
    back = expectation.Expectation()
    assert memory(back, tmp_path, "boot-1", 60.0).revive() == []
    assert len(back) == 0


USE = {meter.CPU: 1.5, meter.WORKING_SET: 2.0**30}
POD = {meter.CPU: 0.25, meter.MEMORY_ANON: 2.0**20}


def used() -> series.History:
    """Five minutes of a node and two pods, until second 1000."""
    groups = {"a": POD, "b": {meter.CPU: 0.5, meter.MEMORY_ANON: 2.0**21}}
    return pasts.past(node=USE, groups=groups, until=1000.0, seconds=300)


def seen_again(known: series.History, at: float, suspended: float = 0.0) -> None:
    """The first look of a new agent: another order of groups, and one that is new."""
    groups = {meter.CPU: [0.0, 0.0, 0.0], meter.MEMORY_ANON: [1.0, 1.0, 1.0]}
    readings = {
        "node": counting.reading(at, {meter.CPU: [0.0]}, names=("",)),
        "groups": counting.reading(at, groups, names=("new", "b", "a")),
    }
    known.take(
        {name: dataclasses.replace(one, suspended=suspended) for name, one in readings.items()}
    )


def test_samples_are_there_again_after_a_restart(tmp_path: Path) -> None:
    """The windows of node and groups are those of before, less the time between two agents."""
    old = remembered(used(), tmp_path, "boot-1", 1000.0)
    old.close()
    back = series.History()

    assert remembered(back, tmp_path, "boot-1", 1010.0).revive() == []
    seen_again(back, 1010.0)
    whole = back.node.window("", meter.CPU, 1010.0, 300.0)
    assert whole is not None
    assert pytest.approx(whole.average, rel=1e-4) == 1.5
    assert 285 <= whole.covered <= 295
    for name, cores in (("a", 0.25), ("b", 0.5)):
        found = back.groups.window(name, meter.CPU, 1010.0, 300.0)
        assert found is not None
        assert cores == pytest.approx(found.average, rel=1e-4)
    assert back.groups.window("new", meter.CPU, 1010.0, 300.0) is None


def test_samples_age_while_nobody_looks(tmp_path: Path) -> None:
    """Down for longer than half a window, suspended or not: there is no window any more."""
    old = remembered(used(), tmp_path, "boot-1", 1000.0)
    old.close()
    for at, suspended in ((1200.0, 0.0), (1001.0, 200.0)):
        back = series.History()
        assert remembered(back, tmp_path, "boot-1", at, suspended).revive() == []
        seen_again(back, at, suspended)
        assert back.node.window("", meter.CPU, at, 300.0) is None


@pytest.mark.parametrize(("suspended", "good"), [(-1e-6, True), (-1.0, False)])
def test_clocks_waver_and_do_not_run_back(tmp_path: Path, suspended: float, *, good: bool) -> None:
    """Time in suspend is a difference of two clocks: a little less than before is the same."""
    remembered(used(), tmp_path, "boot-1", 1000.0).close()
    found = remembered(series.History(), tmp_path, "boot-1", 1010.0, suspended).revive()

    assert good is (found == [])


def test_samples_of_another_boot_are_nobodys(tmp_path: Path) -> None:
    """Another clock and other groups: they are discarded, and it is said."""
    old = remembered(used(), tmp_path, "boot-1", 1000.0)
    old.close()

    (problem,) = remembered(series.History(), tmp_path, "boot-2", 5.0).revive()
    assert "for another boot" in problem


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("at", [2e9] * 300),
        ("at", ["x"]),
        ("at", [float("inf")] * 300),
        ("span", []),
        ("subjects", [1]),
        ("cells", "AAAA"),
        ("cells", "!"),
        ("", 5),
    ],
)
def test_damaged_samples_cost_themselves(tmp_path: Path, key: str, value: object) -> None:
    """A file that makes no sense is discarded as a whole, and it is said."""
    old = remembered(used(), tmp_path, "boot-1", 1000.0)
    old.close()
    where = tmp_path / "samples.json"
    body = json.loads(where.read_text())
    several = body["state"]["spaces"]["node"]
    if key:
        several["cpu"][key] = value
    else:
        several["cpu"] = value
    where.write_text(json.dumps(body))
    back = series.History()

    (problem,) = remembered(back, tmp_path, "boot-1", 1010.0).revive()
    assert "samples" in problem
    seen_again(back, 1010.0)
    assert back.groups.window("a", meter.CPU, 1010.0, 300.0) is None


THRESHOLD = "resourceUsedThresholdWithBE"
CONFIG_KEY = "resource-threshold-config"
GOOD: dict[str, Any] = {"enable": True, "cpuSuppressThresholdPercent": 40}
#: The same strategy by each of its sources: the object, and what spoils it.
SAID: dict[str, tuple[kinds.Kind, dict[str, Any], dict[str, Any]]] = {
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


sources = pytest.mark.parametrize("source", SAID)


@sources
def test_the_last_valid_strategy_holds_after_a_restart(ram: Path, source: str) -> None:
    """A second and a third agent that find it spoiled do what the first did; mended, it is new."""
    kind, body, spoiled = SAID[source]
    cluster = Cluster(ram)
    cluster.create(kind, body)
    good = cluster.lived()
    cluster.patch(kind, body, spoiled)
    second, third = cluster.lived(), cluster.lived()

    assert good is not None
    assert good.threshold.cpu_suppress_threshold_percent == 40
    for found in (second, third):
        assert found is not None
        assert good.threshold == found.threshold
        assert found.unread
        assert len(found.problems) == 1
    mended = json.loads(json.dumps(body).replace("40", "30"))
    cluster.patch(kind, body, {key: mended[key] for key in ("spec", "data") if key in mended})
    fourth = cluster.lived()
    assert fourth is not None
    assert fourth.threshold.cpu_suppress_threshold_percent == 30
    assert not fourth.unread


@sources
def test_what_was_taken_back_does_not_come_again(ram: Path, source: str) -> None:
    """An object that an agent saw go holds nothing: one that comes spoiled has no past."""
    kind, body, spoiled = SAID[source]
    cluster = Cluster(ram)
    cluster.create(kind, body)
    cluster.lived()
    cluster.delete(kind, body)
    assert cluster.lived() is None
    cluster.create(kind, {**body, **spoiled})
    found = cluster.lived()

    assert found is not None
    assert found.threshold.cpu_suppress_threshold_percent == 65


def test_a_damaged_strategy_costs_itself(ram: Path) -> None:
    """One other digit is not believed, nor is half a file; what the object says right counts."""
    kind, body, spoiled = SAID["NodeSLO"]
    cluster = Cluster(ram)
    cluster.create(kind, body)
    cluster.lived()
    cluster.patch(kind, body, spoiled)
    whole = cluster.record.read_bytes()
    for damage in (whole.replace(b"40", b"90"), whole[:40], b"[" * 9999, b"{}"):
        cluster.record.write_bytes(damage)
        found = cluster.lived()
        assert found is not None
        assert (
            found.threshold.enable,
            found.threshold.cpu_suppress_threshold_percent,
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


class Held:
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
