"""The simulation keeps its contract: places, messages, ties, preemption."""

from __future__ import annotations

import dataclasses

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import Plugin, RefusedError, profile
from koordlet.scheduler.loop import configuration
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.sim import simulation
from tests.kit import clusters, gangs, reservations
from tests.kit.clusters import node, pod


def test_the_lowest_of_equal_nodes_is_taken_and_all_are_named() -> None:
    """Equal totals are ties; the first in the input wins."""
    [placed] = clusters.tried(node("n2"), node("n1"), pod("p", cpu="1"))["placements"]

    assert placed["node"] == "n2"
    assert placed["ties"] == ["n2", "n1"]
    assert placed["scores"]["n1"] == placed["scores"]["n2"]
    assert placed["reservation"] is None
    assert placed["cpuset"] is None


def test_queue_order() -> None:
    """Priority first, then creation, then the input's order."""
    pods = [
        pod("late", cpu="1", meta={"creationTimestamp": "2026-01-02T00:00:00Z"}),
        pod("early", cpu="1", meta={"creationTimestamp": "2026-01-01T00:00:00Z"}),
        pod("important", cpu="1", priority=5),
    ]

    assert list(clusters.places(node("n1"), *pods)) == ["important", "early", "late"]


def test_the_message_has_the_grammar_of_the_peer() -> None:
    """Counts and reasons are sorted as text."""
    taint = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    nodes = [node(f"t{i}", spec=taint) for i in range(3)] + [node("a", cpu="1"), node("b", cpu="1")]

    assert (
        clusters.message("p", *nodes, pod("p", cpu="2"))
        == "0/5 nodes are available: 2 Insufficient cpu, 3 node(s) had untolerated taint(s)."
    )


def test_preemption_takes_the_least_important() -> None:
    """The victim is removed, the preemptor placed, both are told."""
    report = clusters.tried(
        node("n1"),
        pod("low", on="n1", cpu="2", priority=1),
        pod("mid", on="n1", cpu="2", priority=2),
        pod("high", cpu="2", priority=9),
    )

    assert report["preemptions"] == [{"pod": "d/high", "node": "n1", "victims": ["d/low"]}]
    assert [placement["pod"] for placement in report["placements"]] == ["d/high"]


def test_preemption_policy_never() -> None:
    """Who may not preempt says so."""
    report = clusters.tried(
        node("n1"),
        pod("low", on="n1", cpu="4"),
        pod("high", cpu="2", priority=9, preemptionPolicy="Never"),
    )

    assert (
        report["pending"][0]["message"] == "0/1 nodes are available: 1 Insufficient cpu."
        " no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )


def test_a_budget_moves_preemption_elsewhere() -> None:
    """The node without a violated budget is chosen although it comes later."""
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "d"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0},
    }
    report = clusters.tried(
        node("n1"),
        node("n2"),
        budget,
        pod("a", on="n1", cpu="4", labels={"app": "web"}),
        pod("b", on="n2", cpu="4", labels={"app": "db"}),
        pod("high", cpu="2", priority=9),
    )

    assert report["preemptions"][0]["victims"] == ["d/b"]


def test_gates_claims_and_groups_stay_pending() -> None:
    """Each is named; the others are scheduled."""
    report = clusters.tried(
        node("n1"),
        pod("gated", schedulingGates=[{"name": "a"}, {"name": "b"}]),
        pod("claims", resourceClaims=[{"name": "gpu", "resourceClaimName": "gone"}]),
        pod("group", schedulingGroup={"podGroupName": "g"}),
        pod("fine"),
    )
    messages = {entry["pod"]: entry["message"] for entry in report["pending"]}

    assert messages["d/gated"] == "waiting for scheduling gates: [a b]"
    assert messages["d/claims"] == 'resourceclaim "gone" not found'
    assert "waiting for pods's pod group" in messages["d/group"]
    assert [placement["pod"] for placement in report["placements"]] == ["d/fine"]


def test_hostile_objects_cost_only_themselves() -> None:
    """Negative, unreadable and huge amounts and labels are named; the rest goes on."""
    loaded = inventory.load(
        [
            node("n1"),
            node("bad", allocatable={"cpu": "x"}),
            node("long", labels={"a": "b" * 63_000}),
            pod("negative", cpu="-1"),
            pod("absurd", cpu="9999999999999999999999E"),
            pod("odd", requests={"cpu": [1]}),
            {"kind": "Pod", "metadata": "no", "spec": 5},
            pod("selector", affinity={"podAffinity": {"requiredDuring": 1}}),
        ]
    )
    run = simulation.Simulation(loaded).run()

    assert [placement["pod"] for placement in run.placements] == ["d/selector"]
    assert {"d/negative", "d/odd", "d/absurd", "without a name"} >= {
        entry["pod"] for entry in run.pending
    }
    assert any("Node long" in warning for warning in loaded.warnings)
    assert any("Node bad" in warning for warning in loaded.warnings)


def test_a_volume_that_cannot_be_read_is_named_once() -> None:
    """Several plugins look at volumes, and each profile has its own."""
    volume = {"kind": "PersistentVolume", "metadata": {"name": "bad"}, "spec": {"csi": 5}}
    loaded = inventory.load([node("n1"), volume, pod("a"), pod("b", schedulerName="other")])
    simulation.Simulation(loaded).run()

    assert [text.partition(":")[0] for text in loaded.warnings] == [
        "PersistentVolume bad is ignored"
    ]


