"""Load-aware placement in the peer's edge cases, as tables of facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.plugins import load_aware
from tests.kit import clusters
from tests.kit.clusters import node, pod
from tests.scheduler.plugins.test_load_aware import metric

Body = dict[str, Any]
CPU = "1 node(s) cpu usage exceed threshold"
AGGREGATED = "1 node(s) cpu aggregated usage exceed threshold"
AT = "scheduling.koordinator.sh/"
#: At the moment of the report.
LONG_AGO, A_MINUTE_AGO = "2026-01-01T00:00:00Z", "2026-01-01T00:08:30Z"


def config(**args: Any) -> Body:
    """Load-aware placement alone, with these arguments."""
    plugin = {"name": "LoadAwareScheduling"}
    profile = {
        "schedulerName": "default-scheduler",
        "pluginConfig": [{**plugin, "args": args}],
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [plugin]}},
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }


def noted(**thresholds: Any) -> Body:
    """A node of four CPUs with thresholds of its own."""
    notes = {f"{AT}usage-thresholds": json.dumps(thresholds)}
    return {**node("n"), "metadata": {**node("n")["metadata"], "annotations": notes}}


def windows(*several: tuple[str, Mapping[str, str]]) -> list[Body]:
    """Statistics of CPU use by duration."""
    return [
        {
            "duration": length,
            "usage": {
                kind: {"resources": {"cpu": cpu, "memory": "1Gi"} if cpu else {}}
                for kind, cpu in usage.items()
            },
        }
        for length, usage in several
    ]


def running(name: str, cpu: str, since: str, initialized: str = "", **notes: str) -> Body:
    """A pod that got its node at a time."""
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": since}]
    if initialized:
        then = {"type": "Initialized", "status": "True", "lastTransitionTime": initialized}
        conditions.append(then)
    meta = {"annotations": {AT + key.replace("_", "-"): text for key, text in notes.items()}}
    return pod(name, on="n", cpu=cpu, status={"conditions": conditions}, meta=meta)


def refusal(machine: Body, used: Body, *pods: Body, **args: Any) -> str:
    """Why a pod of 100 milli-CPU is refused; empty: it is not."""
    bodies = (machine, used, *pods, pod("p", cpu="100m"))
    pending = clusters.tried(*bodies, config=config(**args))["pending"]
    return "".join(entry["message"].split(": ")[1].split(".")[0] for entry in pending)


P95 = {"usageThresholds": {"cpu": 60}, "usageAggregationType": "p95"}


@pytest.mark.parametrize(
    ("own", "args", "cpu", "reported", "refused"),
    [
        # The longest duration that has the statistic; else the last value.
        ({}, P95, "1", windows(("5m", {"p95": "3"}), ("10m", {"p95": ""})), AGGREGATED),
        ({}, P95, "1", windows(("5m", {"p95": "3"}), ("10m", {"avg": "1"})), AGGREGATED),
        ({}, P95, "3", windows(("5m", {"p95": ""})), AGGREGATED),
        ({}, P95, "1", (), ""),
        # A duration that is named and missing: estimates alone.
        ({}, {**P95, "usageAggregatedDuration": "5m"}, "3", (), ""),
        # All thresholds 0: nothing is refused, nor by the last value.
        ({}, {**P95, "usageThresholds": {"cpu": 0}}, "3", windows(("5m", {"p95": "3"})), ""),
        # Without a statistic, or without thresholds, they stand for nothing.
        ({}, {"usageThresholds": {"cpu": 60}}, "3", (), CPU),
        ({}, {"usageAggregationType": "p95"}, "3", windows(("5m", {"p95": "1"})), CPU),
        # A node's own group counts where it has something in it.
        ({"usageThresholds": {}}, {}, "3", (), CPU),
        ({"usageThresholds": {"cpu": 80}}, {}, "3", (), ""),
        ({"aggregatedUsage": {"usageThresholds": {"cpu": 90}}}, P95, "3", (), AGGREGATED),
        ({"aggregatedUsage": {**P95, "usageThresholds": {"cpu": 90}}}, P95, "3", (), ""),
    ],
)
def test_statistics_and_groups(
    own: Body, args: Body, cpu: str, reported: list[Body], refused: str
) -> None:
    """Which thresholds hold against which use."""
    used = metric("n", cpu, aggregatedNodeUsages=list(reported))
    assert refusal(noted(**own), used, aggregated=args) == refused


@pytest.mark.parametrize(
    ("args", "cpu", "refused"),
    [
        ({}, "1", f"1 {load_aware.EXPIRED}"),
        ({"enableScheduleWhenNodeMetricsExpired": True}, "3", ""),
        ({"filterExpiredNodeMetrics": False}, "1", ""),
        ({"filterExpiredNodeMetrics": False}, "3", CPU),
    ],
)
def test_reports_without_a_time_are_old(args: Body, cpu: str, refused: str) -> None:
    """Whoever does not refuse old ones judges by them."""
    used = metric("n", cpu)
    del used["status"]["updateTime"]
    assert refusal(node("n"), used, **args) == refused


@pytest.mark.parametrize(
    ("args", "existing", "refused"),
    [
        ({}, running("x", "3", LONG_AGO), False),
        ({"estimatedSecondsAfterPodScheduled": 30}, running("x", "3", A_MINUTE_AGO), False),
        ({"estimatedSecondsAfterPodScheduled": 180}, running("x", "3", A_MINUTE_AGO), True),
        # Initialized, it has waited for what the first number is for.
        (
            {"estimatedSecondsAfterPodScheduled": 900, "estimatedSecondsAfterInitialized": 30},
            running("x", "3", LONG_AGO, A_MINUTE_AGO),
            False,
        ),
        (
            {"estimatedSecondsAfterPodScheduled": 900, "estimatedSecondsAfterInitialized": 30},
            running("x", "3", LONG_AGO),
            True,
        ),
        (
            {"estimatedSecondsAfterInitialized": 180},
            running("x", "3", LONG_AGO, A_MINUTE_AGO),
            True,
        ),
        # By the pod itself, where it may; 0 turns it off.
        ({}, running("x", "3", LONG_AGO, load_estimated_seconds_after_pod_scheduled="900"), False),
        (
            {"allowCustomizeEstimation": True},
            running("x", "3", LONG_AGO, load_estimated_seconds_after_pod_scheduled="900"),
            True,
        ),
        (
            {"allowCustomizeEstimation": True},
            running(
                "x", "3", LONG_AGO, A_MINUTE_AGO, load_estimated_seconds_after_initialized="300"
            ),
            True,
        ),
        (
            {"allowCustomizeEstimation": True, "estimatedSecondsAfterPodScheduled": 900},
            running("x", "3", LONG_AGO, load_estimated_seconds_after_pod_scheduled="0"),
            False,
        ),
        (
            {"allowCustomizeEstimation": True, "estimatedSecondsAfterPodScheduled": 900},
            running("x", "3", LONG_AGO, load_estimated_seconds_after_pod_scheduled="soon"),
            True,
        ),
    ],
)
def test_a_pod_counts_by_its_estimate_for_a_while(
    args: Body, existing: Body, refused: bool
) -> None:
    """It is reported with little; 2.55 CPUs of estimate are beyond 65 % with the other pod."""
    used = metric("n", "100m", pods={"x": "50m"})
    assert refusal(node("n"), used, existing, **args) == (CPU if refused else "")


@pytest.mark.parametrize(
    ("priority", "reported_as", "refused"),
    [
        # Reported as production, and is.
        (9500, "koord-prod", True),
        # It is not, whatever is reported; it is, whatever is reported: then by its estimate.
        (5500, "koord-prod", False),
        (9500, "koord-batch", False),
    ],
)
def test_production_uses_what_its_pods_use(priority: int, reported_as: str, refused: bool) -> None:
    """Use of pods that left, or are of another class, is not production's."""
    used = metric("n", "3", pods={"x": "2600m", "left": "3"})
    used["status"]["podsMetric"][0]["priority"] = reported_as
    existing = running("x", "100m", LONG_AGO)
    existing["spec"]["priority"] = priority
    args = {"usageThresholds": {"cpu": 0}, "prodUsageThresholds": {"cpu": 60}}
    assert refusal(node("n"), used, existing, **args) == (CPU if refused else "")


