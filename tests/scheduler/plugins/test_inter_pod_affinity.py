"""Pod affinity and anti-affinity: both ways, required and preferred."""

from __future__ import annotations

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from tests.kit import clusters
from tests.kit.clusters import HOST, affinity, node, pod

WEB = {"app": "web"}
NODES = [node("a1", labels={"zone": "a"}), node("a2", labels={"zone": "a"}), node("b1")]


def feasible(*bodies: clusters.Body) -> set[str]:
    """Where the last pod could go."""
    placements = clusters.tried(*bodies)["placements"]
    return set(placements[-1]["scores"]) if placements else set()


def test_near_in_a_zone() -> None:
    """All nodes of the zone, none without the key."""
    wanted = pod("p", affinity=affinity("podAffinity", "zone"))

    assert feasible(*NODES, pod("o", on="a1", labels=WEB), wanted) == {"a1", "a2"}


def test_the_first_of_its_kind() -> None:
    """Where nobody matches and it matches itself, any node with the key will do."""
    wanted = pod("p", labels=WEB, affinity=affinity("podAffinity", "zone"))

    assert feasible(*NODES, wanted) == {"a1", "a2"}
    assert "3 node(s) didn't match pod affinity rules" in clusters.message(
        "q", *NODES, pod("q", affinity=affinity("podAffinity", "zone"))
    )


def test_far_from_others() -> None:
    """Own anti-affinity; a node without the key passes."""
    wanted = pod("p", affinity=affinity("podAntiAffinity", "zone"))

    assert feasible(*NODES, pod("o", on="a1", labels=WEB), wanted) == {"b1"}


def test_others_keep_it_away() -> None:
    """Anti-affinity of a pod that is there, with its own message."""
    there = pod("o", on="a1", affinity=affinity("podAntiAffinity", "zone"))

    assert feasible(*NODES, there, pod("p", labels=WEB)) == {"b1"}
    assert "2 node(s) didn't satisfy existing pods anti-affinity rules" in clusters.message(
        "p", *NODES[:2], there, pod("p", labels=WEB)
    )


def test_namespaces() -> None:
    """Own namespace by default; named, selected by labels, or all by an empty selector."""
    there = pod("o", on="a1", labels=WEB, namespace="other")
    space = {"kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "x"}}}
    far = {
        "nothing": affinity("podAntiAffinity", HOST),
        "named": affinity("podAntiAffinity", HOST, namespaces=["other"]),
        "selected": affinity(
            "podAntiAffinity", HOST, namespaceSelector={"matchLabels": {"team": "x"}}
        ),
        "all": affinity("podAntiAffinity", HOST, namespaceSelector={}),
    }
    repelled = {
        name: "a1" not in feasible(space, *NODES, there, pod("p", affinity=term))
        for name, term in far.items()
    }

    assert repelled == {"nothing": False, "named": True, "selected": True, "all": True}


def test_preferred_terms_both_ways() -> None:
    """The node of a friend gets 100, that of an enemy 0, times 2."""
    friends = affinity("podAffinity", HOST, weight=10)
    asked: clusters.Body = {"cpu": "0", "memory": "0"}
    scores = clusters.scores(
        "p", *NODES, pod("o", on="a1", labels=WEB, **asked), pod("p", affinity=friends, **asked)
    )
    assert scores["a1"] - scores["a2"] == 200

    enemy = pod("o", on="a1", affinity=affinity("podAntiAffinity", HOST, weight=10), **asked)
    scores = clusters.scores("p", *NODES, enemy, pod("p", labels=WEB, **asked))
    assert scores["a2"] - scores["a1"] == 200


def test_required_affinity_of_others_attracts() -> None:
    """A pod that must be near web pods makes its zone better for one, by the hard weight."""
    asked: clusters.Body = {"cpu": "0", "memory": "0"}
    there = pod("o", on="a1", affinity=affinity("podAffinity", "zone"), **asked)
    scores = clusters.scores("p", *NODES, there, pod("p", labels=WEB, **asked))

    assert scores["a2"] - scores["b1"] == 200


def test_victims_count_until_they_are_gone() -> None:
    """Preemption sees anti-affinity vanish with the victim."""
    there = pod("o", on="b1", affinity=affinity("podAntiAffinity", HOST), priority=0)
    outcome = clusters.tried(NODES[2], there, pod("p", labels=WEB, priority=5))

    assert outcome["preemptions"][0]["victims"] == ["d/o"]


def test_labels_of_a_namespace_wake_its_pods_and_those_that_select_by_them() -> None:
    """Nobody else is meant by others than before."""
    wanted = {
        "own": affinity("podAntiAffinity", HOST),
        "any": affinity("podAntiAffinity", HOST, namespaceSelector={}),
        "team": affinity("podAffinity", HOST, namespaceSelector={"matchLabels": {"team": "x"}}),
    }
    plugin, decoder = InterPodAffinity({}), Decoder({})
    classes = {
        name: decoder.decode(pod(name, affinity=term), 0).pod_class for name, term in wanted.items()
    }

    def woken(namespace: str) -> set[str]:
        event = ClusterEvent(ActionType.NAMESPACE, namespace=namespace)
        return {name for name, each in classes.items() if plugin.helps(event, each)}

    assert woken("other") == {"team"}
    assert woken("d") == {"own", "any", "team"}


@pytest.mark.parametrize(("team", "helps"), [("x", True), ("y", False)])
def test_a_pod_that_goes_helps_those_in_namespaces_that_it_shunned(
    team: str, *, helps: bool
) -> None:
    """By their labels; kube-scheduler's hint does not know these, and lets the pod sleep on."""
    space = {"kind": "Namespace", "metadata": {"name": "other", "labels": {"team": "x"}}}
    selector = {"matchLabels": {"team": team}}
    shuns = affinity("podAntiAffinity", HOST, namespaceSelector=selector)
    there = pod("o", on="b1", affinity=shuns)
    cluster = inventory.load([*NODES, space, there, pod("p", labels=WEB, namespace="other")])
    plugin, waits = InterPodAffinity({}), cluster.pending[0].pod_class
    plugin.filter(waits, cluster.columns)
    [leaves] = [known for pods in cluster.columns.pods for known in pods.values()]

    assert plugin.helps(ClusterEvent(ActionType.POD_GONE, pod=leaves), waits) is helps
