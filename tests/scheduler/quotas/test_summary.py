"""What a person is shown of each quota."""

from __future__ import annotations

from koordlet.scheduler.quotas import summary
from tests.kit import clusters
from tests.kit.quota_scene import QuotaScene
from tests.kit.quotas import quota


def _scene() -> QuotaScene:
    """``a`` is idle and lends 4 of its CPUs, ``b`` uses 8 of them beyond its 2."""
    scene = QuotaScene(
        clusters.node("n0", cpu="10"),
        quota("org", {"cpu": 10}, {"cpu": 10}, is_parent=True),
        quota("a", {"cpu": 4}, {"cpu": 10}, parent="org"),
        quota("b", {"cpu": 2}, {"cpu": 10}, parent="org"),
    )
    scene.pod("x", "b", "8")
    scene.pod("y", "b", "3")
    scene.decided()
    return scene


def test_quotas_are_listed_as_a_tree_with_who_borrows_who_lends_and_who_waits() -> None:
    """Parents first, by name; the default and the system quota at the end."""
    documents = summary.documents(_scene().book)
    assert [(each["quota"], each["depth"]) for each in documents] == [
        *(("org", 0), ("a", 1), ("b", 1)),
        *(("koordinator-default-quota", 0), ("koordinator-system-quota", 0)),
    ]
    _, a, b, default, _ = documents
    assert (a["lends"], a["borrows"], a["parent"]) == ({"cpu": "4"}, {}, "org")
    assert (b["borrows"], b["used"], b["runtime"]) == ({"cpu": "6"}, {"cpu": "8"}, {"cpu": "10"})
    assert (b["pods"], b["waiting"], b["over"], b["problem"]) == (2, 1, {}, None)
    assert default["max"] == {}


def test_an_object_that_is_not_in_force_is_listed_with_what_is_wrong() -> None:
    """One that never was, and one whose name another has; by name the one in force comes alone."""
    scene = _scene()
    scene.put(quota("bad", {"cpu": 3}, {"cpu": 2}, parent="org"))
    scene.put(quota("a", {}, {"cpu": 7}, namespace="later", created="2027-01-01T00:00:00Z"))
    book = scene.book
    *_, bad, second = summary.documents(book)
    assert (bad["quota"], bad["parent"], bad["min"], bad["runtime"], bad["over"]) == (
        *("bad", "org"),
        *({"cpu": "3"}, {}, {}),
    )
    assert bad["problem"].endswith("it is not in force")
    assert second["problem"] == "quota a is ignored: default/a has its name"
    assert bad.keys() == second.keys() == summary.documents(book)[0].keys()
    [described] = summary.named(book, "bad", {})
    assert (described["problem"], described["members"]) == (bad["problem"], [])
    assert [each["problem"] for each in summary.named(book, "a", {})] == [None]
    assert summary.named(book, "nobody", {}) == []


def test_who_uses_more_than_its_runtime_is_over() -> None:
    """``a`` takes its minimum back: ``b`` is over by what exceeds the rest."""
    scene = _scene()
    scene.pod("z", "a", "4")
    scene.decided()
    book = scene.book
    b = summary.document(book, book.nodes["b"])
    assert (b["runtime"], b["over"]) == ({"cpu": "6"}, {"cpu": "2"})


def test_a_quota_in_full_has_its_pods_why_they_wait_and_the_way_to_its_runtime() -> None:
    """The message is the caller's; the first step names what is divided."""
    book = _scene().book
    detail = summary.detail(book, book.nodes["b"], {"d/y": "no room"})
    assert [(each["pod"], each["node"], each["message"]) for each in detail["members"]] == [
        ("d/x", "n0", None),
        ("d/y", None, "no room"),
    ]
    assert detail["steps"][0] == {"resource": "cpu", "step": "org has 10000 to divide"}
    assert len(detail["steps"]) > 1


def test_without_quotas_nothing_is_listed() -> None:
    """Not even those that are built in."""
    assert summary.documents(QuotaScene(clusters.node("n0")).book) == []


def test_each_amount_is_a_gauge_and_without_quotas_there_are_none() -> None:
    """The peer's name and labels; CPUs in thousandths."""
    gauges = summary.gauges(_scene().book)
    labels = {
        "name": "b",
        "resource": "cpu",
        "field": "runtime",
        "tree": "",
        "is_parent": "false",
        "parent": "org",
    }
    assert gauges["scheduler_elastic_quota_status", tuple(labels.items())] == 10_000
    assert summary.gauges(QuotaScene(clusters.node("n0")).book) == {}
