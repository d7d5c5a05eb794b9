"""The quotas of the scheduler's page: bars, who lends to whom, what would be called back."""

from __future__ import annotations

from typing import Any

from koordlet.kubeapi import elastic_quotas
from koordlet.scheduler.process import quota_json
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.history import QuotaAct, QuotaHistory
from tests.kit import clusters
from tests.kit.quota_scene import QuotaScene
from tests.kit.quotas import KEY, quota


def _panel(book: QuotaBook, history: QuotaHistory | None = None) -> dict[str, Any]:
    return quota_json.panel(book, history or QuotaHistory(), lambda steady: 1000 + steady)


def _lent() -> QuotaScene:
    """Two of ten CPUs' owners: b has borrowed all that a left, then a wants its own."""
    scene = QuotaScene(
        clusters.node("n0", cpu="10"),
        quota("a", {"cpu": 6}, {"cpu": 10}),
        quota("b", {"cpu": 4}, {"cpu": 10}),
    )
    for number in range(8):
        scene.pod(f"b{number}", "b", on="n0")
    return scene


def test_a_lender_and_a_borrower_name_each_other() -> None:
    """What one may not use of its minimum now, its sibling has beyond its own."""
    [a, b, *_] = _panel(_lent().book)["quotas"]
    assert a["lends"] == {"cpu": {"amount": 6000, "with": ["b"], "of": 1}}
    assert b["borrows"] == {"cpu": {"amount": 4000, "with": ["a"], "of": 1}}
    assert b["amounts"]["cpu"] == {
        "min": 4000,
        "used": 8000,
        "request": 8000,
        "runtime": 8000,
        "max": 10_000,
    }


def test_nobody_lends_to_the_default_quota_and_trees_lend_apart() -> None:
    """Pods without a quota borrow nothing; the lender of one tree's root is none of another's."""
    tree = {f"{KEY}tree-id": "other", f"{KEY}is-root": "true"}
    scene = QuotaScene(
        clusters.node("n0", cpu="20"),
        quota("a", {"cpu": 6}, {"cpu": 10}),
        quota("apart", {"cpu": 1}, {"cpu": 10}, labels=tree),
    )
    for name, label in (("plain", ""), ("mine", "apart")):
        for number in range(3):
            scene.pod(f"{name}{number}", label, on="n0")
    rows = {each["quota"]: each for each in _panel(scene.book)["quotas"]}
    assert rows["a"]["lends"]["cpu"]["amount"] == 6000
    assert rows[elastic_quotas.DEFAULT]["amounts"]["cpu"]["used"] == 3000
    assert rows[elastic_quotas.DEFAULT]["borrows"] == {}
    assert rows["apart"]["borrows"] == {"cpu": {"amount": 2000, "with": [], "of": 0}}


def test_pods_that_would_be_called_back_are_named_without_waiting() -> None:
    """At once what the controller would choose after its delay; unmonitored quotas say so."""
    scene = _lent()
    assert _panel(scene.book)["calledBack"] == []
    for number in range(6):
        scene.pod(f"a{number}", "a")
    panel = _panel(scene.book)
    assert panel["quotasOver"] == 1
    assert len(panel["calledBack"]) == panel["calledBackCount"] == 4
    assert {back["in"] for back in panel["calledBack"]} == {"b"}
    assert not panel["callsBack"]


def test_of_many_quotas_those_over_and_those_that_wait_are_told_with_all_above() -> None:
    """Three hundred idle teams hide neither the one above its runtime nor its parent."""
    idle = [quota(f"idle{number:03}", {}, {"cpu": 1}) for number in range(300)]
    scene = QuotaScene(
        clusters.node("n0", cpu="10"),
        *idle,
        quota("zoo", {"cpu": 1}, {"cpu": 10}, is_parent=True),
        quota("zebra", {"cpu": 1}, {"cpu": 1}, parent="zoo"),
    )
    scene.pod("z0", "zebra", cpu="2", on="n0")
    panel = _panel(scene.book)
    names = [each["quota"] for each in panel["quotas"]]
    assert {"zoo", "zebra"} <= set(names)
    assert panel["quotaCount"] == 304
    assert len(names) <= quota_json.MOST + 2


def test_quotas_that_are_not_in_force_are_told_with_cause_and_remedy() -> None:
    """Of no tree, so beside it; the tree and its count have those in force alone."""
    scene = QuotaScene(
        clusters.node("n0", cpu="10"),
        quota("fine", {"cpu": 1}, {"cpu": 2}),
        quota("wrong", {"cpu": 12}, {"cpu": 10}),
    )
    panel = _panel(scene.book)
    names = {each["quota"] for each in panel["quotas"]}
    assert ("fine" in names, "wrong" in names) == (True, False)
    [idle] = panel["idleQuotas"]
    assert panel["idleQuotaCount"] == 1
    assert (idle["namespace"], idle["quota"]) == ("default", "wrong")
    assert idle["problem"] == (
        "resourceKey cpu of quota wrong min 12 > max 10;"
        " write 10 or less, or raise spec.max.cpu; it is not in force"
    )


def test_of_many_quotas_an_invalid_one_is_told() -> None:
    """In force below the root for want of its parent, among three hundred that are as they say."""
    idle = [quota(f"idle{number:03}", {}, {"cpu": 1}) for number in range(300)]
    orphan = quota("zebra", {"cpu": 1}, {"cpu": 1}, parent="nobody")
    scene = QuotaScene(clusters.node("n0", cpu="10"), *idle, orphan)
    rows = {each["quota"]: each for each in _panel(scene.book)["quotas"]}
    assert "no quota has that name" in rows["zebra"]["problem"]


def test_the_past_of_a_quota_is_told_in_unix_time() -> None:
    """Periods over its runtime, the last still going on; whom it refused; nothing of a calm one."""
    history = QuotaHistory()
    for over, now in ((True, 1.0), (False, 2.0), (True, 3.0)):
        history.note_use("b", over=over, now=now)
    history.note_pod("b", "d/p", QuotaAct.REFUSED, 4.0)
    [a, b, *_] = _panel(_lent().book, history)["quotas"]
    assert a["past"] is None
    assert b["past"] == {
        "over": [{"from": 1001.0, "to": 1002.0}, {"from": 1003.0, "to": None}],
        "marks": [{"at": 1004.0, "what": "refused", "pod": "d/p"}],
    }


def test_without_quotas_there_is_no_panel() -> None:
    """A cluster without quotas is told none, not even the built-in ones."""
    assert _panel(QuotaBook())["quotaCount"] == 0


def test_minimums_beyond_the_cluster_are_a_warning() -> None:
    """With both sums, as the scaled minimums follow from them."""
    book = _lent().book
    assert _panel(book)["overcommitted"] == ""
    more = QuotaScene(clusters.node("n0", cpu="10"), quota("a", {"cpu": 16}, {"cpu": 20})).book
    assert _panel(more)["overcommitted"].endswith("the total: cpu:16 > cpu:10")
