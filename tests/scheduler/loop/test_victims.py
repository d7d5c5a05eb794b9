"""Victims from the decision until they are gone."""

from __future__ import annotations

from koordlet.kubeapi import selectors
from koordlet.scheduler.loop.pod_cache import PodCache
from koordlet.scheduler.loop.victims import Victims
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.disruption import DisruptionBudget, DisruptionBudgets
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters, gangs


class Scene:
    """Two pods on a node of four CPUs, and a budget that covers both."""

    def __init__(self) -> None:
        self.cache = PodCache()
        self.cache.put(nodes.decode(clusters.node("n")))
        selector = selectors.Selector(labels="app=web").compiled()
        self.budget = DisruptionBudget("d", selector, 2)
        self.budgets = DisruptionBudgets()
        self.budgets.put("d/all", self.budget)
        #: Whether victims leave it or have left, by node.
        self.heard: list[str] = []

        def leave(node: str) -> None:
            self.heard.append(f"{node} leave")

        def left(node: str) -> None:
            self.heard.append(f"{node} left")

        self.victims = Victims(self.cache, self.budgets, leave, left)
        self.first, self.second = (self.settled(name) for name in "ab")

    def settled(self, name: str) -> Pod:
        """A pod that runs on the node."""
        pod = gangs.decoded(clusters.pod(name, cpu="1", labels={"app": "web"}, meta={"uid": name}))
        self.cache.settle(pod, "n")
        return pod


def test_a_victim_leaves_its_node_and_its_budget_until_it_is_gone() -> None:
    """The node is waited for until the last one has left; the budget remembers both."""
    scene = Scene()
    assert scene.victims.take((scene.first, scene.second), 1.0) == (scene.first, scene.second)
    assert scene.first.terminating
    assert scene.first.preempted
    assert "a" in scene.victims
    assert set(scene.budget.taken) == {"a", "b"}

    scene.victims.drop("a")
    assert "a" not in scene.victims
    assert "n" in scene.victims.leaving
    assert scene.heard == ["n leave"]
    scene.victims.drop("b")
    assert "n" not in scene.victims.leaving
    assert scene.heard == ["n leave", "n left"]


def test_a_pod_that_ends_by_itself_is_no_victim() -> None:
    """It is neither evicted again nor counted against a budget."""
    scene = Scene()
    scene.cache.ending(scene.first, ends=True)
    assert scene.victims.take((scene.first, scene.second), 1.0) == (scene.second,)
    assert not scene.first.preempted
    assert set(scene.budget.taken) == {"b"}


def test_a_victim_that_could_not_be_deleted_counts_as_before() -> None:
    """Its node waits for nobody, its budget is whole again, and it ends no more."""
    scene = Scene()
    scene.victims.take((scene.first,), 1.0)
    assert scene.victims.spare(scene.first)
    assert not scene.first.terminating
    assert "n" not in scene.victims.leaving
    assert scene.budget.taken == {}
    assert not scene.victims.spare(scene.first), "it does not end any more"


def test_a_namesake_of_a_victim_is_not_spared_in_its_place() -> None:
    """The pod was made again under its name: what ends there is another one."""
    scene = Scene()
    scene.victims.take((scene.first,), 1.0)
    namesake = gangs.decoded(clusters.pod("a", cpu="1", meta={"uid": "new"}))
    scene.cache.settle(namesake, "n")
    scene.cache.ending(namesake, ends=True)
    assert not scene.victims.spare(scene.first)
    assert namesake.terminating
