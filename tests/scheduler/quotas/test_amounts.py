"""Amounts of quotas."""

from __future__ import annotations

from koordlet.scheduler.quotas import amounts


def test_lists_are_printed_as_the_peer_does() -> None:
    """Sorted by name; bytes in binary units, thousandths where cpu is not whole; empty is said."""
    listed = {"memory": 10 << 30, "cpu": 5_500, "kubernetes.io/batch-cpu": 2_000, "gpu": 3}
    assert amounts.listed(listed) == ("cpu:5500m,gpu:3,kubernetes.io/batch-cpu:2k,memory:10Gi")
    assert amounts.listed(listed, ["cpu", "disk"]) == "cpu:5500m,disk:0"
    assert amounts.listed({}) == "<empty>"


def test_sums_have_no_zeros() -> None:
    """What becomes zero goes, and an absent name counts as zero."""
    total = {"cpu": 5, "memory": 3}
    amounts.add(total, {"cpu": 5, "gpu": 2}, -1)
    assert total == {"memory": 3, "gpu": -2}
    assert amounts.largest(total, {"cpu": 0, "memory": 4}) == {"memory": 4, "gpu": -2}


def test_a_name_without_a_bound_is_bounded_by_zero() -> None:
    """Only names that exceed are listed, in order."""
    assert amounts.exceeding({"b": 2, "a": 1, "c": 1}, {"a": 1, "b": 1}) == ["b", "c"]


def test_the_least_that_some_of_many_need_is_the_smallest_of_each_name() -> None:
    """Two of three: no choice of two needs less of any name."""
    several = [{"cpu": 5, "memory": 1}, {"cpu": 1, "memory": 7}, {"cpu": 2}]
    assert amounts.smallest(several, 2) == {"cpu": 3, "memory": 1}
    assert amounts.smallest(several, -1) == {"cpu": 0, "memory": 0}
