"""What was taken of a budget counts until its status has it."""

from __future__ import annotations

from koordlet.kubeapi import selectors
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.objects.disruption import DisruptionBudget, DisruptionBudgets, Protection
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters

WEB = selectors.Selector(labels="app=web").compiled()


def pods(number: int) -> list[Pod]:
    """Pods of the application."""
    bodies = [clusters.pod(f"p{n}", labels={"app": "web"}) for n in range(number)]
    return inventory.load(bodies).pending


def violating(budgets: DisruptionBudgets, several: list[Pod], now: float = 0.0) -> list[str]:
    """Who could not go one after the other."""
    return [pod.name for pod in Protection(tuple(budgets.at(now))).split(several)[0]]


def budget(allowed: int) -> DisruptionBudget:
    """As its status says."""
    return DisruptionBudget("d", WEB, allowed)


def test_what_was_taken_is_less_that_may_go() -> None:
    """Between two cycles, without a word of the store."""
    known, several = DisruptionBudgets(), pods(4)
    known.put("d/web", budget(2))
    known.take(several[:1], 0.0)

    assert violating(known, several[1:]) == ["p2", "p3"]
    assert violating(known, several) == ["p2", "p3"], "the victim itself is counted already"


def test_a_status_that_is_older_than_the_end_of_a_victim_changes_nothing() -> None:
    """Only one that comes after the victim was seen to end has it counted."""
    known, several = DisruptionBudgets(), pods(3)
    known.put("d/web", budget(1))
    known.take(several[:1], 0.0)
    known.put("d/web", budget(1))
    assert violating(known, several[1:]) == ["p1", "p2"]
    known.ends(several[0].uid)
    assert violating(known, several[1:]) == ["p1", "p2"]
    known.put("d/web", budget(0))
    assert violating(known, several[1:]) == ["p1", "p2"]
    known.put("d/web", budget(1))
    assert violating(known, several[1:]) == ["p2"]


def test_a_victim_that_stays_or_is_never_counted_is_given_back() -> None:
    """One could not be deleted; another was not healthy, so that no status tells of it."""
    known, several = DisruptionBudgets(), pods(3)
    known.put("d/web", budget(1))
    known.take(several[:1], 0.0)
    known.spare(several[0].uid)
    assert violating(known, several[1:]) == ["p2"]
    known.take(several[:1], 10.0)
    known.ends(several[0].uid)
    assert violating(known, several[1:], now=100.0) == ["p1", "p2"]
    assert violating(known, several[1:], now=131.0) == ["p2"]
