"""What a pod asks for and this scheduler lacks is refused by name, never passed over."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.objects import unserved
from koordlet.scheduler.sim import simulation
from tests.kit.clusters import node, pod, tried

Body = dict[str, Any]
QUOTA = "quota.scheduling.koordinator.sh"
HINT = "scheduling.koordinator.sh/scheduling-hint"


def quota(name: str, namespace: str = "teams", **more: Any) -> Body:
    """An ElasticQuota; ``means``: the namespaces of its annotation."""
    means = more.pop("means", None)
    notes = {} if means is None else {f"{QUOTA}/namespaces": means}
    meta = {"name": name, "namespace": namespace, "annotations": notes}
    return {"kind": "ElasticQuota", "metadata": meta, "spec": {"max": {"cpu": "1"}, **more}}


def noted(**notes: str) -> Body:
    """Metadata with annotations; ``__`` is a slash."""
    return {"annotations": {key.replace("__", "/"): one for key, one in notes.items()}}


def why(*bodies: Body) -> str:
    """The message of the pod ``p``, empty where it is placed."""
    found = tried(node("n"), *bodies)
    return next((one["message"] for one in found["pending"] if one["pod"] == "d/p"), "")


@pytest.mark.parametrize(
    ("key", "asked"),
    [
        ("scheduling.x-k8s.io/pod-group", {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}),
        ("spec.workloadRef", {"workloadRef": {"name": "w", "podGroup": "g"}}),
        (f"{QUOTA}/name", {"labels": {f"{QUOTA}/name": "team-a"}}),
        (HINT, {"meta": {"annotations": {HINT: '{"nodeNames": ["n"]}'}}}),
        (
            f"internal.{HINT}",
            {"meta": {"annotations": {f"internal.{HINT}": '{"NodeNames": ["n"]}'}}},
        ),
        (HINT, {"meta": {"annotations": {HINT: "{nonsense"}}}),
    ],
)
def test_a_pod_that_names_what_is_lacking_waits_and_its_message_names_the_key(
    key: str, asked: Body
) -> None:
    """Gangs in a dialect that nothing serves, quotas and hard hints are refused by name."""
    assert key in why(pod("p", **asked))


@pytest.mark.parametrize(
    "asked",
    [
        {"meta": {"annotations": {HINT: '{"preferredNodeNames": ["n"]}'}}},
        {"meta": {"annotations": {HINT: '{"nodeNames": []}'}}},
        {"meta": {"annotations": {"gang.scheduling.koordinator.sh/min-available": "2"}}},
        {"labels": {f"{QUOTA}/preemptible": "false"}},
        {"labels": {f"{QUOTA}/name": "koordinator-default-quota"}},
        {"labels": {f"{QUOTA}/name": ""}},
    ],
)
def test_what_restricts_nobody_refuses_nobody(asked: Body) -> None:
    """Preferred nodes, a minimum without a gang, and the quota of everybody are passed over."""
    assert why(pod("p", **asked)) == ""


@pytest.mark.parametrize(
    ("bodies", "named"),
    [
        ([quota("d", "d")], "ElasticQuota d/d is named as namespace d"),
        ([quota("team-a", means='["x", "d"]')], "ElasticQuota teams/team-a lists namespace d"),
        (
            [{"kind": "Namespace", "metadata": {"name": "d", "labels": {f"{QUOTA}/name": "a"}}}],
            "of the namespace",
        ),
        (
            [{"kind": "Namespace", "metadata": {"name": "d", **noted(**{f"{QUOTA}__name": "a"})}}],
            "of the namespace",
        ),
    ],
)
def test_a_quota_means_pods_by_their_namespace_too(bodies: list[Body], named: str) -> None:
    """By a quota named as the namespace, by its list of namespaces, and by the Namespace itself."""
    assert named in why(*bodies, pod("p"))


@pytest.mark.parametrize(
    "body",
    [
        quota("team-a", "d"),
        quota("team-a", means='["x"]'),
        quota("team-a", means="{nonsense"),
        quota("koordinator-default-quota", "d", means='["d"]'),
        {"kind": "ElasticQuota", "metadata": {"name": "koordinator-default-quota"}},
    ],
)
def test_a_quota_of_others_and_the_default_quota_refuse_nobody(body: Body) -> None:
    """Where an ElasticQuota lies means nothing; whom nothing names is in the default quota."""
    assert why(body, pod("p")) == ""


def test_a_default_quota_with_a_bound_is_said() -> None:
    """It refuses nobody, and that its bound is not counted is a warning; one made without, none."""
    vast: Body = {"max": {"cpu": str((2**63 - 1) // 5000), "memory": str((2**63 - 1) // 5)}}
    bounded = inventory.load([quota("koordinator-default-quota")])
    boundless = inventory.load([quota("koordinator-default-quota", **vast)])

    (said,) = bounded.warnings
    assert said.startswith("ElasticQuota koordinator-default-quota bounds pods without a quota")
    assert boundless.warnings == []


def test_running_pods_stay_and_others_are_placed() -> None:
    """A pod that has its node holds its room, whatever it names."""
    gang = {"pod-group.scheduling.sigs.k8s.io": "g"}
    found = tried(
        node("n", cpu="4"), pod("runs", on="n", cpu="3", labels=gang), pod("q", cpu="2"), pod("r")
    )

    assert [one["pod"] for one in found["placements"]] == ["d/r"]
    assert "Insufficient cpu" in found["pending"][0]["message"]
    assert found["preemptions"] == []


def test_the_option_takes_labels_and_quotas_back_but_no_field() -> None:
    """Who carries the keys unused has pods placed as if they were not there."""
    bodies = [
        node("n"),
        quota("d", "d"),
        pod("q"),
        pod("g", labels={"pod-group.scheduling.sigs.k8s.io": "g"}),
        pod("k", schedulingGroup={"podGroupName": "g"}),
    ]
    found = simulation.Simulation(inventory.load(bodies, ignores_keys=True)).run()

    assert sorted(one["pod"] for one in found.placements) == ["d/g", "d/q"]
    assert [one["pod"] for one in found.pending] == ["d/k"]


def test_one_message_names_everything_that_is_asked_for() -> None:
    """Who asks for two things hears of both at once, and of the way out."""
    both = pod("p", labels={"scheduling.x-k8s.io/pod-group": "g", f"{QUOTA}/name": "a"})

    assert (
        "gang 'g' (label scheduling.x-k8s.io/pod-group) and quota 'a' (label"
        f" {QUOTA}/name) are not supported by this scheduler; {unserved.OPTION} places such pods"
        " all the same" == why(both)
    )


def test_what_pods_of_a_file_ask_for_is_known_without_placing_them() -> None:
    """Each pod by itself, also where a quota means its namespace; nonsense asks for nothing."""
    found = unserved.of_bodies(
        [
            quota("team-a", means=json.dumps(["d"])),
            pod("p"),
            pod("q", on="n", labels={"scheduling.x-k8s.io/pod-group": "g"}, namespace="x"),
            {"kind": "Pod", "metadata": 7},
            {"kind": "ElasticQuota", "metadata": []},
        ]
    )

    assert [sorted(one) for one in found] == [["quota"], ["gang"]]


def test_a_quota_that_goes_or_changes_means_what_it_says_now() -> None:
    """The last word of each quota counts, and nothing is left of one that went."""
    quotas = unserved.ElasticQuotas()
    quotas.put(unserved.UnservedQuota("t", "a", frozenset({"d", "e"})))
    quotas.put(unserved.UnservedQuota("t", "b", frozenset({"d"})))
    quotas.put(unserved.UnservedQuota("t", "a", frozenset({"e"})))

    assert "t/b" in quotas.of("d")["quota"]
    assert "t/a" in quotas.of("e")["quota"]
    quotas.drop(unserved.UnservedQuota("t", "b"))
    assert quotas.of("d") == {}
