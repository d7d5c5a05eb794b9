"""NodeMetric: what the peer's manager and scheduler read of it."""

from __future__ import annotations

import dataclasses
from array import array
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import counters, meter, pod, prediction, qos
from koordlet.report import view
from koordlet.report.crds import definitions, nodemetric
from koordlet.report.objects import metric_object
from tests.kit import structural, views

AT = 1000.0


def past(seconds: int = 320) -> series.History:
    """A node at 1.5 cores and 1 GiB, one pod at 100 m and 10 MiB, second by second."""
    history = series.History()
    for second in range(seconds):
        at = AT - seconds + 1 + second
        history.take(
            {
                "node": reading(at, {"": 0}, meter.CPU, 1.5 * at, meter.WORKING_SET, 1 << 30),
                "groups": reading(
                    at, {"shop/pod-00000": 0}, meter.CPU, 0.1 * at, meter.MEMORY_ANON, 10 << 20
                ),
            }
        )
        history.share(reading(at, {}), PODS)
    return history


def reading(at: float, slots: dict[str, int], *values: Any) -> counters.Reading:
    """One moment."""
    batches = tuple(
        counters.Batch(values[n], 0, 1, array("d", [values[n + 1]]))
        for n in range(0, len(values), 2)
    )
    return counters.Reading(
        at=at, suspended=0.0, slots=slots, width=max(1, len(slots)), batches=batches
    )


PODS = tuple(
    dataclasses.replace(
        workload, kube_qos=qos.KubeQos.BURSTABLE, containers=(pod.Container(name="c"),)
    )
    for workload in views.pods(2)
)


def used_view() -> view.ReportView:
    """A view at the end of that history."""
    base = views.view(PODS)
    return dataclasses.replace(
        base,
        snapshot=dataclasses.replace(base.snapshot, at=AT, wall=1767225600.0),
        predicted=prediction.Prediction(reclaimable={"cpu": 1.0, "memory": 1024.0}),
    )


def status(known: series.History) -> dict[str, Any]:
    """The whole status."""
    now, want = used_view(), metric_object.CollectPolicy()
    return metric_object.status(
        now,
        metric_object.node(now, known, want),
        list(metric_object.pods(now, known, want)),
        list(metric_object.applications(now, known, want)),
    )


def test_use_is_reported_in_the_peers_units() -> None:
    """Averages and quantiles in the peer's units; a pod without samples is left out."""
    written = status(past())
    usage = written["nodeMetric"]

    assert written["updateTime"] == "2026-01-01T00:00:00Z"
    assert {"cpu": "1500m", "memory": str(1 << 30)} == _near(usage["nodeUsage"]["resources"])
    first, second, _ = usage["aggregatedNodeUsages"]
    assert first["duration"] == "5m0s"
    assert first["usage"].keys() == {"avg", "p50", "p90", "p95", "p99"}
    assert (second["duration"], bool(second["usage"])) == ("10m0s", True), "half is enough"
    (row,) = written["podsMetric"]
    assert (
        *(row["namespace"], row["name"]),
        *(row["priority"], row["qos"]),
    ) == ("team-0", "pod-00000", "koord-prod", "LS")
    assert {"cpu": "100m", "memory": str(10 << 20)} == _near(row["podUsage"]["resources"])
    assert written["prodReclaimableMetric"]["resource"]["resources"] == {
        "cpu": "1000m",
        "memory": "1024",
    }
    assert "prodPeakMetric" not in written


def _near(amounts: dict[str, str]) -> dict[str, str]:
    """Rates of floats are truncated: 99.999 m is 99 m."""
    milli = int(amounts["cpu"].removesuffix("m"))
    return {**amounts, "cpu": f"{round(milli + 0.5, -1):.0f}m"}


def test_a_cold_start_is_an_empty_map() -> None:
    """Less than half of a window is no window."""
    written = status(past(seconds=20))

    assert written["nodeMetric"]["nodeUsage"]["resources"] == {}
    assert [aggregate["usage"] for aggregate in written["nodeMetric"]["aggregatedNodeUsages"]] == [
        {},
        {},
        {},
    ]
    assert written["podsMetric"] == []


def test_it_passes_the_schema() -> None:
    """A server keeps every field, and it is an object of the model."""
    body = {"status": status(past())}
    row = definitions.find("nodemetrics")
    kept = structural.admitted(definitions.document(row), "v1alpha1", body)

    assert body["status"] == kept["status"]
    nodemetric.NodeMetricSchema.model_validate(body)


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        ({}, (60, 300, (300, 600, 1800))),
        ({"reportIntervalSeconds": 5, "aggregateDurationSeconds": 1}, (30, 60, (300, 600, 1800))),
        ({"nodeAggregatePolicy": {"durations": ["1h0m0s", "90s", "x", 7]}}, (60, 300, (3600, 90))),
        (
            {"reportIntervalSeconds": "often", "nodeAggregatePolicy": []},
            (60, 300, (300, 600, 1800)),
        ),
        (
            {
                "reportIntervalSeconds": 10**400,
                "aggregateDurationSeconds": 10**400,
                "nodeAggregatePolicy": {"durations": ["9" * 400 + "h", *["5m"] * 99]},
            },
            (86400, 86400, (86400, *[300] * 15)),
        ),
    ],
)
def test_wishes(policy: dict[str, Any], seconds: tuple[object, ...]) -> None:
    """Floors and ceilings, defaults for what makes no sense."""
    want = metric_object.wish({"spec": {"metricCollectPolicy": policy}})

    assert seconds == (want.report_seconds, want.window_seconds, want.durations)
