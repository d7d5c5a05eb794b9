"""Quotas of namespaces, without a loop."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.kubeapi import kinds
from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.quotas import capacity
from tests.kit import clusters


def test_a_namespace_borrows_up_to_the_sum_of_minimums_and_its_own_maximum() -> None:
    """Two of its own and one of the other's are there to be used; a fourth CPU is not."""
    book, decoder = capacity.CapacityBook(), Decoder({})
    book.put_quota(ElasticQuota(namespace="a", name="q", min={"cpu": 2000}, max={"cpu": 9000}))
    book.put_quota(ElasticQuota(namespace="b", name="q", min={"cpu": 1000}, max={"cpu": 1000}))
    book.settle()
    book.put(decoder.decode(clusters.pod("x", cpu="2", namespace="a", on="n"), 0))
    third = decoder.decode(clusters.pod("y", cpu="1", namespace="a"), 1)
    fourth = decoder.decode(clusters.pod("z", cpu="2", namespace="a"), 2)
    beyond = decoder.decode(clusters.pod("u", cpu="2", namespace="b"), 3)

    assert book.refusal(third) == ""
    assert book.refusal(fourth).endswith("total ElasticQuota used is more than min")
    assert book.refusal(beyond).endswith("ElasticQuota b is more than Max")
    assert book.borrows_for(third, book.nodes["a"])
    assert not capacity.over_minimum(book.nodes["a"])


def _book(**quotas: tuple[dict[str, int], dict[str, int] | None]) -> capacity.CapacityBook:
    """Quotas by namespace: minimum and maximum."""
    book = capacity.CapacityBook()
    for namespace, (least, most) in quotas.items():
        book.put_quota(ElasticQuota(namespace=namespace, name="q", min=least, max=most or {}))
    book.settle()
    return book


def _pod(name: str, namespace: str, *, on: str = "", phase: str = "Running", **asked: Any) -> Pod:
    body = clusters.pod(name, namespace=namespace, on=on, **asked)
    body["status"] = {**body.get("status", {}), "phase": phase}
    return Decoder({}).decode(body, 0)


@pytest.mark.parametrize(
    ("used", "asked", "words"),
    [
        ({"ns1": 300}, ("ns1", 500), ""),
        ({"ns1": 300}, ("ns1", 1800), "ElasticQuota ns1 is more than Max"),
        ({"ns1": 1800, "ns2": 200}, ("ns2", 500), "total ElasticQuota used is more than min"),
        ({}, ("free", 500), ""),
    ],
)
def test_the_peers_own_pods_are_admitted_or_not(
    used: dict[str, int], asked: tuple[str, int], words: str
) -> None:
    """Each quota has 1000 bytes for sure and 2000 at most."""
    both = ({"memory": 1000}, {"memory": 2000})
    book = _book(**dict.fromkeys(used, both))
    for namespace, much in used.items():
        book.put(_pod("r", namespace, on="n", memory=str(much)))
    why = book.refusal(_pod("p", asked[0], memory=str(asked[1])))
    before = f"Pod {asked[0]}/p is rejected in PreFilter because "
    assert why == (before + words if words else "")


@pytest.mark.parametrize(
    ("least", "most", "cpu", "admitted"),
    [({"cpu": 10}, None, "10m", True), ({}, {"cpu": 100}, "1m", False), ({}, None, "1m", False)],
)
def test_without_a_maximum_nothing_is_bounded_and_without_a_minimum_all_is_borrowed(
    least: dict[str, int], most: dict[str, int] | None, cpu: str, *, admitted: bool
) -> None:
    """What nobody is sure of cannot be lent."""
    assert (not _book(a=(least, most)).refusal(_pod("p", "a", cpu=cpu))) == admitted


def test_a_status_has_what_runs_and_a_zero_for_every_name_of_the_quota() -> None:
    """A pod that waits or has ended counts nowhere; a name that nobody bounds counts as well."""
    book = _book(a=({"cpu": 3000, "memory": 5}, {"cpu": 5000, "gpu": 2}))
    stored, node = book.stored("a"), book.nodes["a"]
    assert stored is not None
    zeros = {"cpu": "0", "memory": "0", "gpu": "0"}
    assert book.changes(stored, node) == {"status": {"used": zeros}}
    book.put(_pod("runs", "a", on="n", cpu="1", requests={"other": "2"}))
    book.put(_pod("starts", "a", on="n", cpu="1", phase="Pending"))
    book.put(_pod("waits", "a", cpu="1", phase="Pending"))
    assert book.changes(stored, node)["status"]["used"] == {**zeros, "cpu": "1", "other": "2"}
    assert node.used["cpu"] == 2000
    told = dataclasses.replace(
        stored, used={"cpu": 1000, "memory": 0, "gpu": 0, "other": 2}, status={}
    )
    assert book.changes(told, node) == {}
    book.drop("a/runs")
    assert book.changes(told, node)["status"]["used"] == {**zeros, "other": None}


def test_what_a_quota_of_a_namespace_may_not_say_is_named() -> None:
    """A minimum without a maximum is in order; a second quota of the namespace is not."""
    book = _book(a=({"cpu": 1}, None))

    def objections(quota: ElasticQuota) -> list[str]:
        return [objection.message for objection in book.objections(quota)]

    assert objections(ElasticQuota(namespace="b", name="q", min={"cpu": 1})) == []
    assert objections(ElasticQuota(namespace="a", name="q", min={"cpu": 2})) == []
    second = ElasticQuota(namespace="a", name="other", min={"cpu": 1})
    assert objections(second) == ["quota a/q is the namespace's already"]
    wrong = ElasticQuota(namespace="b", name="q", min={"cpu": 2000}, max={"cpu": 1000})
    assert objections(wrong) == ["resourceKey cpu of quota b min 2 > max 1"]
    same_name = dataclasses.replace(second, name="q", kind=kinds.NAMESPACE_QUOTAS)
    book.put_quota(same_name)
    assert [notice.kind for notice in book.take_notices()] == [kinds.NAMESPACE_QUOTAS]
