"""A day of rounds over a stationary load, through the limiter: nobody goes in circles."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

from koordlet.model import moment
from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling.round import DeschedulingRound, EvictionProposal
from koordlet.scheduler.disruption.answers import Clock, Mover, Refusal, unshadowed
from koordlet.scheduler.disruption.limiter import ClusterHealth, Limiter
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.objects.usage import NodeUsage
from tests.kit.descheduling import NOW, node, pod, policy

NODES, PODS, WORKLOADS, INTERVAL = 6, 60, 12, 300.0
ROUNDS = int(24 * 3600 / INTERVAL)
MOVER = Mover(name="descheduler/LowNodeLoad", acts=True)
BOUNDS = {"lowThresholds": {"cpu": 45}, "highThresholds": {"cpu": 65}, "detectorCacheTimeout": "1h",
          "anomalyCondition": {"consecutiveAbnormalities": 2, "timeout": "1h"}}  # fmt: skip


class Day:
    """A cluster after churn: two of its nodes have all the pods."""

    def __init__(self) -> None:
        bodies: list[Any] = [
            node(f"n{row}", cpu="16", memory="64Gi", pods=50) for row in range(NODES)
        ]
        bodies += [
            pod(
                f"p{number}",
                f"n{number % 2}",
                cpu="500m",
                owner=f"ReplicaSet/w{number % WORKLOADS}",
            )
            for number in range(PODS)
        ]
        self.state, _ = dump.state(bodies, NOW)
        self.settings = configuration.read(
            policy({"LowNodeLoad": BOUNDS}, {"nodeFit": True}, maxNoOfPodsToEvictPerNode=2), "test"
        )
        self.limiter = Limiter(
            DisruptionSettings(),
            self.state.workloads,
            DisruptionBudgets(),
            lambda: ClusterHealth(nodes=NODES, pods=PODS),
        )
        self._noise = random.Random(3)
        #: When each workload was moved, and how many moves each round made.
        self.moved: dict[str, list[float]] = {}
        self.counts: list[int] = []

    def round(self, number: int) -> None:
        """One round, and what follows from it."""
        at = number * INTERVAL
        now = Clock(wall=NOW + at, steady=at)
        usages = {}
        for row, pods in enumerate(self.state.columns.pods):
            used = {key: {"cpu": int(500 * self._noise.uniform(0.9, 1.1))} for key in pods}
            usages[self.state.node(row).name] = NodeUsage(
                updated=now.wall, reported=True, pods=used, system={"cpu": 200}
            )
        self.state = dataclasses.replace(self.state, now=now, usages=usages, _residents={})
        self.limiter.settle(now)
        gone: list[EvictionProposal] = []

        def asks(proposal: EvictionProposal) -> Refusal | None:
            return unshadowed(self.limiter.may_evict(proposal.resident.pod, "D", MOVER, now))

        def answer(proposal: EvictionProposal) -> None:
            self.limiter.begin(proposal.resident.pod, "D", MOVER, now)
            gone.append(proposal)

        DeschedulingRound(self.settings.profiles, self.settings.limits, self.state, asks=asks).play(
            answer
        )
        for place, proposal in enumerate(gone):
            self._replace(proposal, f"{number}-{place}", now)
        self.counts.append(len(gone))

    def _replace(self, proposal: EvictionProposal, name: str, now: Clock) -> None:
        old, columns = proposal.resident.pod, self.state.columns
        signature = self.state.workloads.signature(old.pod_class)
        self.moved.setdefault(str(signature), []).append(now.steady)
        new = dataclasses.replace(
            old, name=f"r{name}", uid=f"u-{name}", node=proposal.target,
            created=moment.spell(now.wall + 1),
        )  # fmt: skip
        columns.remove(old)
        columns.place(new, columns.rows[proposal.target])
        self.state.workloads.drop(old)
        self.state.workloads.put(new)
        self.limiter.pace.gone(old.uid, now.steady + 1)
        self.limiter.pace.up(new, signature)
        traits = dict(self.state.traits)
        traits[new.uid] = dataclasses.replace(proposal.resident.traits, uid=new.uid)
        self.state = dataclasses.replace(self.state, traits=traits)


def test_a_day_of_stationary_load_ends_without_moves() -> None:
    """Nobody moves twice within the cool-down; after six hours hardly anybody moves at all."""
    day = Day()
    for number in range(ROUNDS):
        day.round(number)
    assert sum(day.counts) > 10
    rest = DisruptionSettings().limiter.cool_down_seconds
    for times in day.moved.values():
        assert all(later - earlier >= rest for earlier, later in itertools.pairwise(times))
    assert sum(day.counts[ROUNDS // 4 :]) <= 2
    full = [len(pods) for pods in day.state.columns.pods]
    assert max(full) * 500 + 200 <= 0.65 * 16_000 * 1.1