def test_no_nodes() -> None:
    """Without nodes there is nothing to count."""
    assert clusters.message("p", pod("p")) == "no nodes available to schedule pods"


class Full(Plugin):
    """Finds nothing on any node when it comes to it."""

    name = "Full"

    def prepare(self, pod: Pod, node: str) -> None:
        raise RefusedError(f"{node} has nothing for {pod.key}")


def test_a_plugin_that_finds_nothing_costs_that_pod_or_reservation() -> None:
    """What was feasible and cannot be had after all waits, with the plugin's words."""
    usual = profile.default()
    mine = dataclasses.replace(usual, plugins=(*usual.plugins, Full({})))
    loaded = inventory.load([node("n1"), pod("p"), reservations.reservation("r", cpu="1")])
    run = simulation.Simulation(
        loaded, configuration.Configuration({profile.DEFAULT_NAME: mine}), now=reservations.NOW
    ).run()

    assert run.placements == []
    assert [entry["message"] for entry in run.pending] == ["n1 has nothing for d/p"]
    assert [(reservation["name"], reservation["node"]) for reservation in run.reservations] == [
        ("r", None)
    ]


def _protected(app: str, allowed: int) -> dict[str, object]:
    """A budget for pods of an application."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "d"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def test_a_budget_counts_down_with_each_preemption() -> None:
    """With a budget of one the second preemptor takes the pod that nobody protects."""
    several = [pod(name, on=name, cpu="4", labels={"app": "web"}) for name in ("n1", "n2")]
    report = clusters.tried(
        *(node(name) for name in ("n1", "n2", "n3")),
        _protected("web", 1),
        *several,
        pod("free", on="n3", cpu="4", labels={"app": "db"}, priority=1),
        *(pod(name, cpu="2", priority=9) for name in ("a", "b")),
        *(pod(name, cpu="2", priority=8) for name in ("c", "e")),
    )
    victims = [preemption["victims"] for preemption in report["preemptions"]]

    assert victims[0] == ["d/n1"]
    assert victims[1] == ["d/free"]


def test_a_pod_is_tried_again_when_the_pod_that_it_seeks_was_placed() -> None:
    """Whoever must be near another pod may stand before it in the file."""
    near = clusters.affinity("podAffinity", clusters.HOST, app="cache")
    report = clusters.tried(
        node("n1"),
        pod("web", cpu="1", affinity=near),
        pod("other", cpu="1"),
        pod("cache", cpu="1", labels={"app": "cache"}),
    )

    assert [placement["pod"] for placement in report["placements"]] == [
        "d/other",
        "d/cache",
        "d/web",
    ]
    assert report["pending"] == []


def test_a_pod_is_tried_again_when_others_were_spread() -> None:
    """A pod that only one zone may have waits for the other zone to get its share."""
    nodes = [node("a", labels={"zone": "a"}), node("b", labels={"zone": "b"})]
    web = {"app": "web"}
    even = [clusters.spread("zone", nodeAffinityPolicy="Ignore")]
    places = clusters.places(
        *nodes,
        pod("old", on="a", labels=web),
        pod("bound", labels=web, nodeSelector={"zone": "a"}, topologySpreadConstraints=even),
        pod("free", labels=web, topologySpreadConstraints=even),
    )

    assert places == {"free": "b", "bound": "a"}


def test_what_is_taken_helps_nobody_who_waits_for_room() -> None:
    """A pod that lacks CPU is not tried after each pod that was placed, and keeps its words."""
    report = clusters.tried(
        node("n1"),
        pod("large", cpu="8"),
        *(pod(f"p{number}", cpu="1") for number in range(4)),
    )

    assert len(report["placements"]) == 4
    assert report["pending"] == [
        {
            "pod": "d/large",
            "message": "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate,"
            " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        }
    ]


def test_what_an_api_server_would_refuse_is_rejected_by_name() -> None:
    """Nobody has looked at a file before us; what has a UID has passed an API server."""
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b c"]}]}
                ]
            }
        }
    }
    bad = pod("bad", affinity=affinity)
    report = clusters.tried(node("n1"), bad, clusters.stored(pod("old", affinity=affinity)))
    messages = {entry["pod"]: entry["message"] for entry in report["pending"]}

    assert report["placements"] == []
    assert messages["d/bad"].startswith("rejected: spec.affinity.nodeAffinity.required")
    assert "didn't match Pod's node affinity/selector" in messages["d/old"]


def test_gangs_are_gathered_in_the_network_of_the_files() -> None:
    """The object named ``default`` counts; another one is a warning; the row names the place."""
    cluster = [
        clusters.node(name, cpu="1", labels={"net/rack": rack})
        for name, rack in (("n1", "a"), ("n2", "b"), ("n3", "b"))
    ]
    group = gangs.pod_group("g", 2, gather=gangs.gather(rack="Must"))
    networks = [gangs.network("rack"), gangs.network("rack", name="other")]
    pods = [gangs.labelled(name, "g", cpu="1") for name in "ab"]
    document = clusters.tried(*cluster, group, *networks, *pods)
    assert [gang["place"] for gang in document["gangs"]] == ["rack/b"]
    words = 'ClusterNetworkTopology other is ignored: the network is the object named "default"'
    assert words in inventory.load(networks).warnings
