"""Random trees that borrow: what is lent is called back in bounded rounds, and only once.

Covers: the book, admission and calling back together, with pods that are replaced or not.
Does not cover: one choice (``test_revoke``), evicting and its pace (``loop.test_quota_lending``).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest

from koordlet.kubeapi.elastic_quotas import SYSTEM
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas import admission, revoke
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.revoke import Revocation
from tests.kit import clusters
from tests.kit.quotas import KEY, spec

DELAY = 120.0


class Lending:
    """One machine, a random tree of quotas, pods that come and go; who is admitted runs."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.book, self.watch, self.now = QuotaBook(), revoke.RevokeWatch(DELAY), 0.0
        self.pods: dict[str, Pod] = {}
        self._decoder, self._serial = Decoder({}), 0
        self._node: nodes.Node | None = None
        self._names = [f"q{place}" for place in range(chance.randint(1, 12))]
        self._parents = {
            name: chance.choice(("", *self._names[:place]))
            for place, name in enumerate(self._names)
        }
        self.machine()
        for name in self._names:
            self.quota(name)

    def machine(self) -> None:
        """The machine gets another size."""
        cpu, memory = str(self.chance.randint(1, 40)), str(self.chance.randint(1, 40))
        node = nodes.decode(clusters.node("n", cpu=cpu, memory=memory))
        self.book.put_node(self._node, node)
        self._node = node

    def quota(self, name: str) -> None:
        """A quota comes, or gets other bounds."""
        chance = self.chance
        most = {key: chance.randint(0, 30) for key in ("cpu", "memory")}
        least = {key: chance.randint(0, much) for key, much in most.items()}
        self.book.put_quota(
            spec(
                name, least, most, parent=self._parents[name], is_parent=True,
                lends=chance.random() < 0.8, weight={"cpu": chance.randint(0, 9), "memory": 1},
            )
        )  # fmt: skip

    def pod(self, like: Pod | None = None) -> None:
        """A pod comes and waits; ``like``: in the place of this one."""
        chance = self.chance
        self._serial += 1
        name = f"p{self._serial}"
        if like is None:
            labels = {f"{KEY}name": chance.choice(self._names)}
            if chance.random() < 0.1:
                labels[f"{KEY}preemptible"] = "false"
            amounts = {"cpu": f"{chance.randint(0, 4000)}m", "memory": str(chance.randint(0, 4))}
            body = clusters.pod(name, labels=labels, priority=chance.randint(0, 3), **amounts)
        else:
            real = like.pod_class.requests.real
            body = clusters.pod(
                name, labels=dict(like.pod_class.labels), priority=like.priority,
                cpu=f"{real.get('cpu', 0)}m", memory=str(real.get("memory", 0)),
            )  # fmt: skip
        pod = self._decoder.decode(body, self._serial)
        self.pods[pod.key] = pod
        self.book.put(pod)

    def end(self, pod: Pod) -> None:
        """A pod is gone."""
        del self.pods[pod.key]
        self.book.drop(pod.key)

    def change(self) -> None:
        """Something that moves the shares."""
        chance = self.chance
        for _ in range(chance.randint(1, 8)):
            kind = chance.random()
            if kind < 0.6:
                self.pod()
            elif kind < 0.75 and self.pods:
                self.end(chance.choice(list(self.pods.values())))
            elif kind < 0.9:
                self.quota(chance.choice(self._names))
            else:
                self.machine()

    def admit(self) -> None:
        """Every pod that its quota admits runs, the most important first."""
        self.book.settle()
        for pod in sorted(self.pods.values(), key=lambda each: (-each.priority, each.position)):
            if not pod.node and not admission.refusal(self.book, pod.pod_class, pod.priority):
                pod.node = "n"
                self.book.put(pod)

    def look(self, seconds: float) -> list[Revocation]:
        """Who is called back after a while."""
        self.now += seconds
        self.book.settle()
        return self.watch.look(self.book, self.now)

    def rounds(self, called: list[Revocation]) -> int:
        """Let them go, a few at a time, replaced or not; how many have gone in the end."""
        at_once, replaced = self.chance.randint(1, 4), self.chance.random() < 0.7
        bound, gone = math.ceil(len(called) / at_once), 0
        while called:
            assert bound > 0, "more rounds than the pods of the first look need"
            bound -= 1
            for revocation in called[:at_once]:
                self.end(revocation.pod)
                gone += 1
                if replaced:
                    self.pod(like=revocation.pod)
            self.admit()
            called = self.look(1.0)
        return gone

    def beyond_repair(self) -> Iterator[str]:
        """Quotas above their runtime from which somebody could still go; the system's never is."""
        for node in self.book.nodes.values():
            limit = self.book.limit(node)
            names = {name for name in node.spec.max if node.used.get(name, 0) > limit.get(name, 0)}
            below = (counted for each in node.below() for counted in self.book.counted(each))
            if node.name != SYSTEM and any(
                not counted.usage.non_preemptible and counted.usage.used.get(name)
                for counted in below
                for name in names
            ):
                yield node.name


def _live(seed: int, changes: int) -> int:
    """Change after change, each followed by its rounds; how many pods went."""
    lending = Lending(random.Random(seed))
    gone = 0
    for _ in range(changes):
        lending.change()
        lending.admit()
        lending.look(0.0)
        levels = max(len(node.path) - 1 for node in lending.book.nodes.values())
        while called := lending.look(DELAY + 0.1):
            # A leaf that has room again spares its pod, on which the quota above had counted.
            assert levels > 0, seed
            levels -= 1
            gone += lending.rounds(called)
        assert list(lending.beyond_repair()) == [], seed
    return gone


def test_what_is_lent_is_called_back_in_bounded_rounds_and_nobody_without_a_change() -> None:
    """A choice for each level at most, in as many rounds as its pods need; nobody above is left."""
    assert sum(_live(seed, 25) for seed in range(12)) > 100


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_long_lives_of_lending_are_called_back_in_bounded_rounds(seed: int) -> None:
    """The same, two hundred changes each."""
    _live(seed, 200)
