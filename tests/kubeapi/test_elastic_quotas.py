"""Elastic quotas as objects spell them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from koordlet.kubeapi import elastic_quotas, selectors
from tests.kit import quotas

KEY = quotas.KEY


def test_a_quota_is_read_with_its_defaults() -> None:
    """Below the root, no parent, lending, the weight its maximum; cpu in thousandths."""
    body: dict[str, Any] = {
        "metadata": {"name": "q"},
        "spec": {"min": {"cpu": "1500m"}, "max": {"cpu": 2, "memory": "1Gi"}},
    }
    quota = elastic_quotas.elastic_quota(body)
    assert (quota.id, quota.parent) == ("default/q", elastic_quotas.ROOT)
    assert (quota.is_parent, quota.lends, quota.tree_id) == (False, True, "")
    assert (quota.min, quota.max) == ({"cpu": 1500}, {"cpu": 2000, "memory": 1 << 30})
    assert quota.weight == quota.max
    assert (quota.errors, quota.problems) == ((), ())


@pytest.mark.parametrize("spelled", ["{broken", "[]", '{"cpu":"0"}', '{"cpu":"x"}', ""])
def test_a_weight_that_says_nothing_is_the_maximum(spelled: str) -> None:
    """Broken JSON, a list, zeros or no quantity: the maximum, and a problem where it is broken."""
    notes = {f"{KEY}shared-weight": spelled}
    quota = quotas.spec("q", {}, {"cpu": 2}, annotations=notes)
    assert quota.weight == {"cpu": 2000}
    assert bool(quota.problems) == (spelled not in {"", '{"cpu":"0"}'})


def test_a_weight_that_leaves_out_a_name_has_the_maximum_of_it() -> None:
    """Else the quota would have no part of what is left of that name; a zero that is written is."""
    most = {"cpu": 2, "memory": "1Gi", "pods": 9}
    quota = quotas.spec("q", {}, most, weight={"cpu": "5", "pods": "0"})
    assert quota.weight == {"cpu": 5000, "memory": 1 << 30, "pods": 0}


def test_amounts_that_are_no_quantities_are_errors_and_negative_ones_are_kept() -> None:
    """What cannot be read names its field; a sign is for the validation."""
    quota = quotas.spec("q", {"cpu": -3}, {"cpu": "much", "memory": True})
    assert quota.errors[0].startswith("spec.max.cpu: not a quantity")
    assert quota.errors[1].startswith("spec.max.memory is not a quantity")
    assert quota.min == {"cpu": -3000}


def test_older_names_of_batch_resources_are_the_current_ones() -> None:
    """A bound of koordinator.sh/batch-cpu bounds kubernetes.io/batch-cpu."""
    assert quotas.spec("q", {}, {"koordinator.sh/batch-cpu": 5}).max == {
        "kubernetes.io/batch-cpu": 5
    }


def test_annotations_are_read_whole_or_not_at_all() -> None:
    """Namespaces, admission and bounds by priority; half a list would be another quota."""
    notes = {
        f"{KEY}namespaces": '["x","y","x"]',
        f"{KEY}admission": '{"cpu":"3"}',
        "koordlet.io/max-by-priority": '{"5":{"cpu":1},"9":{"cpu":2}}',
        f"{KEY}max-strict-check-resource-keys": '["memory", 5]',
        f"{KEY}runtime": '{"cpu":"1"}',
    }
    quota = quotas.spec("q", {}, {"cpu": 1}, annotations=notes)
    assert (quota.namespaces, quota.admission) == (("x", "y"), {"cpu": 3000})
    assert quota.max_by_priority == ((9, {"cpu": 2000}), (5, {"cpu": 1000}))
    assert quota.strict_keys == ()
    assert quota.reported == {"runtime": '{"cpu":"1"}'}
    assert ["max-strict-check-resource-keys: [1]" in text for text in quota.problems] == [True]


@pytest.mark.parametrize("body", [{}, {"metadata": []}, {"spec": 5}, {"spec": {"min": [1]}}])
def test_nonsense_costs_the_object_and_nothing_else(body: dict[str, Any]) -> None:
    """Objects of the wrong shape are read all the same, with an error where it matters."""
    assert bool(elastic_quotas.elastic_quota(body).errors) == bool(body)


def test_a_profile_is_read_with_its_defaults() -> None:
    """The ratio is exact; cpu and memory are bounded unless the annotation names others."""
    spec = {
        "quotaName": "root-a",
        "nodeSelector": {"matchLabels": {"pool": "a"}},
        "resourceRatio": "0.9",
    }
    profile = elastic_quotas.elastic_quota_profile({"metadata": {"name": "p"}, "spec": spec})
    assert profile.quota_name == "root-a"
    assert profile.selector == selectors.parse_labels("pool in (a)")
    assert (profile.ratio, profile.resource_keys) == (Fraction(9, 10), ("cpu", "memory"))
    assert profile.errors == ()


@pytest.mark.parametrize("ratio", ["0", "1.1", "-1", "x", "nan", {}, [1]])
def test_a_ratio_outside_of_its_bounds_is_an_error(ratio: object) -> None:
    """More than the nodes have, nothing, or no number: the profile is not in force."""
    spec = {"quotaName": "r", "resourceRatio": ratio}
    profile = elastic_quotas.elastic_quota_profile({"metadata": {"name": "p"}, "spec": spec})
    assert len(profile.errors) == 1
    assert "spec.resourceRatio" in profile.errors[0]
