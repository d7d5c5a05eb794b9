"""Marks: what koordlet did, once each, and bounded by kind."""

from __future__ import annotations

import dataclasses
from typing import Any

from koordlet.model import best_effort, decision, eviction, result
from koordlet.report import marks, view
from tests.kit import views


def done(now: view.ReportView, value: str, **changes: Any) -> view.ReportView:
    """A view after a pass that wrote something."""
    first = views.made_plan().steps[0]
    did: Any = first.action
    step = dataclasses.replace(first, action=dataclasses.replace(did, value=value), **changes)
    outcome = result.Result(target="x", verdict=result.Verdict.DONE, step=step)
    return dataclasses.replace(now, results=(outcome,))


def limited(milli: int | None, policy: str = "adaptive", idle: str = "") -> view.ReportView:
    """A view with a limit."""
    limit = best_effort.Limit(policy=policy, actuator="x", milli=milli, reason="why", idle=idle)
    return views.view(made=views.made_plan(limit=limit))


def texts(made: marks.Marks) -> list[tuple[str, str, int]]:
    """Kind, text, count of each, newest first."""
    return [(mark.kind, mark.text, mark.count) for mark in made.after(0.0)]


def test_a_write_is_marked_with_its_policy_workload_and_reason() -> None:
    """The view keeps results until the next ones: they are not marked again."""
    made, now = marks.Marks(), done(views.view(), "2-6")
    for at in (1.0, 2.0):
        made.take(now, at)

    (mark,) = made.after(0.0)
    assert (mark.kind, mark.policy, mark.subject) == ("plan", "shared_pools", "default/web")
    assert (mark.text, mark.reason, mark.at) == (
        "/sys/fs/cgroup/shop/web/cpuset.cpus: 2-6",
        "the LS pool",
        1.0,
    )


def test_equal_writes_in_a_row_are_one_mark_that_counts() -> None:
    """A policy that writes each second does not push the others out; after a pause it is anew."""
    made = marks.Marks()
    for at, value in ((1.0, "2-6"), (2.0, "2-5"), (100.0, "2-4")):
        made.take(done(views.view(), value), at)

    assert [(mark.at, mark.count, mark.text[-3:]) for mark in made.after(0.0)] == [
        (100.0, 1, "2-4"),
        (2.0, 2, "2-5"),
    ]


def test_putting_back_is_said() -> None:
    """An undone write reads as what it is."""
    made = marks.Marks()
    made.take(done(views.view(), "0-6", undo=True), 1.0)

    assert texts(made) == [("plan", "put back /sys/fs/cgroup/shop/web/cpuset.cpus: 0-6", 1)]


def test_what_changed_nothing_is_no_mark() -> None:
    """A refused write, and a step on the way."""
    made, now = marks.Marks(), done(views.view(), "0-6", interim=True)
    made.take(now, 1.0)
    refused = now.results[0]._replace(verdict=result.Verdict.REFUSED)
    made.take(dataclasses.replace(now, results=(refused,)), 2.0)

    assert made.after(0.0) == []


def test_a_limit_is_marked_when_it_moves_by_a_tenth_or_another_policy_sets_it() -> None:
    """The machine has seven CPUs online: 0.7 of them are a tenth."""
    made = marks.Marks()
    for at, now in enumerate(
        [
            limited(3000),
            limited(3600),
            limited(3800),
            limited(3800, "cpu_suppress"),
            limited(3800, idle="shadow"),
            views.view(),
        ],
        start=1,
    ):
        made.take(now, float(at))

    assert [(mark.at, mark.policy, mark.text) for mark in reversed(made.after(0.0))] == [
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
    made = marks.Marks()
    for at in (1.0, 2.0):
        made.take(dataclasses.replace(now, counters=counted), at)

    assert [mark for mark in texts(made) if mark[0] != "plan"] == [
        ("rollback", "change by cpu_burst was undone", 1),
        ("eviction", "default/batch evicted", 2),
    ]
    assert made.newest(1)[0].reason == "pressure rose"
    assert made.newest(2)[1].reason == "memory.available is 80Mi, threshold 100Mi"


def test_many_marks_of_one_kind_leave_those_of_the_others() -> None:
    """Each kind is bounded by itself."""
    made = marks.Marks()
    made.take(limited(3000), 0.5)
    for at in range(marks.MOST + 10):
        made.take(done(limited(3000), str(at)), 100.0 * at + 1)

    kinds = [mark.kind for mark in made.after(0.0)]
    assert (kinds.count("plan"), kinds.count("limit")) == (marks.MOST, 1)
    assert [mark.at for mark in made.newest(2)] == [26501.0, 26401.0]
