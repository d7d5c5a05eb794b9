"""Quotas in the scheduling loop: in force from the first object, until the last one goes."""

from __future__ import annotations

from koordlet.kubeapi import elastic_quotas
from tests.kit import clusters
from tests.kit.quota_scene import QuotaScene
from tests.kit.quotas import quota


def _scene(*quotas: dict[str, object]) -> QuotaScene:
    return QuotaScene(clusters.node("n0", cpu="10"), *quotas)


def test_the_last_quota_that_goes_leaves_no_trace() -> None:
    """Who was refused runs, and nothing is counted any more."""
    scene = _scene(quota("q", {}, {"cpu": 1}))
    scene.pod("a", "q", "2")
    assert scene.decided() == {"a": ""}
    scene.drop_quota("q")
    assert scene.decided(5.0) == {"a": "n0"}
    assert not scene.core.quotas.active
    assert scene.core.quotas.book.get("d/a") is None


def test_built_in_objects_that_stay_behind_keep_no_quota_active() -> None:
    """Created ones have no maximum and bound nothing, and are still known when a quota comes."""
    built_in = [quota(name) for name in sorted(elastic_quotas.BUILT_IN)]
    scene = _scene(quota("q", {}, {"cpu": 1}), *built_in)
    scene.pod("a", "q", "2")
    assert scene.decided() == {"a": ""}
    scene.drop_quota("q")
    assert scene.decided(5.0) == {"a": "n0"}
    assert scene.core.quotas.active is False
    scene.put(quota("later", {}, {"cpu": 1}))
    quotas = scene.core.quotas
    assert quotas.active is True
    assert all(quotas.book.owner(name) for name in elastic_quotas.BUILT_IN)


def test_a_built_in_object_with_a_maximum_of_somebody_bounds_by_itself() -> None:
    """A default quota that its owner has bounded holds without any other quota."""
    scene = _scene(quota(elastic_quotas.DEFAULT, {}, {"cpu": 1}))
    scene.pod("a", "", "2")
    assert scene.decided() == {"a": ""}


def test_the_first_quota_takes_in_everything_that_is_there() -> None:
    """Nodes, pods on them and pods in the queue, as if it had been there from the start."""
    scene = _scene()
    scene.pod("a", "q", "2", on="n0")
    scene.pod("b", "q", "9")
    scene.put(quota("q", {}, {"cpu": 9}))
    node = scene.book.nodes["q"]
    assert (node.used, node.child_request) == ({"cpu": 2000}, {"cpu": 11_000})
    assert scene.book.trees[""].total["cpu"] == 10_000
