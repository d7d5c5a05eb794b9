"""A simulated day of a whole agent: ticks, with groups that come and go all the time.

Covers: an enforcing agent on a machine in memory, its audit, journal and checkpoints on a disk, and
what is shown of it; the memory of this process at marks. Does not cover: judging it.
"""

from __future__ import annotations

import gc
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from koordlet.agent import lifecycle
from koordlet.model import observed, pod, qos, snapshot
from koordlet.report import metrics, node_json
from tests.kit import agents
from tests.kit.kernel import KernelHost, Machine

DAY = 86_400
PODS = 24
#: Ticks between two looks at what is shown.
_SHOWN = 60
_QOS = (qos.Qos.LSR, qos.Qos.LS, qos.Qos.BE)


class Mark(NamedTuple):
    """What is so after a marked tick."""

    at: int
    resident_mb: float
    #: Names of the pods that the agent knows, and of those that have a limit of its own.
    pods: frozenset[str]
    limited: frozenset[str]


def ticks(number: int, seed: int, marks: Sequence[int]) -> Iterator[Mark]:
    """So many ticks; what is so after the marked ones."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as state:
        host = Machine("0-7", nodes={0: "0-3", 1: "4-7"}, cgroup="v2")
        site = agents.Site(host, Path(state), config="policies:\n  reserved_cpus: {cpus: '0'}\n")
        with site.agent() as who:
            node = _Node(host, chance)
            who.tick.observation.take = node.observed
            for at in range(number):
                node.churn(at)
                site.clock.tick()
                who.one_pass(slow=at % 10 == 0, lateness=0.001 * chance.random())
                who.tick.protection_broken(who)
                # A kernel keeps no record of what was written to it.
                host.calls.clear()
                if at % _SHOWN == 0 and who.publisher.view is not None:
                    metrics.render(who.publisher.view, "1", {}, metrics.TEXT)
                    node_json.document(who.publisher.view, "1")
                if at + 1 in marks:
                    yield _mark(at + 1, who)


class _Node:
    """Pods that come and go, one every other second."""

    def __init__(self, host: KernelHost, chance: random.Random) -> None:
        self._host = host
        self._chance = chance
        self._serial = 0
        self._pods: list[pod.Pod] = []
        self._said = observed.NOTHING
        for path in ("/sys/fs/cgroup/shop",):
            host.mkdir(host.at(path))
            host.write(host.at(f"{path}/cgroup.subtree_control"), b"+cpu +memory +cpuset +pids +io")

    def observed(self) -> observed.Observed:
        """What a source would say."""
        return self._said

    def churn(self, at: int) -> None:
        """One goes and one comes; a group may be gone before its pod is, or the other way."""
        if at % 2 and len(self._pods) >= PODS:
            gone = self._pods.pop(self._chance.randrange(len(self._pods)))
            self._host.rmdir(self._host.at(f"/sys/fs/cgroup/{gone.match.partition('=')[2]}"))
        if len(self._pods) < PODS:
            self._pods.append(self._born())
            self._said = replace(
                self._said,
                pods=tuple(self._pods),
                sources=(snapshot.Source(name="kubelet", ok=True, last_good=float(at)),),
            )

    def _born(self) -> pod.Pod:
        self._serial += 1
        group = f"shop/p{self._serial}"
        self._host.mkdir(self._host.at(f"/sys/fs/cgroup/{group}"))
        kind = self._chance.choice(_QOS)
        return pod.Pod(
            uid=f"uid-{self._serial}",
            namespace="shop",
            name=f"p{self._serial}",
            qos=kind,
            raw_qos=kind,
            source="kubelet",
            match=f"cgroup={group}",
            requests={"cpu": 100, "memory": 1 << 20},
        )


def _mark(at: int, who: lifecycle.Agent) -> Mark:
    groups = {entry.group.rpartition("/")[2] for entry in who.book.entries.values()}
    names = frozenset(pod.name for pod in who.tick.observation.pods)
    return Mark(at, _resident(), names, names & groups)


def _resident() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6
