"""What is wrong with the quotas of a file is told with its place and its remedy."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.loop import configuration
from koordlet.scheduler.sim import quota_review
from tests.kit import clusters
from tests.kit.quotas import KEY, capacity_scheduling, quota


def _mistakes(*bodies: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Object, place, and whether it is a warning."""
    _, mistakes = quota_review.review(bodies, configuration.usual())
    assert all(mistake.message and mistake.fix for mistake in mistakes)
    return [(mistake.object, mistake.path, mistake.warning) for mistake in mistakes]


def test_quotas_in_order_have_no_mistakes() -> None:
    """A parent, its child and nodes enough."""
    bodies = [
        clusters.node("n0", cpu="10"),
        quota("org", {"cpu": 4}, {"cpu": 8}, is_parent=True),
        quota("team", {"cpu": 2}, {"cpu": 8}, parent="org"),
    ]
    assert quota_review.review(bodies, configuration.usual()) == (2, [])


def test_every_mistake_of_a_quota_is_told_not_only_the_first() -> None:
    """Its own amounts, its parent, and an annotation that is no JSON."""
    broken = quota(
        *("q", {"cpu": -1, "memory": 1}, {"cpu": 5}),
        parent="nobody",
        annotations={f"{KEY}shared-weight": "{"},
    )
    whose = "ElasticQuota default/q"
    assert _mistakes(broken) == [
        (whose, "spec.min.cpu", False),
        (whose, "spec.min.memory", False),
        (whose, f"metadata.labels[{KEY}parent]", False),
        (whose, f"metadata.annotations[{KEY}shared-weight]", True),
    ]


def test_a_circle_a_second_name_and_a_namespace_of_two_are_told_on_each_object() -> None:
    """Of two of one name the older counts; of two that list a namespace, too."""
    a = quota("a", {}, {"cpu": 1}, parent="b", is_parent=True)
    b = quota("b", {}, {"cpu": 1}, parent="a", is_parent=True)
    where = f"metadata.labels[{KEY}parent]"
    assert _mistakes(a, b) == [(f"ElasticQuota default/{name}", where, False) for name in "ab"]
    older = quota("q", {}, {"cpu": 1}, created="2026-01-01T00:00:00Z")
    newer = quota("q", {}, {"cpu": 1}, namespace="x", created="2026-01-02T00:00:00Z")
    assert _mistakes(older, newer) == [("ElasticQuota x/q", "metadata.name", False)]
    lists = {f"{KEY}namespaces": '["shop"]'}
    several = [quota(name, {}, {"cpu": 1}, annotations=lists) for name in ("c", "d")]
    assert _mistakes(*several) == [
        ("ElasticQuota default/d", f"metadata.annotations[{KEY}namespaces]", True)
    ]


def test_minimums_beyond_the_nodes_are_a_warning_where_there_are_nodes() -> None:
    """Without nodes in the file nobody knows how much there is."""
    big = quota("big", {"cpu": 20}, {"cpu": 20})
    assert _mistakes(big) == []
    assert _mistakes(big, clusters.node("n0", cpu="10")) == [("all quotas", "spec.min", True)]


def test_a_profile_names_the_field_that_cannot_be_used() -> None:
    """A ratio above one, and no name of a quota."""
    profile = {
        "kind": "ElasticQuotaProfile",
        "metadata": {"name": "p"},
        "spec": {"resourceRatio": "2"},
    }
    assert [path for _, path, _ in _mistakes(profile)] == [
        *("spec.resourceRatio", "spec.quotaName"),
    ]


def test_where_a_namespace_is_the_quota_its_own_rules_hold() -> None:
    """A minimum without a maximum is in order there; a second quota of the namespace is not."""
    configured = configuration.read(capacity_scheduling("s"), "test")
    first = quota("q", {"cpu": 2}, {}, namespace="x", created="2026-01-01T00:00:00Z")
    second = quota("r", {"cpu": 2}, {}, namespace="x", created="2026-01-02T00:00:00Z")
    assert quota_review.review([first], configured) == (1, [])
    [mistake] = quota_review.review([first, second], configured)[1]
    assert (mistake.object, mistake.path) == ("ElasticQuota x/r", "metadata.namespace")
