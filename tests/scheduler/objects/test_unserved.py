"""What a pod asks for and this scheduler lacks is refused by name, never passed over."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.objects import unserved
from koordlet.scheduler.sim import simulation
from tests.kit.clusters import node, pod, tried

Body = dict[str, Any]
QUOTA = "quota.scheduling.koordinator.sh"


def why(*bodies: Body) -> str:
    """The message of the pod ``p``, empty where it is placed."""
    outcome = tried(node("n"), *bodies)
    return next((entry["message"] for entry in outcome["pending"] if entry["pod"] == "d/p"), "")


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        ("scheduling.x-k8s.io/pod-group", {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}),
        ("spec.workloadRef", {"workloadRef": {"name": "w", "podGroup": "g"}}),
    ],
)
def test_a_pod_that_names_what_is_lacking_waits_and_its_message_names_the_key(
    key: str, asked: Body
) -> None:
    """Gangs in a dialect that nothing serves are refused by name."""
    assert key in why(pod("p", **asked))


@pytest.mark.parametrize(
    "asked",
    [
        {"meta": {"annotations": {"gang.scheduling.koordinator.sh/min-available": "2"}}},
        {"labels": {f"{QUOTA}/preemptible": "false"}},
        {"labels": {f"{QUOTA}/name": "koordinator-default-quota"}},
        {"labels": {f"{QUOTA}/name": ""}},
    ],
)
def test_what_restricts_nobody_refuses_nobody(asked: Body) -> None:
    """A minimum without a gang, and the quota of everybody, are passed over."""
    assert why(pod("p", **asked)) == ""


def test_running_pods_stay_and_others_are_placed() -> None:
    """A pod that has its node holds its room, whatever it names."""
    gang = {"pod-group.scheduling.sigs.k8s.io": "g"}
    outcome = tried(
        node("n", cpu="4"), pod("runs", on="n", cpu="3", labels=gang), pod("q", cpu="2"), pod("r")
    )

    assert [placement["pod"] for placement in outcome["placements"]] == ["d/r"]
    assert "Insufficient cpu" in outcome["pending"][0]["message"]
    assert outcome["preemptions"] == []


def test_the_option_takes_labels_and_quotas_back_but_no_field() -> None:
    """Who carries the keys unused has pods placed as if they were not there."""
    bodies = [
        node("n"),
        {
            "kind": "ElasticQuota",
            "metadata": {"name": "d", "namespace": "d"},
            "spec": {"max": {"cpu": "0"}},
        },
        pod("q", cpu="1"),
        pod("g", labels={"pod-group.scheduling.sigs.k8s.io": "g"}),
        pod("k", schedulingGroup={"podGroupName": "g"}),
    ]
    report = simulation.Simulation(inventory.load(bodies, ignores_keys=True)).run()

    assert sorted(placement["pod"] for placement in report.placements) == ["d/g", "d/q"]
    assert [entry["pod"] for entry in report.pending] == ["d/k"]


def test_message_names_the_gang_and_the_way_out() -> None:
    """Who cannot change the pods can have them placed."""
    asking = pod("p", labels={"scheduling.x-k8s.io/pod-group": "g"})
    assert why(asking) == (
        "gang 'g' (label scheduling.x-k8s.io/pod-group) is not supported by this scheduler;"
        f" {unserved.OPTION} places such pods all the same"
    )


def test_what_pods_of_a_file_ask_for_is_known_without_placing_them() -> None:
    """Each pod by itself; nonsense and other kinds ask for nothing."""
    gangs = unserved.gangs_of(
        [
            {"kind": "ElasticQuota", "metadata": []},
            pod("p"),
            pod("q", on="n", labels={"scheduling.x-k8s.io/pod-group": "g"}, namespace="x"),
            {"kind": "Pod", "metadata": 7},
        ]
    )

    assert list(gangs) == ["", "g"]
