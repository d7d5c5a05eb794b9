"""The newest decisions, with the scores by which they were made."""

from __future__ import annotations

from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import core, recent_decisions
from koordlet.scheduler.objects import nodes
from tests.kit import clusters, schedulers


def made(*several: str) -> core.Core:
    """A core that knows some nodes."""
    scheduler = core.Core({schedulers.NAME: profile.default(schedulers.NAME)}, spent=lambda: 0.0)
    for name in several:
        scheduler.node(None, nodes.decode(clusters.node(name)), 0.0)
    return scheduler


def wait(scheduler: core.Core, name: str, cpu: str = "1") -> None:
    """One more pod in the queue."""
    body = clusters.pod(name, cpu=cpu, schedulerName=schedulers.NAME, meta={"uid": name})
    scheduler.pod(None, scheduler.decoder.decode(body, 0), 0.0)


def test_a_decision_is_kept_with_its_scores() -> None:
    """The best node first, by the totals before the pod took its place there."""
    scheduler = made("n1", "n2")
    wait(scheduler, "a")
    wait(scheduler, "b")
    scheduler.step(1.0)
    scheduler.step(2.0)

    second, first = scheduler.decisions
    assert (first.pod, first.node, second.pod, second.node) == ("d/a", "n1", "d/b", "n2")
    assert first.ranking is not None
    assert second.ranking is not None
    assert first.ranking.feasible == 2
    assert [name for name, _ in first.ranking.best] == ["n1", "n2"]
    assert len({total for _, total in first.ranking.best}) == 1
    assert [name for name, _ in second.ranking.best] == ["n2", "n1"]


def test_a_refusal_is_kept_with_its_words() -> None:
    """There is no node and no score then."""
    scheduler = made("n1")
    wait(scheduler, "big", cpu="64")
    scheduler.step(1.0)

    [entry] = scheduler.decisions
    assert (entry.node, entry.ranking) == ("", None)
    assert entry.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_scores_are_not_computed_for_every_pod() -> None:
    """A queue that empties is not held up; the newest decisions are kept and no more."""
    scheduler = made("n1", "n2")
    for number in range(60):
        wait(scheduler, f"p{number}", cpu="1m")
    for number in range(60):
        scheduler.step(number * recent_decisions.PAUSE / 4)

    entries = list(scheduler.decisions)
    assert len(entries) == recent_decisions.KEPT
    assert entries[0].pod == "d/p59"
    assert 10 <= sum(each.ranking is not None for each in entries) <= 13
