"""The answers: never "safe" where something is wrong, never a number that is not known."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.model import best_effort, decision, qos
from koordlet.report import answers, view
from tests.kit import views

ROW = {"node/cpus": 8.0, "LSE/cpuCores": 1.0, "LSR/cpuCores": 0.0, "LS/cpuCores": 2.5}
ROW |= {"system/cpuCores": 0.5, "BE/cpuCores": 3.0, "LS/latencySeconds": 0.0042}


def view_with_signal(name: str, *, met: bool | None) -> view.ReportView:
    """A view with one signal."""
    signal = decision.Signal(name=name, observed="80Mi", threshold="100Mi", met=met)
    return views.view(made=views.made_plan(signals=(signal,)))


@pytest.mark.parametrize(
    ("now", "level", "words"),
    [
        (view_with_signal("memory.available", met=False), "good", "none of 1 signals is met"),
        (view_with_signal("cpu.suppress", met=True), "good", "none of 0 signals is met"),
        (
            view_with_signal("memory.available", met=True),
            "bad",
            "memory.available is 80Mi, threshold 100Mi",
        ),
        (views.view(mode="observe"), "warn", "only observes"),
        (
            views.view(checks=(view.Check(name="writes", ok=False, detail="x"),)),
            "warn",
            "writes: x",
        ),
        (views.view(workloads=(views.workload("b", qos.Qos.BE),)), "unknown", "no latency-sens"),
    ],
)
def test_the_service_is_safe_only_where_nothing_is_wrong(
    now: view.ReportView, level: str, words: str
) -> None:
    """A met signal is a risk, but for the one by which best-effort work is held back."""
    answer = answers.service(now, ROW)

    assert answer["level"] == level
    assert words in str(answer["detail"])
    assert answer["facts"] == [["p99 of requests", "4.2 ms"]]


def test_best_effort_work_is_compared_with_what_is_idle() -> None:
    """Idle is what neither services nor the system use."""
    limit = best_effort.Limit(policy="adaptive", actuator="x", milli=4000, reason="yields")
    now = views.view(made=views.made_plan(limit=limit))
    answer: dict[str, Any] = answers.best_effort(now, ROW)

    assert (answer["headline"], answer["used"], answer["idle"]) == (
        "3.00 of 4.00 idle CPUs",
        3.0,
        4.0,
    )
    assert answer["detail"] == "may use 4.00 CPUs: yields (adaptive)"
    shadow = dataclasses.replace(now.plan, limit=best_effort.idle(limit, "mode is shadow"))
    answer = answers.best_effort(dataclasses.replace(now, plan=shadow), ROW)
    assert answer["detail"] == "not limited: mode is shadow"


def test_what_is_not_known_is_not_compared() -> None:
    """The use of one class is missing, which is named, or there is no best-effort work."""
    unknown = {name: value for name, value in ROW.items() if name != "system/cpuCores"}
    answer = answers.best_effort(views.view(), unknown)

    assert answer["level"] == "unknown"
    assert str(answer["detail"]).endswith("; CPU use of system is not measured yet")
    large = answers.best_effort(views.view(), {name: 256 * value for name, value in ROW.items()})
    assert large["headline"] == "768 of 1024 idle CPUs"
    services = views.view(workloads=(views.workload("web"),))
    assert answers.best_effort(services, ROW)["headline"] == "No best-effort work"
