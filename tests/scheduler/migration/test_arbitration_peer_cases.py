"""Koordinator's own cases of arbitration: who may begin beside whom, and in which order."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.kubeapi.disruption_rates import CountOrPercent
from tests.kit import descheduling
from tests.scheduler.migration.test_arbitration import FREE, SERVED, Scene, pods

NODE, NAMESPACE = "MaxMigratingPerNode", "MaxMigratingPerNamespace"
WORKLOAD, UNAVAILABLE = "MaxMigratingPerWorkload", "MaxUnavailablePerWorkload"
NOT_READY = {"conditions": [{"type": "Ready", "status": "False"}]}


def alone(name: str, on: str = "n1", **more: Any) -> dict[str, Any]:
    """A pod that is the only one of its workload."""
    return descheduling.pod(name, on, owner=f"ReplicaSet/{name}", spec=SERVED, **more)


@pytest.mark.parametrize(
    ("bound", "most", "running", "judged", "reason"),
    [
        ("max_globally", None, ["a", "b"], "c", ""),
        ("max_globally", 1, [], "c", ""),
        ("max_globally", 1, ["elsewhere"], "c", "MaxMigratingGlobally"),
        ("max_per_node", None, ["a", "b"], "c", ""),
        ("max_per_node", 1, [], "c", ""),
        ("max_per_node", 1, ["a"], "c", NODE),
        ("max_per_node", 1, ["elsewhere"], "c", ""),
        ("max_per_node", 2, ["a"], "c", ""),
        ("max_per_node", 2, ["a", "b"], "c", NODE),
        ("max_per_node", 2, ["a", "b"], "elsewhere", ""),
        ("max_per_namespace", None, ["a", "b"], "c", ""),
        ("max_per_namespace", 1, [], "c", ""),
        ("max_per_namespace", 1, ["a"], "c", NAMESPACE),
        ("max_per_namespace", 1, ["other"], "c", ""),
        ("max_per_namespace", 2, ["a", "other"], "c", ""),
        ("max_per_namespace", 2, ["a", "b"], "c", NAMESPACE),
        ("max_per_namespace", 2, ["a", "b"], "other", ""),
    ],
)
def test_a_job_counts_where_its_pod_is(
    bound: str, most: int | None, running: list[str], judged: str, reason: str
) -> None:
    """In the cluster, on its node, in its namespace; the judged one is not beside itself."""
    several = [alone(name) for name in "abc"]
    bounds: dict[str, Any] = {bound: most}
    scene = Scene(
        *several, alone("elsewhere", "n2"), alone("other", "n2", namespace="other"),
        settings=dataclasses.replace(FREE, **bounds),
    )  # fmt: skip
    under_way = [scene.candidate(name) for name in running]
    assert list(scene.verdicts([scene.candidate(judged)], under_way).values()) == [reason]


@pytest.mark.parametrize(
    ("bounds", "running", "down", "judged", "reason"),
    [
        # Of ten: how many may migrate.
        ((1, 9), 0, 0, "web-9", ""),
        ((1, 9), 1, 0, "web-9", WORKLOAD),
        ((1, 9), 1, 0, "other-0", ""),
        ((2, 9), 1, 0, "web-9", ""),
        ((2, 9), 2, 0, "web-9", WORKLOAD),
        ((2, 9), 2, 0, "other-0", ""),
        # How many may be missing, those that migrate among them.
        ((9, 1), 0, 0, "web-9", ""),
        ((9, 1), 0, 1, "web-9", UNAVAILABLE),
        ((9, 1), 1, 0, "web-9", UNAVAILABLE),
        ((9, 2), 0, 1, "web-9", ""),
        ((9, 2), 1, 0, "web-9", ""),
        ((9, 2), 1, 1, "web-9", UNAVAILABLE),
        ((9, 2), 1, 1, "other-0", ""),
    ],
)
def test_a_workload_bounds_its_own_pods(
    bounds: tuple[int, int], running: int, down: int, judged: str, reason: str
) -> None:
    """Both numbers are of pods; a workload beside it has its own."""
    settings = dataclasses.replace(
        FREE,
        max_per_workload=CountOrPercent(bounds[0]),
        max_unavailable=CountOrPercent(bounds[1]),
    )
    several = pods(10)
    for body in several[5 : 5 + down]:
        body["status"] |= NOT_READY
    scene = Scene(*several, *pods(3, owner="other"), settings=settings)
    under_way = [scene.candidate(f"web-{place}") for place in range(running)]
    assert list(scene.verdicts([scene.candidate(judged)], under_way).values()) == [reason]


@pytest.mark.parametrize(
    ("count", "owners", "running", "expected"),
    [
        # The pods of one Job stand where the first of them does.
        (10, {4: "x", 8: "x"}, "", [0, 1, 2, 3, 4, 8, 5, 6, 7, 9]),
        (10, {}, "", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (10, {3: "x", 8: "x", 1: "y", 9: "y"}, "", [0, 1, 9, 2, 3, 8, 4, 5, 6, 7]),
        (5, {2: "x", 3: "x", 4: "x"}, "", [0, 1, 2, 3, 4]),
        (6, {0: "x", 4: "y", 2: "z"}, "", [0, 1, 2, 3, 4, 5]),
        # Those of a Job of which pods migrate come first, of the one with most before others.
        (10, {4: "x", 8: "x"}, "xy", [4, 8, 0, 1, 2, 3, 5, 6, 7, 9]),
        (5, {0: "x", 1: "x", 2: "x", 3: "x", 4: "x"}, "x", [0, 1, 2, 3, 4]),
        (5, {2: "x", 3: "x", 4: "x"}, "x", [2, 3, 4, 0, 1]),
        (6, {2: "x", 3: "y", 5: "x"}, "yx", [2, 5, 3, 0, 1, 4]),
        (10, {4: "x", 8: "x", 7: "y"}, "xyy", [7, 4, 8, 0, 1, 2, 3, 5, 6, 9]),
    ],
)
def test_pods_of_one_job_are_finished_before_others_begin(
    count: int, owners: dict[int, str], running: str, expected: list[int]
) -> None:
    """Pods that are equal else; ``running`` has a Job for each pod of it that migrates."""
    bodies = [
        descheduling.pod(
            f"p{place}", "n1", cpu="0", spec=SERVED,
            owner=f"Job/{owners[place]}" if place in owners else f"ReplicaSet/p{place}",
        )
        for place in range(count)
    ]  # fmt: skip
    under_way = [
        descheduling.pod(f"r{place}", "n2", cpu="0", spec=SERVED, owner=f"Job/{owner}")
        for place, owner in enumerate(running)
    ]
    scene = Scene(*bodies, *under_way)
    waiting = [scene.candidate(f"p{place}", age=100 - place) for place in range(count)]
    verdicts = scene.verdicts(waiting, [scene.candidate(f"r{p}") for p in range(len(running))])
    assert list(verdicts) == [f"job-p{place}" for place in expected]
