"""Quotas of namespaces in the scheduling loop."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.loop import configuration
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Refusal
from tests.kit import clusters
from tests.kit.quota_scene import QuotaScene
from tests.kit.quotas import capacity_scheduling, quota

_NAME, _SCHEDULER = "CapacityScheduling", "default-scheduler"


class CapacityScene(QuotaScene):
    """Pods of several namespaces, and a quota in some of them."""

    def __init__(self, *bodies: dict[str, Any]) -> None:
        super().__init__()
        self.core = Core(configuration.read(capacity_scheduling(_SCHEDULER), "f").profiles)
        self.put(*bodies)

    def run(self, name: str, namespace: str, cpu: str, priority: int, node: str = "n0") -> None:
        """A pod runs on a node."""
        self.put(clusters.pod(name, cpu=cpu, namespace=namespace, priority=priority, on=node))

    def preempted(self) -> set[str]:
        """The victims of the next attempt."""
        self.now += 400
        outcome = self.core.step(self.now)
        assert isinstance(outcome, Refusal)
        self.messages = {outcome.pod.name: outcome.message}
        return {victim.name for victim in outcome.victims}


def _quota(namespace: str, least: int, most: int | None = None, **more: Any) -> dict[str, Any]:
    bound = {} if most is None else {"cpu": most}
    return quota(more.pop("name", "q"), {"cpu": least}, bound, namespace=namespace, **more)


def _scene(*quotas: dict[str, Any], cpu: str = "20", nodes: int = 1) -> CapacityScene:
    machines = [clusters.node(f"n{place}", cpu=cpu) for place in range(nodes)]
    return CapacityScene(*machines, *quotas)


def test_a_namespace_is_bounded_by_its_maximum_with_the_peers_message() -> None:
    """Minimums have room; a namespace without a quota, and one without a maximum, are free."""
    scene = _scene(_quota("a", 1, 2), _quota("b", 9))
    for name, namespace in (("a0", "a"), ("a1", "a"), ("a2", "a"), ("b0", "b"), ("free", "c")):
        cpu = {"b0": "6", "free": "9"}.get(name, "1")
        scene.put(clusters.pod(name, cpu=cpu, namespace=namespace, preemptionPolicy="Never"))
    places = scene.decided()
    assert places == {"a0": "n0", "a1": "n0", "a2": "", "b0": "n0", "free": "n0"}
    assert (
        "Pod a/a2 is rejected in PreFilter because ElasticQuota a is more than Max"
        in scene.messages["a2"]
    )


def test_what_namespaces_borrow_is_bounded_by_the_sum_of_their_minimums() -> None:
    """Namespace a borrows the minimum of b, and no more than that."""
    scene = _scene(_quota("a", 1, 9), _quota("b", 2, 9))
    for place in range(4):
        scene.put(clusters.pod(f"a{place}", cpu="1", namespace="a", preemptionPolicy="Never"))
    assert list(scene.decided().values()) == ["n0", "n0", "n0", ""]
    assert (
        "Pod a/a3 is rejected in PreFilter because total ElasticQuota used is more than min"
        in scene.messages["a3"]
    )
    scene.core.pod(scene.core.pod_cache.get("a/a0"), None, scene.now)
    assert scene.decided(5.0) == {"a3": "n0"}
    scene.put(clusters.pod("a4", cpu="1", namespace="a", preemptionPolicy="Never"))
    assert scene.decided() == {"a4": ""}
    scene.put(_quota("b", 3, 9))
    assert scene.decided() == {"a4": "n0"}


def test_a_pod_within_its_minimum_takes_back_what_others_borrow_whatever_their_priority() -> None:
    """The least important goes first; pods of its own namespace and of no quota stay."""
    scene = _scene(_quota("a", 2, 9), _quota("b", 2, 9))
    scene.run("a0", "a", "1", 100)
    for place in range(3):
        scene.run(f"b{place}", "b", "1", 100 + place)
    scene.run("free", "c", "1", 0)
    scene.put(clusters.pod("a1", cpu="1", namespace="a", priority=0))
    assert scene.preempted() == {"b0"}


def test_a_namespace_that_borrows_is_not_brought_below_its_minimum() -> None:
    """Namespace b uses 1 beyond its minimum: one pod leaves, though two would make room."""
    scene = _scene(_quota("a", 3, 9), _quota("b", 2, 9), cpu="3")
    for place in range(3):
        scene.run(f"b{place}", "b", "1", 0)
    scene.put(clusters.pod("a0", cpu="2", namespace="a", priority=9))
    assert scene.preempted() == set()
    assert "Insufficient cpu" in scene.messages["a0"]
    scene.put(clusters.pod("a1", cpu="1", namespace="a", priority=10))
    assert len(scene.preempted()) == 1


def test_a_pod_beyond_its_minimum_takes_less_important_pods_of_its_own_namespace() -> None:
    """Though another namespace borrows, too."""
    scene = _scene(_quota("a", 2, 3), _quota("b", 1, 9), _quota("c", 2, 9))
    scene.run("a0", "a", "2", 1)
    scene.run("a1", "a", "1", 5)
    scene.run("b0", "b", "2", 0)
    scene.put(clusters.pod("a2", cpu="1", namespace="a", priority=9))
    assert scene.preempted() == {"a0"}


def test_a_pod_without_a_quota_takes_pods_without_one() -> None:
    """Those of quotas stay, however unimportant."""
    scene = _scene(_quota("a", 1, 9), cpu="4")
    scene.run("a0", "a", "2", 0)
    scene.run("free", "c", "2", 5)
    scene.put(clusters.pod("new", cpu="2", namespace="c", priority=9))
    assert scene.preempted() == {"free"}


def test_no_victims_is_said_by_node() -> None:
    """The peer's sentence."""
    scene = _scene(_quota("a", 1, 1))
    scene.run("a0", "a", "1", 9)
    scene.put(clusters.pod("a1", cpu="1", namespace="a", priority=9))
    assert scene.preempted() == set()
    assert "No victims found on node n0 for preemptor pod a1" in scene.messages["a1"]


