"""Which pods are called back: when, who first, who stays, parents by their leaves."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas import revoke
from koordlet.scheduler.quotas.amounts import Amounts
from koordlet.scheduler.quotas.tree import NOTHING, QuotaNode, QuotaTree, Usage
from tests.kit import quotas
from tests.kit.disruptions import Picture


@dataclasses.dataclass(eq=False)
class Counted:
    """A pod of a quota, and what it counts for."""

    pod: Pod
    usage: Usage
    quota: str


class Quotas:
    """One tree with pods, and a watch over it."""

    def __init__(self, **total: int) -> None:
        self.tree = QuotaTree()
        self.tree.set_total(total)
        self.counts: dict[str, Counted] = {}
        self.watch = revoke.RevokeWatch(120.0)
        self._cluster = Picture()

    @property
    def nodes(self) -> Mapping[str, QuotaNode]:
        """All quotas."""
        return self.tree.nodes

    def limit(self, node: QuotaNode) -> Amounts:
        """What a quota may use."""
        return self.tree.runtime(node)

    def counted(self, node: QuotaNode) -> Iterable[Counted]:
        """The pods of a quota."""
        return [each for each in self.counts.values() if each.quota == node.name]

    def quota(
        self, name: str, least: Any, most: Any, above: QuotaNode | None = None, **more: Any
    ) -> QuotaNode:
        """A quota; amounts in CPUs."""
        return self.tree.put(quotas.spec(name, least, most, **more), above)

    def pod(
        self, name: str, quota: str, *, priority: int = 0, created: float = 0.0,
        fixed: bool = False, waits: bool = False, **amounts: int,
    ) -> Pod:  # fmt: skip
        """A pod; one that waits uses nothing."""
        pod = self._cluster.pod(name, of="web", priority=priority, created=created)
        usage = Usage(amounts, {} if waits else amounts, non_preemptible=fixed)
        self.counts[pod.uid] = Counted(pod, usage, quota)
        self.tree.count(self.tree.nodes[quota], NOTHING, usage)
        return pod

    def gone(self, name: str) -> None:
        """A pod is gone."""
        counted = self.counts.pop(f"uid-{name}")
        self.tree.count(self.tree.nodes[counted.quota], counted.usage, NOTHING)

    def look(self, now: float) -> list[str]:
        """The names of the pods that are called back."""
        return [each.pod.name for each in self.watch.look(self, now)]

    def due(self) -> list[str]:
        """The same, long enough after the quota went above."""
        assert self.look(0.0) == []
        return self.look(120.1)


def lent(**more: Any) -> Quotas:
    """``b`` may borrow what ``a`` leaves of 10 CPUs; four pods of ``b`` of 2 CPUs do."""
    borrowing = Quotas(cpu=10_000)
    borrowing.quota("a", {"cpu": 6}, {"cpu": 10})
    borrowing.quota("b", {"cpu": 4}, {"cpu": 10})
    for place in range(4):
        borrowing.pod(f"b{place}", "b", created=float(place), cpu=2_000, **more)
    return borrowing


def test_what_was_lent_is_called_back_when_it_was_above_for_longer_than_the_delay() -> None:
    """Strictly longer: at the delay itself nobody goes; the youngest go first."""
    borrowing = lent()
    assert borrowing.look(0.0) == []
    borrowing.pod("a0", "a", waits=True, cpu=6_000)
    assert borrowing.look(100.0) == []
    assert borrowing.look(120.0) == []
    assert sorted(borrowing.look(120.1)) == ["b2", "b3"]


def test_a_quota_that_was_within_meanwhile_waits_the_whole_delay_again() -> None:
    """The time counts from the last moment within."""
    borrowing = lent()
    borrowing.pod("a0", "a", waits=True, cpu=6_000)
    borrowing.look(0.0)
    borrowing.gone("a0")
    assert borrowing.look(119.0) == []
    borrowing.pod("a1", "a", waits=True, cpu=6_000)
    assert borrowing.look(239.0) == []
    assert sorted(borrowing.look(239.1)) == ["b2", "b3"]


def test_the_lower_priority_goes_first_and_who_may_not_be_preempted_never() -> None:
    """Age decides among equals only."""
    borrowing = lent()
    borrowing.pod("low", "b", priority=-5, created=-9.0, cpu=2_000)
    borrowing.pod("fixed", "b", priority=-9, fixed=True, cpu=1_000)
    borrowing.pod("a0", "a", waits=True, cpu=6_000)
    assert sorted(borrowing.due()) == ["b1", "b2", "b3", "low"], (
        "11 used, 4 may be: 8 go, 1 is fixed"
    )


def test_nobody_goes_who_has_nothing_of_what_is_exceeded() -> None:
    """A pod without CPU cannot help, even where all others together do not."""
    borrowing = Quotas(cpu=4_000, memory=100)
    borrowing.quota("b", {}, {"cpu": 1, "memory": 100})
    borrowing.pod("idle", "b", priority=-1, memory=50)
    borrowing.pod("fixed", "b", fixed=True, cpu=3_000)
    borrowing.pod("busy", "b", cpu=1_000)
    assert borrowing.due() == ["busy"]


def test_the_most_important_stay_after_all_where_there_is_room() -> None:
    """1 too much: a small pod is taken first, then a large one; the small one stays."""
    borrowing = Quotas(cpu=10_000)
    borrowing.quota("b", {}, {"cpu": 7})
    borrowing.pod("small", "b", priority=2, cpu=1_000)
    borrowing.pod("large", "b", priority=1, cpu=3_000)
    borrowing.pod("first", "b", priority=0, cpu=1_000)
    borrowing.pod("keeps", "b", priority=9, cpu=5_000)
    assert borrowing.due() == ["large"], "with large gone, first fits again"


def test_the_peers_four_pods_give_back_the_one_with_memory_and_the_largest() -> None:
    """50 CPUs of 90 may be used and no memory; nothing at all: everybody goes who has a node."""
    scene = Quotas(cpu=50_000, memory=0)
    scene.quota("q", {}, {"cpu": 90, "memory": 10})
    cpus = {"1": (10, 20, 0), "2": (9, 10, 1), "3": (8, 20, 0), "4": (7, 40, 0)}
    for name, (priority, cpu, memory) in cpus.items():
        more: dict[str, Any] = {"memory": memory} if memory else {}
        scene.pod(name, "q", priority=priority, cpu=cpu * 1000, **more)
    assert sorted(scene.due()) == ["2", "4"]
    scene.tree.set_total({})
    scene.gone("4")
    scene.pod("4", "q", priority=7, waits=True, cpu=40_000)
    scene.look(200.0)
    assert sorted(scene.look(400.0)) == ["1", "2", "3"]


def test_pods_that_end_count_as_gone() -> None:
    """The peer chooses them again each second, and others with them."""
    borrowing = lent()
    borrowing.pod("a0", "a", waits=True, cpu=6_000)
    borrowing.look(0.0)
    borrowing.counts["uid-b0"].pod.terminating = True
    assert borrowing.look(120.1) == ["b3"]


def test_who_was_chosen_is_named_again_until_gone_and_spared_when_there_is_room() -> None:
    """A refused eviction is tried again; nobody goes in vain, and nobody else for it."""
    borrowing = lent()
    borrowing.pod("a0", "a", waits=True, cpu=6_000)
    borrowing.look(0.0)
    assert sorted(borrowing.look(120.1)) == ["b2", "b3"]
    assert sorted(borrowing.look(121.1)) == ["b2", "b3"]
    borrowing.counts["uid-b3"].pod.terminating = True
    assert borrowing.look(122.1) == ["b2"]
    borrowing.gone("b3")
    assert borrowing.look(400.0) == ["b2"], "nobody else, also after another delay"
    borrowing.gone("a0")
    assert borrowing.look(401.0) == []


def test_a_parent_is_repaired_at_its_leaves_and_not_twice() -> None:
    """Both are above: what the leaf calls back counts; the leaf with the largest excess first."""
    borrowing = Quotas(cpu=4_000)
    borrowing.quota("other", {"cpu": 2}, {"cpu": 4})
    parent = borrowing.quota("p", {"cpu": 2}, {"cpu": 4}, is_parent=True)
    borrowing.quota("x", {"cpu": 1}, {"cpu": 4}, parent, parent="p")
    borrowing.quota("y", {"cpu": 1}, {"cpu": 4}, parent, parent="p")
    for place in range(3):
        borrowing.pod(f"x{place}", "x", created=float(place), cpu=1_000)
    borrowing.pod("y0", "y", cpu=1_000)
    borrowing.pod("o", "other", waits=True, cpu=2_000)
    assert sorted(borrowing.due()) == ["x1", "x2"]


def test_a_parent_above_with_leaves_that_are_within_takes_from_the_fullest() -> None:
    """Guaranteed leaves may use more together than their parent has."""
    borrowing = Quotas(cpu=10_000)
    parent = borrowing.quota("p", {}, {"cpu": 3}, is_parent=True)
    for name, number in (("x", 1), ("y", 3)):
        borrowing.quota(name, {"cpu": 3}, {"cpu": 4}, parent, parent="p", lends=False)
        for place in range(number):
            borrowing.pod(f"{name}{place}", name, created=float(place), cpu=1_000)
    borrowing.tree._scales = False
    assert borrowing.due() == ["y2"]


@pytest.mark.parametrize("seed", range(40))
def test_a_choice_repairs_what_can_be_repaired_and_every_pod_of_it_is_needed(seed: int) -> None:
    """Random quotas: within afterwards unless none may go; each chosen pod put back breaks it."""
    chance = random.Random(seed)
    borrowing = Quotas(cpu=chance.randint(0, 20), memory=chance.randint(0, 20))
    borrowing.quota("b", {}, {"cpu": 1, "memory": chance.randint(0, 20)})
    for place in range(chance.randint(1, 12)):
        amounts: Any = quotas.amounts(chance, 6, ("cpu", "memory"))
        priority, fixed = chance.randint(0, 3), chance.random() < 0.2
        borrowing.pod(f"p{place}", "b", priority=priority, fixed=fixed, **amounts)
    node = borrowing.tree.nodes["b"]
    runtime = dict(borrowing.limit(node))
    chosen = set(borrowing.due())

    def within(names: set[str]) -> bool:
        used: dict[str, int] = {}
        for counted in borrowing.counts.values():
            if counted.pod.name not in names:
                for name, much in counted.usage.used.items():
                    used[name] = used.get(name, 0) + much
        return all(used.get(name, 0) <= runtime.get(name, 0) for name in ("cpu", "memory"))

    movable = {
        each.pod.name for each in borrowing.counts.values() if not each.usage.non_preemptible
    }
    assert chosen <= movable
    if within(movable):
        assert within(chosen)
        for name in chosen:
            assert not within(chosen - {name}), name
