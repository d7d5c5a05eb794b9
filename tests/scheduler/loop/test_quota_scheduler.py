"""Quotas in the scheduling loop."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import elastic_quotas
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import reservation_events
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Hold, Refusal
from koordlet.scheduler.objects import nodes
from tests.kit import clusters, reservations
from tests.kit.quota_scene import QuotaScene
from tests.kit.quotas import KEY, quota

IN = {"key": "pool", "operator": "In", "values": ["a", "b"]}
FIXED = {f"{KEY}preemptible": "false"}


def _scene(*quotas: dict[str, object], nodes_: int = 1, cpu: str = "10") -> QuotaScene:
    machines = [clusters.node(f"n{place}", cpu=cpu) for place in range(nodes_)]
    return QuotaScene(*machines, *quotas)


def test_a_pod_beyond_its_quota_waits_with_the_peers_message() -> None:
    """The sentence has the quota, its runtime, what it uses, the request and the names."""
    scene = _scene(quota("q", {}, {"cpu": 2, "memory": "1Gi"}))
    scene.pod("a", "q", "1500m")
    scene.pod("b", "q", "1")
    assert scene.decided() == {"a": "n0", "b": ""}
    assert scene.messages["b"].startswith(
        "0/1 nodes are available: Insufficient quotas, quotaName: q, runtime: cpu:2,memory:0,"
        " used: cpu:1500m,memory:0, pod's request: cpu:1, exceedDimensions: [cpu]."
    )


def test_a_pod_that_ends_wakes_who_waits_for_its_quota() -> None:
    """Nothing on any node changes for b but that its quota uses less."""
    scene = _scene(quota("q", {}, {"cpu": 1}))
    scene.pod("a", "q")
    scene.pod("b", "q")
    assert scene.decided() == {"a": "n0", "b": ""}
    assert scene.decided(1.0) == {}
    scene.drop("a")
    assert scene.decided(5.0) == {"b": "n0"}


def test_an_unplaced_pod_that_goes_gives_its_siblings_room() -> None:
    """Two quotas share by request: when one wants less, the other's runtime and its pods move."""
    scene = _scene(quota("a", {}, {"cpu": 10}), quota("b", {}, {"cpu": 10}))
    for name in ("x", "y"):
        scene.pod(name, "a", "5")
    for name in ("u", "v"):
        scene.pod(name, "b", "3")
    places = scene.decided()
    assert places == {"x": "n0", "y": "", "u": "n0", "v": ""}
    scene.drop("v")
    assert scene.decided(5.0) == {}
    scene.drop("u")
    assert scene.decided(5.0) == {"y": "n0"}


def test_a_quota_that_changes_or_comes_or_goes_moves_its_pods_at_once() -> None:
    """A bound that grows wakes; a label means the default quota until its quota comes."""
    scene = _scene(quota("q", {}, {"cpu": 1}))
    scene.pod("a", "q", "2")
    scene.pod("b", "later", "2")
    assert scene.decided() == {"a": "", "b": "n0"}
    scene.put(quota("q", {}, {"cpu": 2}))
    assert scene.decided(5.0) == {"a": "n0"}
    scene.put(quota("later", {}, {"cpu": 3}))
    assert scene.used("later") == {"cpu": 2000}
    scene.drop_quota("q")
    assert scene.used("koordinator-default-quota") == {"cpu": 2000}


def test_a_pod_without_a_quota_is_taken_off_the_total() -> None:
    """What the default quota uses cannot be shared: the runtime of q falls to what is left."""
    scene = _scene(quota("q", {}, {"cpu": 10}))
    scene.pod("free", "", "7", on="n0")
    scene.pod("a", "q", "3")
    scene.pod("b", "q", "1")
    assert scene.decided() == {"a": "n0", "b": ""}
    assert "runtime: cpu:3" in scene.messages["b"]


def test_a_pod_that_may_not_be_preempted_waits_for_the_minimum() -> None:
    """The runtime has room; what is sure is only the minimum."""
    scene = _scene(quota("q", {"cpu": 1}, {"cpu": 10}))
    scene.pod("a", "q", labels=FIXED)
    scene.pod("b", "q", labels=FIXED)
    assert scene.decided() == {"a": "n0", "b": ""}
    assert (
        "Insufficient non-preemptible quotas, quotaName: q, min: cpu:1, nonPreemptibleUsed: cpu:1,"
        " pod's request: cpu:1, exceedDimensions: [cpu]"
    ) in scene.messages["b"]