def test_a_preemptor_waits_for_victims_of_any_priority_and_keeps_its_node() -> None:
    """Tried again it takes nobody else; when they are gone it runs."""
    scene = _scene(_quota("a", 1, 9), _quota("b", 1, 9), nodes=2)
    scene.run("b0", "b", "1", 100)
    scene.run("b1", "b", "1", 100, "n1")
    scene.put(clusters.pod("a0", cpu="1", namespace="a", priority=0))
    victims = scene.preempted()
    assert len(victims) == 1
    waiting = next(entry.pod for entry in scene.core.queue if entry.pod.name == "a0")
    scene.core.queue.add(waiting, 0.0)
    assert scene.preempted() == set()
    assert scene.messages["a0"].endswith(
        "not eligible due to a terminating pod on the nominated node."
    )
    scene.core.pod(scene.core.pod_cache.get(f"b/{victims.pop()}"), None, scene.now)
    assert scene.decided(5.0)["a0"]


def test_a_gang_is_refused_by_the_sum_of_its_members_until_there_is_room() -> None:
    """Two of three would be admitted: nobody is decided before all three are."""
    scene = _scene(_quota("a", 1, 2), _quota("b", 9))
    notes = {
        "gang.scheduling.koordinator.sh/name": "g",
        "gang.scheduling.koordinator.sh/min-available": "3",
    }
    for place in range(3):
        scene.put(clusters.pod(f"g{place}", cpu="1", namespace="a", meta={"annotations": notes}))
    assert set(scene.decided().values()) == {""}
    words = "Gang a/g is rejected in PreFilter because ElasticQuota a is more than Max"
    assert words in scene.messages["g0"]
    scene.put(_quota("a", 1, 3))
    assert set(scene.decided(5.0).values()) == {"n0"}


def test_a_nominated_pod_counts_as_if_it_ran() -> None:
    """What a0 will use is not given to a1, which is less important."""
    scene = _scene(_quota("a", 1, 1))
    scene.put(clusters.pod("a1", cpu="1", namespace="a", priority=0))
    body = clusters.pod("a0", cpu="1", namespace="a", priority=9)
    body["status"] = {**body.get("status", {}), "nominatedNodeName": "n0"}
    guest = scene.core.decoder.decode(body, 9)
    guest.nominated = "n0"
    scene.core.nominated.put(guest, "n0")
    assert scene.decided()["a1"] == ""
    scene.core.nominated.drop(guest.key)
    scene.put(_quota("a", 1, 1, labels={"x": "y"}), _quota("b", 1))
    assert scene.decided(400.0) == {"a1": "n0"}


def test_the_older_of_two_quotas_of_a_namespace_counts_until_it_goes() -> None:
    """The other one is named in a notice."""
    old = _quota("a", 1, 1, name="old", created="2025-01-01T00:00:00Z")
    scene = _scene(_quota("a", 5, 5, name="new"), old)
    assert dict(scene.book.nodes["a"].spec.max) == {"cpu": 1000}
    messages = [notice.message for notice in scene.book.take_notices()]
    assert messages == ["quota a/new is ignored: a/old is the namespace's already"]


def test_enabling_the_plugin_replaces_the_other_meaning_and_both_are_refused() -> None:
    """The error names both profiles and what to do."""
    served = configuration.read(capacity_scheduling(_SCHEDULER), "f").profiles["default-scheduler"]
    names = {plugin.name for plugin in served.plugins}
    assert (_NAME in names, "ElasticQuota" in names, served.preempts) == (True, False, True)
    with pytest.raises(Exception, match=r"one meaning.*disable one of them in every profile"):
        configuration.read(capacity_scheduling(_SCHEDULER, "ElasticQuota"), "f")


def test_arguments_of_the_plugin_are_refused() -> None:
    """It has none."""
    body = capacity_scheduling(_SCHEDULER)
    body["profiles"][0]["pluginConfig"] = [{"name": _NAME, "args": {"x": 1}}]
    with pytest.raises(Exception, match="CapacityScheduling has no arguments; remove x"):
        configuration.read(body, "f")
