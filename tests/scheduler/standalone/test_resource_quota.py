"""ResourceQuotas: who is counted, by what, and in which words a pod is refused."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import refusals
from koordlet.scheduler.standalone import resource_quota
from tests.kit import clusters

Body = dict[str, Any]


def quota(hard: Body, *, scopes: tuple[str, ...] = (), selector: Body | None = None) -> Body:
    """A ResourceQuota."""
    spec: Body = {"hard": hard, "scopes": list(scopes)}
    if selector is not None:
        spec["scopeSelector"] = {"matchExpressions": [selector]}
    return {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "d"}, "spec": spec}


def refused(pod: Body, limit: Body, *others: Body) -> str:
    """Why a pod is refused beside others; empty: it is not."""
    try:
        resource_quota.check(pod, [resource_quota.read(limit)], others)
    except refusals.Forbidden as refusal:
        return str(refusal)
    return ""


def test_sum_of_requests_is_bound_and_the_refusal_has_all_three_numbers() -> None:
    """Only the resources that are exceeded are named, as the quota spells them."""
    limit = quota({"requests.cpu": "4", "memory": "10Gi", "services": "1"})
    known = clusters.pod("a", cpu="3", memory="1Gi")
    assert refused(clusters.pod("p", cpu="1", memory="1Gi"), limit, known) == ""
    why = refused(clusters.pod("p", cpu="1500m", memory="1Gi"), limit, known)
    assert (
        "exceeded quota: q, requested: requests.cpu=1500m, used: requests.cpu=3,"
        " limited: requests.cpu=4"
    ) in why
    both = refused(clusters.pod("p", cpu="2", memory="10Gi"), limit, known)
    assert "used: requests.cpu=3,memory=1Gi, limited: requests.cpu=4,memory=10Gi" in both


@pytest.mark.parametrize(
    ("hard", "asks", "free"),
    [
        ({"cpu": "2"}, {"container": {"resources": {"limits": {"cpu": "2"}}}}, 1),
        ({"limits.cpu": "4"}, {"container": {"resources": {"limits": {"cpu": "2"}}}}, 2),
        ({"limits.memory": "2Gi"}, {"container": {"resources": {"limits": {"memory": "1Gi"}}}}, 2),
        ({"requests.example.com/gpu": "3"}, {"requests": {"example.com/gpu": "1"}}, 3),
        ({"pods": "2"}, {}, 2),
        ({"count/pods": "1"}, {}, 1),
        ({"cpu": "3"}, {"cpu": "1", "overhead": {"cpu": "500m"}}, 2),
        (
            {"requests.koordinator.sh/batch-cpu": "3"},
            {"requests": {"koordinator.sh/batch-cpu": "1"}},
            3,
        ),
    ],
)
def test_each_kind_of_resource_lets_so_many_pods_in(hard: Body, asks: Body, free: int) -> None:
    """A limit without a request is a request, overhead counts, pods are counted."""
    known: list[Body] = []
    while not refused(clusters.pod("p", **asks), quota(hard), *known):
        known.append(clusters.pod(f"p{len(known)}", **asks))
        assert len(known) <= free
    assert len(known) == free


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pod_that_has_ended_counts_no_more(phase: str) -> None:
    """One that is ending still holds its room; as an object it counts until it is gone."""
    for name, words in (("pods", ""), ("count/pods", "exceeded quota")):
        known = clusters.pod("a", status={"phase": phase})
        assert words in refused(clusters.pod("p"), quota({name: "1"}), known)
        assert bool(words) is bool(refused(clusters.pod("p"), quota({name: "1"}), known))
    limit, asks = quota({"cpu": "2"}), clusters.pod("p", cpu="2")
    assert refused(asks, limit, clusters.pod("a", cpu="1", status={"phase": phase})) == ""
    ending = clusters.pod("a", cpu="1", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert "exceeded quota" in refused(asks, limit, ending)


def test_containers_that_do_not_say_what_they_take_are_named() -> None:
    """By the name of the resource in the quota; a request does for limits.* no service."""
    asks = clusters.pod("p", cpu="1")
    asks["spec"]["initContainers"] = [{"name": "first"}]
    limit = quota({"limits.cpu": "4", "memory": "1Gi", "cpu": "4"})
    assert (
        "failed quota: q: must specify cpu for: first; limits.cpu for: first,c;"
        " memory for: first,c" in refused(asks, limit)
    )
    assert refused(clusters.pod("p"), quota({"example.com/gpu": "1"})) == ""


def _terms(**term: Any) -> Body:
    needs = [{"topologyKey": "zone", **term}]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": needs}}


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        ("BestEffort", {}, {"cpu": "1"}),
        ("NotBestEffort", {"cpu": "1"}, {}),
        ("Terminating", {"activeDeadlineSeconds": 0}, {}),
        ("NotTerminating", {}, {"activeDeadlineSeconds": 9}),
        (
            "CrossNamespacePodAffinity",
            {"affinity": _terms(namespaces=["other"])},
            {"affinity": _terms()},
        ),
        (
            "CrossNamespacePodAffinity",
            {"affinity": _terms(namespaceSelector={})},
            {"affinity": _terms(namespaces=[])},
        ),
        ("PriorityClass", {"priorityClassName": "high"}, {}),
    ],
)
def test_scope_says_who_is_counted(scope: str, inside: Body, outside: Body) -> None:
    """Whoever is outside neither is refused nor uses anything up."""
    limit = quota({"pods": "1"}, scopes=(scope,))
    assert refused(clusters.pod("p", **outside), limit, clusters.pod("a", **inside)) == ""
    assert refused(clusters.pod("p", **inside), limit, clusters.pod("a", **outside)) == ""
    assert "exceeded quota" in refused(
        clusters.pod("p", **inside), limit, clusters.pod("a", **inside)
    )


@pytest.mark.parametrize(
    ("operator", "values", "counted"),
    [
        ("In", ["high", "top"], {"high"}),
        ("NotIn", ["high"], {"low", ""}),
        ("Exists", [], {"high", "low"}),
        ("DoesNotExist", [], {""}),
    ],
)
def test_priority_classes_are_selected(operator: str, values: list[str], counted: set[str]) -> None:
    """A quota for important pods leaves all others alone."""
    selector = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    limit = quota({"pods": "0"}, selector=selector)
    named = ("high", "low", "")
    pods = {name: clusters.pod("p") for name in named}
    for name in filter(None, named):
        pods[name]["spec"]["priorityClassName"] = name
    assert {name for name in named if refused(pods[name], limit)} == counted


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (quota({"cpu": "many"}), "spec.hard.cpu: "),
        (quota({"requests.cpu": ["4"]}), "spec.hard.requests.cpu is not a quantity: found list"),
        (quota({"cpu": "-1"}), "spec.hard.cpu is negative"),
        (quota({}, scopes=("Fast",)), "scope 'Fast' is none of"),
        (
            quota({}, selector={"scopeName": "BestEffort", "operator": "In", "values": ["x"]}),
            "operator 'In' is not for it",
        ),
        (
            quota({}, selector={"scopeName": "PriorityClass", "operator": "In"}),
            "0 values with operator In",
        ),
        (quota({"cpu": "1", "requests.memory": "1Gi"}, scopes=("NotBestEffort",)), ""),
    ],
)
def test_quota_that_cannot_be_in_force_says_why(body: Body, fault: str) -> None:
    """It is refused when it is handed in, instead of letting everything pass."""
    refusal = resource_quota.read(body).fault
    assert (fault in refusal) if fault else not refusal
