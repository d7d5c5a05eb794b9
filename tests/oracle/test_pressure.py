"""A node under pressure: ours decides pass by pass what a second reading of the kubelet does.

Every story comes from its number, which a failure names.
"""

from __future__ import annotations

import copy
import os
import random
from dataclasses import replace
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import kubelet, pressure, snapshot, thresholds
from koordlet.policy.eviction import local_storage_evict, node_pressure
from koordlet.workloads import poddecode
from koordlet.workloads.kubelet import summary
from tests.kit import colocation, moments
from tests.oracle import pressure as oracle

ORDINARY, SOAK = 20, 20_000
PASSES, PODS = 8, 6
SHAPE = moments.machine(1, 2)
_GI = 1 << 30
_BESIDE = (snapshot.Source(name="kubelet pods", ok=True),)
_SIGNALS = (
    *("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available"),
    *("imagefs.inodesFree", "containerfs.available", "pid.available"),
)


class Story:
    """A node, its pods and what becomes of both."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.layout = self.chance.choice(("single", "dedicated", "split"))
        self.texts = self._texts()
        self.pods = [self._pod(number) for number in range(self.chance.randint(1, PODS))]
        self.transition = self.chance.choice((15, 30, 300))
        self.most_grace = self.chance.choice((0, 5, 60))

    def _texts(self) -> dict[str, dict[str, str]]:
        def some(values: tuple[str, ...]) -> dict[str, str]:
            chosen = self.chance.sample(_SIGNALS, self.chance.randint(0, 4))
            return {signal: self.chance.choice(values) for signal in chosen}

        soft = some(("20%", "25%", "3Gi", "400"))
        return {
            "hard": some(("10%", "15%", "2Gi", "0%", "100%", "12.5%", "300")),
            "soft": soft,
            "grace": {signal: self.chance.choice(("0s", "10s", "25s", "1m")) for signal in soft},
            "reclaim": some(("1Gi", "5%", "0", "150%", "50")),
        }

    def _pod(self, number: int) -> oracle.Body:
        chance = self.chance
        notes: dict[str, str] = {}
        if chance.random() < 0.15:
            notes = chance.choice(
                (
                    {"kubernetes.io/config.mirror": "m"},
                    {"kubernetes.io/config.source": "file"},
                    {"kubernetes.io/config.source": "api"},
                )
            )
        spec: oracle.Body = {"containers": [self._box("a"), self._box("b")]}
        if chance.random() < 0.8:
            spec["priority"] = chance.choice((-5, 0, 0, 1000, 2_000_000_000))
        if chance.random() < 0.5:
            spec["terminationGracePeriodSeconds"] = chance.choice((0, 3, 30))
        if chance.random() < 0.4:
            spec["initContainers"] = [self._box("s", restartPolicy="Always"), self._box("i")]
        if chance.random() < 0.3:
            spec["overhead"] = {"memory": "100Mi"}
        if chance.random() < 0.6:
            spec["volumes"] = [
                {"name": "e", "emptyDir": chance.choice(({}, {"sizeLimit": "900Mi"}))},
                {"name": "m", "emptyDir": {"medium": "Memory"}},
                {"name": "h", "hostPath": {"path": "/x"}},
                {"name": "p", "projected": {}},
            ]
        meta = {"name": f"p{number}", "namespace": "d", "annotations": notes}
        uid = f"{chance.randrange(10**6):06}-{number}"
        if "kubernetes.io/config.mirror" in notes:
            # The kubelet knows a mirror by the UID of its manifest.
            notes = {"kubernetes.io/config.mirror": uid}
        meta |= {"uid": uid, "annotations": notes}
        return {"metadata": meta, "spec": spec, "status": {"phase": "Running"}}

    def _box(self, name: str, **more: object) -> oracle.Body:
        asked = {
            what: self.chance.choice(("0", "100Mi", "500Mi", "1Gi"))
            for what in ("memory", "ephemeral-storage")
            if self.chance.random() < 0.5
        }
        box: oracle.Body = {"name": name, "resources": {"requests": asked}, **more}
        if self.chance.random() < 0.1:
            box["resources"]["limits"] = {"ephemeral-storage": "1200Mi"}
        return box

    def stats(self) -> dict[str, oracle.Body]:
        """What each pod uses now; of some nobody knows, or not everything."""
        return {oracle.uid(pod): self._use() for pod in self.pods if self.chance.random() < 0.9}

    def _use(self) -> oracle.Body:
        def files() -> oracle.Body:
            used = self.chance.choice((0, 100 << 20, 700 << 20, self.chance.randrange(_GI)))
            body = {"usedBytes": used, "inodesUsed": self.chance.randrange(1000)}
            return body if self.chance.random() < 0.9 else {}

        boxes = [
            {
                "name": name,
                "memory": {"workingSetBytes": self.chance.randrange(_GI)},
                "rootfs": files(),
                "logs": files(),
            }
            for name in self.chance.sample(("a", "b", "gone"), self.chance.randint(1, 3))
        ]
        stats: oracle.Body = {
            "containers": boxes,
            "volume": [{"name": name, **files()} for name in ("e", "m", "h", "p", "e")],
        }
        if self.chance.random() < 0.9:
            stats["memory"] = {"workingSetBytes": self.chance.randrange(2 * _GI)}
        if self.chance.random() < 0.9:
            stats["process_stats"] = {"process_count": self.chance.randrange(50)}
        if self.chance.random() < 0.5:
            stats["ephemeral-storage"] = {"usedBytes": self.chance.randrange(3 * _GI)}
        return stats

    def node(self) -> dict[str, tuple[int, int]]:
        """Available and capacity of everything."""

        def part(capacity: int) -> tuple[int, int]:
            return int(capacity * self.chance.choice((0.05, 0.11, 0.14, 0.3, 0.9))), capacity

        own = {"nodefs": (100 * _GI, 10**6), "imagefs": (50 * _GI, 10**5)}
        amounts = {"memory.available": part(16 * _GI), "pid.available": part(4000)}
        for name, (size, inodes) in own.items():
            amounts[f"{name}.available"], amounts[f"{name}.inodesFree"] = part(size), part(inodes)
        alias = {"imagefs": "nodefs"} if self.layout == "single" else {}
        alias["containerfs"] = "imagefs" if self.layout == "dedicated" else "nodefs"
        for name, source in alias.items():
            for kind in ("available", "inodesFree"):
                amounts[f"{name}.{kind}"] = amounts[f"{source}.{kind}"]
        return amounts


def ours(
    story: Story, at: float, node: dict[str, tuple[int, int]], stats: dict[str, oracle.Body]
) -> snapshot.Snapshot:
    """The moment, by our own decoders."""

    def files(name: str) -> oracle.Body:
        available, capacity = node[f"{name}.available"]
        free, inodes = node[f"{name}.inodesFree"]
        return {
            "availableBytes": available,
            "capacityBytes": capacity,
            "inodesFree": free,
            "inodes": inodes,
        }

    body = {
        "node": {
            "fs": files("nodefs"),
            "runtime": {"imageFs": files("imagefs"), "containerFs": files("containerfs")},
        },
        "pods": [
            {"podRef": {"uid": uid}, **copy.deepcopy(pod_stats)} for uid, pod_stats in stats.items()
        ],
    }
    pods = tuple(poddecode.from_object(pod, "kubelet", "here") for pod in story.pods)
    available, capacity = node["memory.available"]
    left, most = node["pid.available"]
    read = pressure.Reading(
        at=at,
        disks_at=at,
        root=pressure.Memory(usage=capacity - available, inactive_file=0, limit=capacity),
        max_pids=most,
        processes=most - left,
    )
    return replace(
        colocation.moment(SHAPE, (), at=at),
        pods=pods,
        sources=_BESIDE,
        pressure=read,
        kubelet=kubelet.Kubelet(summary=summary.decode(body)),
    )


def play(seed: int) -> None:
    """One story, pass by pass."""
    story = Story(seed)
    manager = oracle.Manager(
        oracle.limits(story.texts, story.layout), story.layout, story.transition, story.most_grace
    )
    texts = thresholds.Texts(
        hard=story.texts["hard"],
        soft=story.texts["soft"],
        soft_grace=story.texts["grace"],
        reclaim=story.texts["reclaim"],
    )
    settings = node_pressure.Settings(
        limits=thresholds.parse(texts), transition=story.transition, max_grace=story.most_grace
    )
    state = node_pressure.State()
    for number in range(PASSES):
        at = 100.0 + 10 * number
        node, stats = story.node(), story.stats()
        seen = {signal: (*both, at) for signal, both in node.items()}
        expected = manager.synchronize(at, seen, story.pods, stats)
        now = ours(story, at, node, stats)
        made = node_pressure.decide(now, series.History(), settings, state)
        state = made.next_state
        where = f"seed {seed}, pass {number}: {story.texts}, {story.layout}, {node}"
        held = {condition.type for condition in made.conditions if condition.status}
        assert held == expected["conditions"], where
        broken = {pod.uid for pod, _, _ in local_storage_evict.offenders(now)}
        assert broken == expected["offenders"], where
        victim = compare(made.evictions, expected, where)
        gone = expected["offenders"] | {victim}
        story.pods = [pod for pod in story.pods if oracle.uid(pod) not in gone]


def compare(evictions: Any, expected: oracle.Body, where: str) -> str | None:
    """The victim of both."""
    if not evictions:
        assert all(choice["victim"] is None for choice in expected.get("by", {}).values()), where
        return None
    (eviction,) = evictions
    assert eviction.signal in expected["signals"], where
    choice = expected["by"][eviction.signal]
    assert eviction.uid == choice["victim"], where
    order = [each.pod.partition("/p")[2] for each in eviction.ranking]
    assert order == [uid.rpartition("-")[2] for uid in choice["ranking"]], where
    assert eviction.grace_seconds == choice["grace"], where
    named = eviction.annotations.get("offending_containers", "")
    assert [name for name in named.split(",") if name] == choice["exceeding"], where
    return str(eviction.uid)


def test_a_node_under_pressure_is_relieved_as_the_kubelet_does() -> None:
    """Conditions, offenders, order, victim, grace and message's containers, pass by pass."""
    for seed in range(ORDINARY):
        play(seed)


@pytest.mark.soak
def test_a_soak_of_nodes_under_pressure() -> None:
    """The same from ``KOORDLET_SEED`` on."""
    start = int(os.environ.get("KOORDLET_SEED", "0"))
    for seed in range(start, start + SOAK):
        play(seed)
