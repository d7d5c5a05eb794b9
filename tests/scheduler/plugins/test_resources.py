"""Amounts: what fits, what it says, what it scores; one row gives what many rows give."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.plugins import balanced_allocation, resources
from tests.kit import clusters
from tests.kit.clusters import node, pod


def test_every_shortage_is_named() -> None:
    """All reasons of a node are counted."""
    full = node("a", allocatable={"pods": "0"})

    assert (
        clusters.message(
            "p", full, pod("p", cpu="5", memory="9Gi", requests={"example.com/gpu": "1"})
        )
        == "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient example.com/gpu,"
        " 1 Insufficient memory, 1 Too many pods."
    )


def test_hopeless_shortages_are_not_preempted_for() -> None:
    """A request beyond the empty node is no case for preemption."""
    bodies = node("a"), pod("low", on="a"), pod("p", cpu="5", priority=1)
    [entry] = clusters.tried(*bodies)["pending"]

    assert entry["message"].endswith("1 Preemption is not helpful for scheduling.")


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]}, 3000),
        (
            {
                "initContainers": [
                    {
                        "name": "s",
                        "restartPolicy": "Always",
                        "resources": {"requests": {"cpu": "2"}},
                    },
                    {"name": "i", "resources": {"requests": {"cpu": "3"}}},
                ]
            },
            5000,
        ),
        ({"overhead": {"cpu": "250m"}}, 1250),
        ({"resources": {"requests": {"cpu": "4"}}}, 4000),
    ],
)
def test_requests(spec: dict[str, Any], cpu: int) -> None:
    """Init containers, sidecars, overhead and the pod's own amounts, made one."""
    loaded = inventory.load([node("a"), pod("p", cpu="1", **spec)])

    assert cpu == loaded.pending[0].pod_class.requests.real["cpu"]


def test_a_resize_counts_what_is_largest() -> None:
    """A placed pod holds the larger of what it asks for, has, and was allocated."""
    placed = pod("p", on="a", cpu="1")
    placed["status"] = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]}
    loaded = inventory.load([node("a"), placed])

    assert loaded.columns.requested[0, 0] == 2000


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({}, 2000),
        ({"allocatedResources": {"cpu": "3"}}, 3000),
        ({"resources": {"requests": {"cpu": "4"}}, "allocatedResources": {"cpu": "1"}}, 4000),
        (
            {
                "allocatedResources": {"cpu": "1500m"},
                "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
            },
            1500,
        ),
    ],
)
def test_a_resize_of_the_pod_as_a_whole_counts_what_is_largest(
    status: dict[str, Any], cpu: int
) -> None:
    """Its own requests are resized in place as those of containers are."""
    placed = pod("p", on="a", cpu="1", resources={"requests": {"cpu": "2"}})
    loaded = inventory.load([node("a"), {**placed, "status": status}])

    assert loaded.columns.requested[0, 0] == cpu


def test_limits_of_the_pod_are_requests_where_nobody_asks() -> None:
    """As the API server fills it in: what containers ask for, or else the limit."""
    whole: dict[str, Any] = {"resources": {"limits": {"cpu": "3", "memory": "1Gi"}}}
    loaded = inventory.load([node("a"), pod("p", cpu="1", **whole), pod("q", **whole)])

    real = [pending.pod_class.requests.real for pending in loaded.pending]
    assert real == [{"cpu": 1000, "memory": 1 << 30}, {"cpu": 3000, "memory": 1 << 30}]


def test_scores_by_hand() -> None:
    """Least: (4-1)/4 and 7/8 make 75 and 87, so 81; balance 50 + (50 + 93 - 100) / 2 = 71."""
    scores = clusters.scores("p", node("a"), pod("p", cpu="1", memory="1Gi"))

    assert scores["a"] == 300 + 81 + 71


def test_a_container_that_says_nothing_counts_for_scores_only() -> None:
    """100m and 200 MiB: 97 and 97; no balance for a pod that asks for nothing."""
    scores = clusters.scores("p", node("a"), pod("p"))

    assert scores["a"] == 300 + 97


@pytest.mark.parametrize(
    ("strategy", "score"),
    [
        ({"type": "MostAllocated"}, (25 + 12) // 2),
        (
            {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {
                    "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
                },
                "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
            },
            22,
        ),
    ],
)
def test_strategies(strategy: dict[str, Any], score: int) -> None:
    """Shares of 25 % and 12 %, combined as each strategy does."""
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": "NodeResourcesFit"}],
                    }
                },
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
                ],
            }
        ],
    }
    scores = clusters.scores("p", node("a"), pod("p", cpu="1", memory="1Gi"), config=config)

    assert {"a": score} == scores


def test_a_ramp_is_cut_toward_zero() -> None:
    """Between points in integers, outside of them flat."""
    points = resources.shape([{"utilization": 10, "score": 10}, {"utilization": 40, "score": 0}])

    assert [resources.ramp(points, share) for share in (5, 11, 90)] == [100, 97, 0]


def test_one_row_gives_what_many_give() -> None:
    """The plain form of fit and scores equals the form over arrays, on 500 random nodes."""
    chance = random.Random(7)
    nodes = [
        node(
            f"n{i}",
            cpu=f"{chance.choice((0, 1, 7, 64_000, 999))}m",
            allocatable={"memory": str(chance.randrange(2**40)), "gpu.io/x": chance.randrange(4)},
        )
        for i in range(500)
    ]
    placed = [
        pod(
            f"o{i}", on=f"n{chance.randrange(500)}", cpu=f"{chance.randrange(9999)}m", memory=str(i)
        )
        for i in range(900)
    ]
    wanted = pod("p", cpu="333m", memory="77Mi", requests={"gpu.io/x": "2"})
    loaded = inventory.load([*nodes, *placed, wanted])
    pod_class, columns = loaded.pending[0].pod_class, loaded.columns
    rows = np.arange(columns.size, dtype=np.intp)
    fit = resources.NodeResourcesFit({})
    most = resources.NodeResourcesFit({"scoringStrategy": {"type": "MostAllocated"}})
    even = balanced_allocation.NodeResourcesBalancedAllocation({})

    filtering = fit.filter(pod_class, columns)
    assert filtering is not None
    assert filtering.allowed(rows).tolist() == [filtering.allows(row) for row in rows.tolist()]
    for plugin in (fit, most, even):
        score = plugin.score(pod_class, columns)
        assert score is not None
        assert score.raw(rows).tolist() == [score.one(row) for row in rows.tolist()]
