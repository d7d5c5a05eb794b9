"""A gang that its quota does not admit is tried once, and again only when something has changed."""

from __future__ import annotations

import pytest

from koordlet.scheduler.gangs import decisions, gang_scheduler
from tests.kit import clusters
from tests.kit.quota_scene import QuotaScene
from tests.kit.quotas import KEY, quota

FIXED = {f"{KEY}preemptible": "false"}


def attempts(scene: QuotaScene) -> int:
    """How often the gang was tried."""
    entry = scene.core.queue.get("d/g0")
    assert entry is not None
    return entry.attempts


def test_members_that_are_taken_back_make_room_for_nobody() -> None:
    """Two of three are within the minimum; what they give back was theirs alone."""
    scene = QuotaScene(clusters.node("n", cpu="20"), quota("q", {"cpu": 2}, {"cpu": 10}))
    scene.gang(3, labels=FIXED)
    assert scene.decided() == {"g0": "", "g1": "", "g2": ""}
    assert "Insufficient non-preemptible quotas" in scene.messages["g0"]
    assert attempts(scene) == 1
    scene.put(quota("q", {"cpu": 3}, {"cpu": 10}))
    assert scene.decided() == {"g0": "n", "g1": "n", "g2": "n"}


def test_victims_that_are_looked_at_in_vain_make_room_for_nobody() -> None:
    """With the one that could go, four still do not fit."""
    scene = QuotaScene(clusters.node("n", cpu="20"), quota("q", {"cpu": 1}, {"cpu": 4}))
    scene.pod("low", "q")
    scene.pod("fixed", "q", labels=FIXED)
    scene.decided()
    scene.confirm()
    scene.gang(4, priority=9)
    assert set(scene.decided().values()) == {""}
    assert "No preemption victims" in scene.messages["g0"]
    assert attempts(scene) == 1


def test_what_others_met_in_a_pause_wakes_them_and_not_the_gang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another pod found the quota full meanwhile; the members were decided with all that is."""
    for module in (decisions, gang_scheduler):
        monkeypatch.setattr(module, "TURN", 2)
    scene = QuotaScene(clusters.node("n", cpu="20"), quota("q", {"cpu": 3}, {"cpu": 5}))
    scene.core.gangs.pausing = True
    scene.gang(4, priority=9, labels=FIXED)
    scene.now = 1.0
    assert scene.core.step(scene.now) is None
    assert scene.core.gangs.paused
    scene.pod("other", "q", "4")
    refused = scene.core.step(scene.now)
    assert refused is not None
    assert refused.pod.name == "other"
    places = scene.decided(1.0)
    assert places == {"g0": "", "g1": "", "g2": "", "g3": "", "other": "n"}
    assert attempts(scene) == 1
