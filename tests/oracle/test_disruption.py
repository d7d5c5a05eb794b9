"""Random lives of rates and pods, with restarts: each answer is that of a naive ledger."""

from __future__ import annotations

import random
from typing import Any

import pytest

from koordlet.scheduler.disruption import answers, rate_status
from tests.kit.disruptions import UNBOUNDED, Picture, reason
from tests.oracle.disruption import Count, Member, Naive, Rate

MOVERS = ("descheduler", "defragment", "migrate", "quota")


class Life:
    """The same things happen to a picture and to the naive ledger."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        draw = self.chance
        shares = {name: draw.choice((20, 50, 100)) for name in draw.sample(MOVERS, 2)}
        self.configured: dict[str, Any] = {
            "limiter": {**UNBOUNDED["limiter"], "shares": shares},
            "aggressiveness": "Normal",
        }
        replicas = {f"c{place}": draw.randint(1, 12) for place in range(3)}
        self.rates = [self._rate() for _ in range(draw.randint(1, 3))]
        self.naive = Naive(replicas, self.rates, shares, {"descheduler", "defragment"}, 50)
        self.picture = Picture(self.configured)
        self.names = 0
        #: When the end of a pod began: the server never says another time.
        self.ending: dict[str, float] = {}
        self._furnish({})
        for name, number in replicas.items():
            for _ in range(number):
                self._come(name)

    def _rate(self) -> Rate:
        draw = self.chance
        limits: list[tuple[Count, int]] = [
            ((draw.randint(1, 6), False) if draw.random() < 0.6 else (draw.choice((10, 50)), True),
             draw.choice((60, 600, 3600)))
            for _ in range(draw.randint(1, 3))
        ]  # fmt: skip
        min_up = draw.choice((None, None, (80, True), (2, False)))
        app = draw.choice(("", "", "even", "odd"))
        return Rate(app, limits, min_up, draw.choice((0, 0, 30)), draw.choice((0, 1)))

    def _furnish(self, statuses: dict[str, Any]) -> None:
        for name, number in self.naive.replicas.items():
            self.picture.controller(name, number)
        for place, rate in enumerate(self.rates):
            spec: dict[str, Any] = {
                "limits": [
                    {"count": f"{number}%" if percent else number, "window": f"{window}s"}
                    for (number, percent), window in rate.limits
                ],
                "minGap": f"{rate.min_gap}s",
                "reserve": rate.reserve,
                "exempt": ["Fire"],
            }
            if rate.min_up is not None:
                number, percent = rate.min_up
                spec["minUp"] = f"{number}%" if percent else number
            if rate.app:
                spec["selector"] = rate.app
            self.picture.rate(f"r{place}", status=statuses.get(f"r{place}"), **spec)

    def _come(self, controller: str) -> None:
        self.names += 1
        name = f"p{self.names}"
        self.naive.pods[name] = Member(controller, self.chance.choice(("even", "odd")))
        self._show(name)

    def _show(self, name: str, ends: str | None = None) -> None:
        pod = self.naive.pods[name]
        more: dict[str, Any] = {} if ends is None else {"began": self.ending[name]}
        self.picture.pod(name, of=pod.controller, app=pod.app, ready=pod.up, ends=ends, **more)

    # What may happen.

    def ask(self) -> None:
        """A mover asks for a pod, and is accepted where it may."""
        name, mover = self.chance.choice(sorted(self.naive.pods)), self.chance.choice(MOVERS)
        exempt = self.chance.random() < 0.1
        cause = "Fire" if exempt else "Eviction"
        # By what moves nothing: how many of a workload are in flight is no rate.
        asker = answers.Mover(name=f"{mover}/x", acts=True, reclaims=True)
        pod = self.picture.pods[f"d/{name}"]
        answer = self.picture.ask(pod, asker, cause)
        now = int(self.picture.at)
        assert reason(answer) == self.naive.refusal(name, mover, exempt, now), (name, mover, now)
        if reason(answer):
            return
        self.picture.limiter.begin(pod, cause, asker, self.picture.now())
        self.picture.limiter.accepted(pod, self.picture.now())
        self._end(name, mover, "EvictionByEvictionAPI")

    def preempt(self) -> None:
        """Somebody else's doing: it asks nobody, and counts."""
        name = self.chance.choice(sorted(self.naive.pods))
        if not self.naive.pods[name].ending:
            self._end(name, "", "PreemptionByScheduler")

    def _end(self, name: str, component: str, condition: str) -> None:
        pod = self.naive.pods[name]
        pod.ending = True
        self.ending[name] = self.picture.at
        self.naive.history.append((int(self.picture.at), pod, component))
        self._show(name, condition)

    def flap(self) -> None:
        """A pod is ready no more, or again."""
        name = self.chance.choice(sorted(self.naive.pods))
        pod = self.naive.pods[name]
        if not pod.ending:
            pod.up = not pod.up
            self._show(name)

    def replace(self) -> None:
        """What ends is gone, and its controller creates another."""
        for name, pod in list(self.naive.pods.items()):
            if pod.ending and self.chance.random() < 0.5:
                del self.naive.pods[name]
                self.picture.gone(name)
                self._come(pod.controller)

    def restart(self) -> None:
        """Nothing is left but the objects and their statuses."""
        before, book = self.picture, self.picture.limiter.rates
        statuses = {}
        before.limiter.settle(before.now())
        for held in book:
            assert held.stored is not None
            statuses[held.name] = rate_status.derive(
                book, held, held.stored, leaving=frozenset(), now=before.now().wall
            )
        self.picture = Picture(self.configured)
        self.picture.at = before.at
        self._furnish(statuses)
        for name in self.naive.pods:
            self._show(name, "EvictionByEvictionAPI" if name in self.ending else None)

    def live(self, steps: int) -> None:
        """So many random things."""
        choices = [self.ask] * 12 + [self.preempt, self.flap, self.replace, self.replace]
        for _ in range(steps):
            self.picture.at += self.chance.choice((0, 1, 7, 30, 60, 299))
            self.chance.choice(choices)()
            if self.chance.random() < 0.02:
                self.restart()


@pytest.mark.parametrize("seed", range(24))
def test_each_answer_of_a_random_life_is_that_of_a_naive_ledger(seed: int) -> None:
    """Windows, percentages, minUp, minGap, reserve, shares, several rates, restarts."""
    Life(seed).live(150)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_long_random_lives(seed: int) -> None:
    """The same, for longer."""
    Life(seed).live(2000)
