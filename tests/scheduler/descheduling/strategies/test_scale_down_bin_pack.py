"""ScaleDownBinPack: the rank of replicas by their nodes, written or acted upon."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.descheduling.round import EvictionProposal
from tests.kit.descheduling import evicted, node, play, pod, policy

WEB = {"podSelectors": [{"name": "web", "selector": {"matchLabels": {"app": "web"}}}]}
APP = {"app": "web"}


def strategy(**more: Any) -> dict[str, Any]:
    """The configuration, for pods of ``web``."""
    return policy({"ScaleDownBinPack": {**WEB, **more}})


def cluster() -> list[dict[str, Any]]:
    """Node a is web's alone, on b others have more, on c web has two pods."""
    return [
        *(node(name, cpu="4", memory="4Gi") for name in "abc"),
        pod("web-a", "a", cpu="1", labels=APP),
        pod("web-b", "b", cpu="1", labels=APP), pod("other-b", "b", cpu="2"),
        pod("web-c1", "c", cpu="500m", labels=APP), pod("web-c2", "c", cpu="1", labels=APP),
        pod("other-c", "c", cpu="500m"),
    ]  # fmt: skip


def test_nodes_that_little_else_needs_are_emptied_first() -> None:
    """By score, then inside a node the larger pod first."""
    directly = strategy(strategy="EvictDirectly", maxPodsToEvict=9)
    assert evicted(cluster(), directly) == ["web-a", "web-c2", "web-c1", "web-b"]
    assert evicted(cluster(), strategy(strategy="EvictDirectly", maxPodsToEvict=1)) == ["web-a"]


def test_the_rank_is_a_deletion_cost_and_nobody_goes() -> None:
    """Rank 0 is the lowest cost; a pod that has its cost already is left alone."""
    costs: dict[str, int | None] = {}

    def answer(proposal: EvictionProposal) -> None:
        costs[proposal.resident.pod.name] = proposal.deletion_cost

    bodies = cluster()
    cost = {"controller.kubernetes.io/pod-deletion-cost": "1"}
    (large,) = (body for body in bodies if body["metadata"]["name"] == "web-c2")
    large["metadata"]["annotations"] = cost
    result = play(bodies, strategy(), answer)
    # 0 is what a pod without one has.
    assert costs == {"web-c1": 2, "web-b": 3}
    assert len(result.ranked) == len(costs)
    assert result.decisions == []


def test_a_replica_that_may_not_be_evicted_is_the_last_to_be_scaled_in() -> None:
    """Without a cost it would be the first; other workloads keep theirs."""
    kept: dict[str, Any] = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}, "labels": APP}
    bodies = [
        *cluster(), pod("kept", "a", **kept), pod("daemon", "a", owner="DaemonSet/d", **kept),
    ]  # fmt: skip
    result = play(bodies, strategy())
    costs = {each.resident.pod.name: each.deletion_cost for each in result.ranked}
    assert costs == {"web-c2": 1, "web-c1": 2, "web-b": 3, "kept": 2**31 - 1}
    assert "pod has local storage" in result.ranked[-1].reason


def test_weights_are_numbers_above_0() -> None:
    """A node that CPUs alone would empty first is kept where memory weighs more."""
    bodies = [
        *(node(name, cpu="4", memory="4Gi") for name in "ab"),
        pod("web-a", "a", cpu="1", memory="1Gi", labels=APP), pod("other-a", "a", memory="2Gi"),
        pod("web-b", "b", cpu="1", memory="1Gi", labels=APP), pod("other-b", "b", cpu="2"),
    ]  # fmt: skip
    for weights, first in (({"cpu": 2.5, "memory": 1}, "web-a"), ({"memory": 0.5}, "web-b")):
        settings = strategy(strategy="EvictDirectly", maxPodsToEvict=1, resourceWeights=weights)
        assert evicted(bodies, settings) == [first]
    with pytest.raises(errors.ConfigError, match=r"resourceWeights: cpu: .*found 0"):
        play([], strategy(resourceWeights={"cpu": 0}))


def test_it_says_why_it_does_nothing() -> None:
    """Paused, or nobody is in view."""
    assert [note[2] for note in play(cluster(), strategy(paused=True)).notes] == ["it is paused"]
    nobody = {"podSelectors": [{"name": "x", "selector": {"matchLabels": {"app": "x"}}}]}
    result = play(cluster(), policy({"ScaleDownBinPack": nobody}))
    assert [note[2] for note in result.notes] == ["no pod is in view"]
