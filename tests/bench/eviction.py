"""Ranking 500 pods for an eviction, against sorting them by a function of the same keys.

Covers: keys, order and what people are shown of it. Does not cover: reading usage.
"""

from __future__ import annotations

import random
import time

from koordlet.model import pod, pressure, qos, resources
from koordlet.policy.eviction import pod_use
from koordlet.policy.eviction import ranking as eviction_ranking
from tests.bench import gate

LIMIT = 3.0
_PODS = 500


def _pairs() -> list[tuple[pod.Pod, pod_use.Use | None]]:
    chance = random.Random(1)
    return [
        (
            pod.Pod(
                uid=f"{chance.getrandbits(64):016x}",
                namespace="d",
                name=f"p{number}",
                qos=qos.Qos.LS,
                source="test",
                priority=chance.choice((0, 1000, 5000, 9000)),
                requests={resources.MEMORY: chance.randrange(1 << 30)},
            ),
            pod_use.Use(memory=chance.randrange(1 << 30)),
        )
        for number in range(_PODS)
    ]


def ranking() -> gate.Ratio:
    """Memory, with every candidate's keys."""
    pairs = _pairs()

    def ours() -> float:
        before = time.process_time()
        for _ in range(20):
            eviction_ranking.rank("memory.available", pressure.SINGLE, pairs)
        return time.process_time() - before

    def key(pair: tuple[pod.Pod, pod_use.Use | None]) -> tuple[object, ...]:
        candidate, use = pair
        used = 0 if use is None else use.memory or 0
        asked = candidate.requests.get(resources.MEMORY, 0)
        return use is not None, used <= asked, candidate.priority or 0, asked - used, candidate.uid

    def sorting() -> float:
        before = time.process_time()
        for _ in range(20):
            sorted(pairs, key=key)
        return time.process_time() - before

    best, reference = gate.interleaved(ours, sorting)
    return gate.Ratio(
        name="eviction.ranking",
        ours=best,
        reference=reference,
        limit=LIMIT,
        unit="s",
        against="sorting the same pods",
    )
