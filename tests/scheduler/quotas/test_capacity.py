"""Quotas of namespaces, without a loop."""

from __future__ import annotations

from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.scheduler.objects.decoder import Decoder
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
