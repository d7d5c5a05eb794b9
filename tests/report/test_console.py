"""The state that the console is told."""

from __future__ import annotations

import dataclasses
import json
from array import array
from typing import Any

from koordlet.model import counters, meter
from koordlet.report import console
from tests.kit import demos, recorders, views

#: What each CPU and each workload of a state may weigh.
MOST_OF_CPU, MOST_OF_WORKLOAD = 16, 450


def test_an_event() -> None:
    """One line of data, whatever is in it; before the first tick it says so."""
    hostile = views.view(workloads=(views.workload("a\n\ndata: x"),))
    head, data, *rest = console.event(hostile, "1", recorders.recorder()).decode().split("\n")

    assert head == "event: state"
    assert rest == ["", ""]
    state = json.loads(data.removeprefix("data: "))
    assert state["workloads"][0]["key"] == "default/a\n\ndata: x"
    assert console.event(None, "1", recorders.recorder()) == b"event: starting\ndata: {}\n\n"


def test_a_state_grows_by_some_bytes_for_each_cpu_and_workload() -> None:
    """All of them busy: that is sent to each page every second."""

    def size(cpus: int, workloads: int) -> int:
        busy = counters.Table(
            slots={str(cpu): cpu for cpu in range(cpus)},
            columns={meter.CPU: array("d", [0.123456] * cpus)},
        )
        pods = tuple(views.workload(f"workload-of-a-long-name-{n}") for n in range(workloads))
        now = views.view(shape=views.machine(cpus), workloads=pods)
        now = dataclasses.replace(now, used=dataclasses.replace(now.used, cpus=busy))
        return len(console.event(now, "1", recorders.recorder()))

    assert 2040 * 6 < size(2048, 2) - size(8, 2) < 2040 * MOST_OF_CPU
    assert size(8, 102) - size(8, 2) < 100 * MOST_OF_WORKLOAD


def test_the_comparison_of_a_demo_is_in_each_state() -> None:
    """Of an agent that plays none there is nothing."""
    recorded = recorders.recorder()
    assert console.document(views.view(), "1", recorded)["demo"] is None

    _, comparing = demos.compared(demos.Stage(off=0.1, on=0.01), seconds=11)
    recorded.demo = demos.Demo(comparing)
    now = demos.seen(demos.START + 10)

    assert console.document(now, "1", recorded)["demo"] == comparing.document(now)


def test_many_actions_are_counted_and_the_first_hundred_shown() -> None:
    """The first hundred are shown, and how many there are."""
    steps = views.view().plan.steps * 500
    many = views.view(made=views.made_plan(steps=steps))
    document: dict[str, Any] = console.document(many, "1", recorders.recorder())

    assert document["actionCount"] == 500
    assert len(document["actions"]) == 100


def test_what_moves_through_the_network() -> None:
    """Of each workload and of each class, for whoever draws it; unknown is null."""
    now = views.view(workloads=(views.workload("a"),))
    document = json.loads(json.dumps(console.document(now, "1", recorders.recorder())))
    unknown = {"receivedBytesPerSecond": None, "sentBytesPerSecond": None}

    assert unknown == document["workloads"][0]["network"]
    assert set(document["usage"]["shares"]) == {"LSE", "LSR", "LS", "BE", "system"}
    assert all(unknown == share["network"] for share in document["usage"]["shares"].values())