@pytest.mark.parametrize("checks", [True, False])
def test_a_quota_above_refuses_what_its_children_would_take_together(*, checks: bool) -> None:
    """By maximums alone each child has room; the message has the way from it."""
    args = {"enableRuntimeQuota": False, "enableCheckParentQuota": checks}
    served = profile.default("default-scheduler", {"ElasticQuota": args})
    scene = _scene()
    scene.core = Core({"default-scheduler": served})
    scene.put(
        clusters.node("n0", cpu="10"),
        quota("p", {}, {"cpu": 3}, is_parent=True),
        quota("a", {}, {"cpu": 2}, parent="p"),
        quota("b", {}, {"cpu": 2}, parent="p"),
    )
    scene.pod("x", "a", "2")
    scene.pod("y", "b", "2")
    assert scene.decided() == {"x": "n0", "y": "" if checks else "n0"}
    assert checks == any(
        "Insufficient quotas, quotaNameTopo: [p b], runtime: cpu:3,"
        " used: cpu:2, pod's request: cpu:2, exceedDimensions: [cpu]" in text
        for text in scene.messages.values()
    )


def test_names_that_a_quota_does_not_bound_are_free_and_zero_bounds_all() -> None:
    """Without cpu in max cpu is unlimited; with max memory 0 nothing with memory runs."""
    scene = _scene(quota("q", {}, {"memory": 0}))
    scene.pod("a", "q", "9")
    scene.pod("b", "q", "100m", memory="1Mi")
    assert scene.decided() == {"a": "n0", "b": ""}
    assert "runtime: memory:0" in scene.messages["b"]


def test_only_names_that_a_pod_asks_for_are_compared() -> None:
    """A quota beyond its memory admits a pod that asks for cpu alone."""
    scene = _scene(quota("q", {}, {"cpu": 9, "memory": "1Gi"}))
    scene.pod("big", "q", "1", memory="2Gi", on="n0")
    scene.pod("a", "q", "1")
    assert scene.decided() == {"a": "n0"}


def test_a_namespace_finds_its_quota_by_name_or_by_a_list() -> None:
    """One named as the namespace and lying in it, else the oldest that lists it."""
    listing = {f"{KEY}namespaces": '["x"]'}
    scene = _scene(
        quota("d", {}, {"cpu": 1}, namespace="d"),
        quota("old", {}, {"cpu": 1}, annotations=listing, created="2025-01-01T00:00:00Z"),
        quota("new", {}, {"cpu": 1}, annotations=listing),
    )
    scene.pod("a", cpu="2")
    scene.pod("b", cpu="2", namespace="x")
    scene.decided()
    assert "quotaName: d," in scene.messages["a"]
    assert "quotaName: old," in scene.messages["b"]
    messages = [notice.message for notice in scene.book.take_notices()]
    assert messages == [
        "namespace x is listed by quota old as well, which is older: its pods are there"
    ]


def test_preemption_for_room_on_a_node_takes_pods_of_the_same_quota_alone() -> None:
    """The quota has room, the node has none: a less important pod of another team stays."""
    scene = _scene(quota("q", {}, {"cpu": 9}), quota("other", {}, {"cpu": 9}), cpu="4", nodes_=3)
    scene.pod("alien", "other", "2", on="n0", priority=0)
    scene.pod("mine", "q", "2", on="n0", priority=5)
    scene.pod("high", "q", "2", priority=9, nodeSelector={clusters.HOST: "n0"})
    scene.now += 400
    outcome = scene.core.step(scene.now)
    assert isinstance(outcome, Refusal)
    assert "Insufficient cpu" in outcome.message
    assert [victim.name for victim in outcome.victims] == ["mine"]


