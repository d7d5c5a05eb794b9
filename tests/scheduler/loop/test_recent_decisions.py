"""The newest decisions, with the scores by which they were made."""

from __future__ import annotations

from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import core, recent_decisions
from koordlet.scheduler.objects import nodes
from tests.kit import clusters, schedulers


def made(*several: str) -> core.Core:
    """A core that knows some nodes."""
    one = core.Core({schedulers.NAME: profile.default(schedulers.NAME)}, spent=lambda: 0.0)
    for name in several:
        one.node(None, nodes.decode(clusters.node(name)), 0.0)
    return one


def wait(one: core.Core, name: str, cpu: str = "1") -> None:
    """One more pod in the queue."""
    body = clusters.pod(name, cpu=cpu, schedulerName=schedulers.NAME, meta={"uid": name})
    one.pod(None, one.decoder.decode(body, 0), 0.0)


def test_a_decision_is_kept_with_its_scores() -> None:
    """The best node first, by the totals before the pod took its place there."""
    one = made("n1", "n2")
    wait(one, "a")
    wait(one, "b")
    one.step(1.0)
    one.step(2.0)

    second, first = one.decisions
    assert (first.pod, first.node, second.pod, second.node) == ("d/a", "n1", "d/b", "n2")
    assert first.ranking is not None
    assert second.ranking is not None
    assert first.ranking.feasible == 2
    assert [name for name, _ in first.ranking.best] == ["n1", "n2"]
    assert len({total for _, total in first.ranking.best}) == 1
    assert [name for name, _ in second.ranking.best] == ["n2", "n1"]


def test_a_refusal_is_kept_with_its_words() -> None:
    """There is no node and no score then."""
    one = made("n1")
    wait(one, "big", cpu="64")
    one.step(1.0)

    [entry] = one.decisions
    assert (entry.node, entry.ranking) == ("", None)
    assert entry.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_scores_are_not_computed_for_every_pod() -> None:
    """A queue that empties is not held up; the newest decisions are kept and no more."""
    one = made("n1", "n2")
    for number in range(60):
        wait(one, f"p{number}", cpu="1m")
    for number in range(60):
        one.step(number * recent_decisions.PAUSE / 4)

    entries = list(one.decisions)
    assert len(entries) == recent_decisions.KEPT
    assert entries[0].pod == "d/p59"
    assert 10 <= sum(each.ranking is not None for each in entries) <= 13
