"""Gangs against single pods of their class, on 5 000 nodes, in one run.

* placed: a gang of 100 that fits, against 100 single pods;
* gap: a gang of 100 whose sums do not fit, against one single pod that is refused;
* failing: a gang of 100 whose member 51 fails, against 51 single pods, the last one refused;
* waiting: single pods beside 1 000 gangs that did not fit, against those without.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from tests.bench import gate
from tests.kit import clusters, gangs

Body = dict[str, Any]
_NODES, _MEMBERS, _FAILS_AFTER, _WAITING = 5000, 100, 50, 1000
PLACED, GAP, FAILING, WAITING = 1.3, 3.6, 1.3, 1.05
#: A gate above it: what is compared takes a third of a millisecond.
_GAP_GOAL = 3.0
#: Of each side. A measurement takes milliseconds: the least of five still has a neighbour's in it.
_REPEATS = 15
#: Pods that come at one moment beside gangs that wait.
_OTHERS = 500


class _Scene:
    """A core with 5 000 nodes, that has seen a pod of the class."""

    def __init__(self) -> None:
        self.core = Core({"default-scheduler": profile.default("default-scheduler")})
        self._now, self._position = 0.0, 0
        for number in range(_NODES):
            body = clusters.node(f"n{number:05}", cpu="4")
            if number < _FAILS_AFTER:
                body["metadata"]["labels"]["few"] = "yes"
            self.core.node(None, nodes.decode(body), 0.0)
        self.spent([clusters.pod("warm", cpu="1")])

    def put(self, bodies: list[Body]) -> list[Pod]:
        """Pods come."""
        pods = []
        for body in bodies:
            self._position += 1
            pods.append(self.core.decoder.decode(body, self._position))
            self.core.pod(None, pods[-1], self._now)
        return pods

    def drain(self) -> int:
        """Decide everything; the number of outcomes."""
        self._now += 400.0
        number = 0
        while self.core.step(self._now) is not None:
            number += 1
        return number

    def spent(self, bodies: list[Body]) -> float:
        """CPU time of the decisions about these pods, which leave again."""
        pods = self.put(bodies)
        gc.collect()
        start = time.process_time()
        number = self.drain()
        spent = time.process_time() - start
        if number < len(bodies):
            raise ValueError(f"{number} outcomes of {len(bodies)} pods")
        for pod in pods:
            self.core.pod(pod, None, self._now)
        return spent


def _gang(number: int, **more: Any) -> list[Body]:
    return [gangs.member(f"m{place:04}", "g", number, **more) for place in range(number)]


def _singles(number: int, first: int = 0, **more: Any) -> list[Body]:
    return [clusters.pod(f"s{place:05}", **more) for place in range(first, first + number)]


def _ratio(
    name: str,
    ours: Callable[[], float],
    reference: Callable[[], float],
    limit: float,
    against: str,
) -> gate.Ratio:
    best = gate.interleaved(ours, reference, _REPEATS)
    return gate.Ratio(
        name=f"gangs, {name}",
        ours=best[0],
        reference=best[1],
        limit=limit,
        unit="s",
        against=against,
    )


def decided() -> Iterator[gate.Ratio]:
    """A gang that fits, one that no sum allows, one of which half fits: a node takes one member."""
    scene = _Scene()
    few: dict[str, Any] = {"cpu": "3", "nodeSelector": {"few": "yes"}}
    yield _ratio(
        "100 members that fit",
        lambda: scene.spent(_gang(_MEMBERS, cpu="1")),
        lambda: scene.spent(_singles(_MEMBERS, cpu="1")),
        PLACED,
        "100 single pods",
    )
    gap = _ratio(
        "100 members that no sum allows",
        lambda: scene.spent(_gang(_MEMBERS, cpu="300")),
        lambda: scene.spent(_singles(1, cpu="300")),
        GAP,
        "one refused pod",
    )
    yield dataclasses.replace(gap, goal=_GAP_GOAL)
    yield _ratio(
        "100 members, the 51st fails",
        lambda: scene.spent(_gang(_MEMBERS, **few)),
        lambda: scene.spent(_singles(_FAILS_AFTER + 1, **few)),
        FAILING,
        "51 single pods",
    )


def waiting() -> gate.Ratio:
    """Others beside gangs that wait, each of a class of its own."""
    plain, crowded = _Scene(), _Scene()
    for number in range(_WAITING):
        labels = {"job": f"j{number}"}
        crowded.put(
            [gangs.member(f"w{number}", f"w{number}", 1, cpu="300", labels=labels)],
        )
    crowded.drain()
    return _ratio(
        "others beside 1 000 gangs that wait",
        functools.partial(_beside, crowded, itertools.count(step=_OTHERS)),
        functools.partial(_beside, plain, itertools.count(step=_OTHERS)),
        WAITING,
        "the same without them",
    )


def _beside(scene: _Scene, numbers: Iterator[int]) -> float:
    """Placements at one moment: nobody's time to be tried again has come. The pods stay."""
    pods = scene.put(_singles(_OTHERS, next(numbers), cpu="1"))
    gc.collect()
    start = time.process_time()
    now = scene._now + 0.1
    number = 0
    while scene.core.step(now) is not None:
        number += 1
    spent = time.process_time() - start
    if number != len(pods):
        raise ValueError(f"{number} outcomes of {len(pods)} pods")
    return spent
