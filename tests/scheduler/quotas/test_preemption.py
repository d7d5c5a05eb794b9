"""Whose leaving lets a pod be admitted by its quota, and where it goes then."""

from __future__ import annotations

import pytest

from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Refusal
from tests.kit import clusters
from tests.kit.quota_scene import QuotaScene
from tests.kit.quotas import quota


def _scene(*quotas: dict[str, object], nodes_: int = 1) -> QuotaScene:
    machines = [clusters.node(f"n{place}", cpu="10") for place in range(nodes_)]
    return QuotaScene(*machines, *quotas)


def test_preemption_inside_a_quota_takes_its_least_important_pods_on_any_node() -> None:
    """The node has room: the cheapest victim elsewhere frees the quota, other teams are safe."""
    scene = _scene(quota("q", {}, {"cpu": 4}), quota("other", {}, {"cpu": 4}), nodes_=2)
    scene.pod("low", "q", "2", on="n0", priority=1)
    scene.pod("mid", "q", "2", on="n1", priority=5)
    scene.pod("alien", "other", "1", on="n1", priority=0)
    scene.pod("high", "q", "1", priority=9, preemptionPolicy="PreemptLowerPriority")
    scene.now += 400
    outcome = scene.core.step(scene.now)
    assert isinstance(outcome, Refusal)
    assert [victim.name for victim in outcome.victims] == ["low"]
    assert scene.used("q") == {"cpu": 4000}
    scene.leave("low")
    assert scene.decided(5.0) == {"high": "n0"}


def test_a_preemptor_waits_for_the_victims_that_already_leave() -> None:
    """Tried again before they are gone, it takes nobody else."""
    scene = _scene(quota("q", {}, {"cpu": 4}), nodes_=2)
    for place, name in enumerate(("low", "mid")):
        scene.pod(name, "q", "2", on=f"n{place}", priority=1 + place)
    scene.pod("high", "q", "1", priority=9)
    scene.decided()
    scene.core.queue.add(next(e.pod for e in scene.core.queue if e.pod.name == "high"), 0.0)
    outcome = scene.core.step(scene.now)
    assert isinstance(outcome, Refusal)
    assert (outcome.victims, outcome.message.endswith("terminating pod of its quota.")) == (
        (),
        True,
    )


@pytest.mark.parametrize("gang", [False, True])
@pytest.mark.parametrize("harmed", ["b0", "b1"])
def test_of_equals_in_a_quota_the_one_leaves_whose_workload_was_disrupted_less(
    harmed: str, *, gang: bool
) -> None:
    """For a pod as for a gang; another team's pod that nobody ever disrupted stays."""
    scene = _scene()
    scene.core = Core(
        {"default-scheduler": profile.default("default-scheduler")},
        disrupted=lambda pod: 2.0 if pod.name == harmed else 0.0,
    )
    scene.put(clusters.node("n0", cpu="10"))
    scene.put(quota("q", {}, {"cpu": 4}), quota("other", {}, {"cpu": 4}))
    for name in ("b0", "b1"):
        scene.pod(name, "q", "2", on="n0", priority=1)
    scene.pod("alien", "other", "2", on="n0", priority=1)
    if gang:
        scene.gang(2, priority=9)
    else:
        scene.pod("high", "q", "2", priority=9)
    outcome = scene.core.step(400.0)
    assert isinstance(outcome, Refusal)
    assert [victim.name for victim in outcome.victims] == ["b1" if harmed == "b0" else "b0"]
    assert scene.used("q") == {"cpu": 4000}


def test_who_was_taken_for_a_quota_in_vain_is_given_back() -> None:
    """The least important pod is too small: with the next one gone it may stay."""
    scene = _scene(quota("q", {}, {"cpu": 4}), nodes_=2)
    scene.pod("small", "q", "1", on="n0", priority=1)
    scene.pod("large", "q", "3", on="n1", priority=2)
    scene.pod("high", "q", "3", priority=9)
    scene.now += 400
    outcome = scene.core.step(scene.now)
    assert isinstance(outcome, Refusal)
    assert [victim.name for victim in outcome.victims] == ["large"]