@pytest.mark.parametrize(
    ("priority", "asked", "args", "estimate"),
    [
        (9500, {}, {}, {"cpu": 250, "memory": 200 << 20}),
        (5500, {}, {}, {"cpu": 250, "memory": 200 << 20}),
        (7500, {}, {}, {"cpu": 0, "memory": 0}),
        (7500, {"kubernetes.io/mid-cpu": "1000"}, {}, {"cpu": 850, "memory": 0}),
        # What has no factor is not estimated.
        (9500, {"x.y/z": "4"}, {"usageThresholds": {"x.y/z": 50}}, {"cpu": 250}),
        (9500, {"x.y/z": "4"}, {"estimatedScalingFactors": {"x.y/z": 50}}, {"x.y/z": 2}),
    ],
)
def test_what_a_pod_will_use(
    priority: int, asked: Body, args: Body, estimate: Mapping[str, int]
) -> None:
    """By class; whoever runs on what is left over and asks for nothing is not guessed."""
    plugin = load_aware.LoadAwareScheduling(args)
    body = pod("p", container={"resources": {"requests": asked}}, priority=priority)
    made = plugin.estimate(Decoder({}).decode(body, 0).pod_class)
    assert {**made, **estimate} == made
    assert ("x.y/z" in made) == ("x.y/z" in estimate)


@pytest.mark.parametrize(
    ("args", "raw", "score"),
    [
        # (4000 - 1000 - 85) / 4000; memory is at 85 %.
        ({"resourceWeights": {"cpu": 1}}, {}, 72),
        ({"resourceWeights": {"memory": 1}, "dominantResourceWeight": 1}, {}, 78),
        # Half of the CPUs are there twice: (2000 - 1085) / 2000.
        ({"resourceWeights": {"cpu": 1}}, {"cpu": "2"}, 45),
    ],
)
def test_scores(args: Body, raw: Body, score: int) -> None:
    """Over what the machine has; the scarcest is looked for among all that is known."""
    machine = node("n")
    if raw:
        notes = {"node.koordinator.sh/raw-allocatable": json.dumps(raw)}
        machine["metadata"]["annotations"] = notes
    bodies = (machine, node("o"), metric("n", "1"), pod("p", cpu="100m"))
    assert clusters.scores("p", *bodies, config=config(**args))["n"] == score