def test_pods_that_may_not_be_preempted_are_never_victims() -> None:
    """Neither for the quota nor for the node."""
    scene = _scene(quota("q", {"cpu": 4}, {"cpu": 4}), cpu="4")
    scene.pod("low", "q", "4", on="n0", priority=1, labels=FIXED)
    scene.pod("high", "q", "1", priority=9)
    scene.decided()
    assert scene.messages["high"].endswith(
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_binding_that_fails_gives_the_quota_its_room_back() -> None:
    """Reserve adds, unreserve takes back; the next in line gets it."""
    scene = _scene(quota("q", {}, {"cpu": 1}))
    scene.pod("a", "q")
    assert scene.decided() == {"a": "n0"}
    assert scene.used("q") == {"cpu": 1000}
    scene.core.unbound(scene.core.pod_cache.assumed["d/a"], scene.now)
    assert scene.used("q") == {}


def test_a_profile_without_the_plugin_refuses_pods_of_quotas_by_name() -> None:
    """Placed as if there were no quota, they would be beyond it."""
    whole = profile.default("default-scheduler")
    plugins = tuple(plugin for plugin in whole.plugins if plugin.name != "ElasticQuota")
    bare = profile.Profile("default-scheduler", plugins, plugins, ())
    scene = _scene()
    scene.core = Core({"default-scheduler": bare})
    scene.core.node(None, nodes.decode(clusters.node("n0")), 0.0)
    scene.put(quota("q", {}, {"cpu": 1}))
    scene.pod("a", "q")
    scene.pod("b")
    assert scene.decided() == {"a": "", "b": "n0"}
    assert scene.messages["a"] == (
        "quota q is not heeded: profile default-scheduler has no plugin ElasticQuota; enable it"
    )


@pytest.mark.parametrize("key", ["priority", "admission"])
def test_bounds_of_our_own_refuse_by_name(key: str) -> None:
    """Pods of a priority and above together; the annotation ``admission`` as another maximum."""
    notes = {
        "priority": {"koordlet.io/max-by-priority": '{"9000": {"cpu": "1"}}'},
        "admission": {f"{KEY}admission": '{"cpu": "2"}'},
    }[key]
    scene = _scene(quota("q", {}, {"cpu": 9}, annotations=notes))
    scene.pod("a", "q", priority=9_000)
    scene.pod("b", "q", priority=10)
    scene.pod("c", "q", priority=9_500, preemptionPolicy="Never")
    places = scene.decided()
    words = {
        "priority": " for priority >= 9000, quotaName: q, max: cpu:1, used: cpu:1",
        "admission": ", quotaName: q, admission: cpu:2, used: cpu:2",
    }[key]
    assert list(places.values()).count("") == 1
    assert f"Insufficient quotas{words}" in next(iter(scene.messages.values()))


def test_a_gang_whose_sum_is_beyond_its_quota_is_refused_at_once() -> None:
    """No member is decided; when the quota has room for all of them, all go."""
    scene = _scene(quota("q", {}, {"cpu": 2}))
    scene.gang(3)
    assert set(scene.decided().values()) == {""}
    assert (
        "Insufficient quotas for gang d/g, quotaName: q, runtime: cpu:2, used: cpu:0,"
        " pod's request: cpu:3, exceedDimensions: [cpu]"
    ) in scene.messages["g0"]
    scene.put(quota("q", {}, {"cpu": 3}))
    assert set(scene.decided(5.0).values()) == {"n0"}


def test_a_gang_preempts_pods_of_its_own_quota_alone() -> None:
    """The quota is full: the least important pod of it leaves, those of others stay."""
    scene = _scene(quota("q", {}, {"cpu": 4}), quota("other", {}, {"cpu": 4}))
    scene.pod("low", "q", "3", on="n0", priority=1)
    scene.pod("alien", "other", "1", on="n0", priority=0)
    scene.gang(2, priority=9)
    scene.now += 400
    outcome = scene.core.step(scene.now)
    assert isinstance(outcome, Refusal)
    assert [victim.name for victim in outcome.victims] == ["low"]
    assert scene.used("q") == {"cpu": 3000}


@pytest.mark.parametrize(("disabled", "victims"), [(False, ["mine"]), (True, [])])
def test_the_default_quota_preempts_inside_itself_where_the_arguments_say_so(
    *, disabled: bool, victims: list[str]
) -> None:
    """It has a maximum of 4 CPUs, all of them used; the pod of a team is less important still."""
    scene, args = _scene(), {"disableDefaultQuotaPreemption": disabled}
    served = profile.default("default-scheduler", {"ElasticQuota": args})
    scene.core = Core({"default-scheduler": served})
    several = quota("q", {}, {"cpu": 9}), quota(elastic_quotas.DEFAULT, {}, {"cpu": 4})
    scene.put(clusters.node("n0", cpu="10"), *several)
    scene.pod("mine", "", "4", on="n0", priority=1)
    scene.pod("theirs", "q", "1", on="n0", priority=0)
    scene.pod("new", "", "1", priority=9)
    outcome = scene.core.step(scene.now)
    assert isinstance(outcome, Refusal)
    assert [victim.name for victim in outcome.victims] == victims


def test_batch_resources_are_bounded_like_any_others() -> None:
    """``kubernetes.io/batch-cpu`` is a name of the quota, of the node and of the pod."""
    name = "kubernetes.io/batch-cpu"
    scene = QuotaScene(
        clusters.node("n0", allocatable={name: "9000"}), quota("q", {}, {name: 1500})
    )
    for pod in ("a", "b"):
        scene.pod(pod, "q", "0", requests={name: "1000"})
    assert scene.decided() == {"a": "n0", "b": ""}
    assert f"exceedDimensions: [{name}]" in scene.messages["b"]


@pytest.mark.parametrize("selector", [{"matchLabels": {"pool": "a"}}, {"matchExpressions": [IN]}])
def test_pods_of_a_tree_are_kept_on_its_nodes(selector: dict[str, object]) -> None:
    """The other node has room, and is not of the pool; a switch on the root leaves them free."""
    pool = {"pool": "a"}
    profile_ = {
        "kind": "ElasticQuotaProfile",
        "metadata": {"name": "p", "namespace": "d"},
        "spec": {"quotaName": "root", "nodeSelector": selector},
    }
    child = quota("q", {}, {"cpu": 9, "memory": "9Gi"}, parent="root")
    scene = QuotaScene(
        *(clusters.node("n0"), clusters.node("n1", cpu="2", labels=pool), profile_, child)
    )
    scene.pod("a", "q", "2")
    scene.pod("b", "q", "2")
    assert scene.decided() == {"a": "n1", "b": ""}
    scene.pod("c")
    assert scene.decided(1.0) == {"c": "n0"}
    ignoring = {"koordlet.io/quota-nodes": "ignore"}
    scene.put(quota("root", {}, {"cpu": 9}, annotations=ignoring))
    assert not scene.book.selector(scene.stored["d/a"].pod_class)


def test_a_reservation_and_its_pod_count_once_in_a_full_quota() -> None:
    """The hold fills the quota: its owner is admitted by drawing on it, another pod is not."""
    mine = {f"{KEY}name": "q"}
    body = reservations.reservation("r", cpu="4")
    template = body["spec"]["template"]
    template["metadata"] = {**template.get("metadata", {}), "labels": mine}
    template["spec"]["schedulerName"] = "default-scheduler"
    body["spec"]["owners"] = [{"labelSelector": {"matchLabels": {"app": "mine"}}}]
    scene = _scene(quota("q", {}, {"cpu": 4}))
    reservation_events.changed(scene.core, None, body, 0.0)
    assert isinstance(scene.core.step(400.0), Hold)
    scene.now = 400.0
    assert scene.used("q") == {"cpu": 4000}
    scene.pod("owner", "q", "2", labels={"app": "mine"})
    scene.pod("other", "q", "1")
    assert scene.decided() == {"owner": "n0", "other": ""}
    assert scene.used("q") == {"cpu": 4000}
    reservation_events.changed(scene.core, body, None, scene.now)
    assert scene.used("q") == {"cpu": 2000}
    assert scene.decided() == {"other": "n0"}


def test_a_gang_that_lacks_room_on_nodes_leaves_other_teams_alone() -> None:
    """The quota has room, the node has none: the pod of its own quota leaves."""
    scene = _scene(quota("q", {}, {"cpu": 9}), quota("other", {}, {"cpu": 9}), cpu="4", nodes_=3)
    scene.pod("alien", "other", "2", on="n0", priority=0)
    scene.pod("mine", "q", "2", on="n0", priority=5)
    scene.gang(2, priority=9, nodeSelector={clusters.HOST: "n0"})
    scene.now += 400
    outcome = scene.core.step(scene.now)
    assert isinstance(outcome, Refusal)
    assert [victim.name for victim in outcome.victims] == ["mine"]
