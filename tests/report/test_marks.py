"""Marks: what koordlet did, once each, and bounded by kind."""

from __future__ import annotations

import dataclasses
from typing import Any

from koordlet.model import best_effort, decision, eviction, result
from koordlet.report import marks, view
from tests.kit import views


def view_of_write(now: view.ReportView, value: str, **changes: Any) -> view.ReportView:
    """A view after a pass that wrote something."""
    first = views.made_plan().steps[0]
    write: Any = first.action
    step = dataclasses.replace(first, action=dataclasses.replace(write, value=value), **changes)
    outcome = result.Result(target="x", verdict=result.Verdict.DONE, step=step)
    return dataclasses.replace(now, results=(outcome,))


def view_of_limit(milli: int | None, policy: str = "adaptive", idle: str = "") -> view.ReportView:
    """A view with a limit."""
    limit = best_effort.Limit(policy=policy, actuator="x", milli=milli, reason="why", idle=idle)
    return views.view(made=views.made_plan(limit=limit))


def texts(kept: marks.Marks) -> list[tuple[str, str, int]]:
    """Kind, text and count of each mark, newest first."""
    return [(mark.kind, mark.text, mark.count) for mark in kept.after(0.0)]


def test_a_write_is_marked_with_its_policy_workload_and_reason() -> None:
    """The view keeps results until the next ones: they are not marked again."""
    kept, now = marks.Marks(), view_of_write(views.view(), "2-6")
    for at in (1.0, 2.0):
        kept.take(now, at)

    (mark,) = kept.after(0.0)
    assert (mark.kind, mark.policy, mark.subject) == ("plan", "shared_pools", "default/web")
    assert (mark.text, mark.reason, mark.at) == (
        "/sys/fs/cgroup/shop/web/cpuset.cpus: 2-6",
        "the LS pool",
        1.0,
    )


def test_equal_writes_in_a_row_are_one_mark_that_counts() -> None:
    """A policy that writes each second does not push the others out; after a pause it is anew."""
    kept = marks.Marks()
    for at, value in ((1.0, "2-6"), (2.0, "2-5"), (100.0, "2-4")):
        kept.take(view_of_write(views.view(), value), at)

    assert [(mark.at, mark.count, mark.text[-3:]) for mark in kept.after(0.0)] == [
        (100.0, 1, "2-4"),
        (2.0, 2, "2-5"),
    ]


def test_putting_back_is_said() -> None:
    """An undone write reads as what it is."""
    kept = marks.Marks()
    kept.take(view_of_write(views.view(), "0-6", undo=True), 1.0)

    assert texts(kept) == [("plan", "put back /sys/fs/cgroup/shop/web/cpuset.cpus: 0-6", 1)]


def test_what_changed_nothing_is_no_mark() -> None:
    """A refused write, and a step on the way."""
    kept, now = marks.Marks(), view_of_write(views.view(), "0-6", interim=True)
    kept.take(now, 1.0)
    refused = now.results[0]._replace(verdict=result.Verdict.REFUSED)
    kept.take(dataclasses.replace(now, results=(refused,)), 2.0)

    assert kept.after(0.0) == []


def test_a_limit_is_marked_when_it_moves_by_a_tenth_or_another_policy_sets_it() -> None:
    """The machine has seven CPUs online: 0.7 of them are a tenth."""
    kept = marks.Marks()
    for at, now in enumerate(
        [
            view_of_limit(3000),
            view_of_limit(3600),
            view_of_limit(3800),
            view_of_limit(3800, "cpu_suppress"),
            view_of_limit(3800, idle="shadow"),
            views.view(),
        ],
        start=1,
    ):
        kept.take(now, float(at))

    assert [(mark.at, mark.policy, mark.text) for mark in reversed(kept.after(0.0))] == [
        (1.0, "adaptive", "best-effort work may use 3.00 CPUs"),
        (3.0, "adaptive", "best-effort work may use 3.80 CPUs"),
        (4.0, "cpu_suppress", "best-effort work may use 3.80 CPUs"),
        (5.0, "cpu_suppress", "best-effort work is not limited any more"),
    ]


def test_evictions_and_rollbacks_are_marked_once() -> None:
    """An eviction names pod, signal and threshold; a rollback the policy and what hurt."""
    victim = eviction.Eviction(
        pod="default/batch",
        uid="u",
        signal="memory.available",
        reason="Evicted",
        message="",
        policy="node_pressure",
        observed="80Mi",
        threshold="100Mi",
    )
    undone = decision.Condition(
        type="PolicyRolledBack", reason="x", message="pressure rose", subject="cpu_burst"
    )
    now = views.view(made=views.made_plan(evictions=(victim,), conditions=(undone,)))
    counted = dataclasses.replace(
        now.counters, evictions={("node_pressure", "memory.available", "evicted"): 2}
    )
    kept = marks.Marks()
    for at in (1.0, 2.0):
        kept.take(dataclasses.replace(now, counters=counted), at)

    assert [mark for mark in texts(kept) if mark[0] != "plan"] == [
        ("rollback", "change by cpu_burst was undone", 1),
        ("eviction", "default/batch evicted", 2),
    ]
    assert kept.newest(1)[0].reason == "pressure rose"
    assert kept.newest(2)[1].reason == "memory.available is 80Mi, threshold 100Mi"


def test_many_marks_of_one_kind_leave_those_of_the_others() -> None:
    """Each kind is bounded by itself."""
    kept = marks.Marks()
    kept.take(view_of_limit(3000), 0.5)
    for at in range(marks.MOST + 10):
        kept.take(view_of_write(view_of_limit(3000), str(at)), 100.0 * at + 1)

    kinds = [mark.kind for mark in kept.after(0.0)]
    assert (kinds.count("plan"), kinds.count("limit")) == (marks.MOST, 1)
    assert [mark.at for mark in kept.newest(2)] == [26501.0, 26401.0]
