"""The status of a disruption budget follows from its pods."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.standalone import budgets

Body = dict[str, Any]


def budget(**spec: Any) -> Body:
    """For the pods of the application ``web``."""
    chosen = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    return {"metadata": {"name": "b", "namespace": "d", "generation": 3}, "spec": chosen}


def pod(name: str, *, app: str = "web", on: str = "n", ready: str = "", **meta: Any) -> Body:
    """One pod."""
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {
        "metadata": {"name": name, "namespace": "d", "labels": {"app": app}, **meta},
        "spec": {"nodeName": on},
        "status": {"conditions": conditions},
    }


FIVE = [pod(f"p{n}") for n in range(5)]


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"minAvailable": 3}, 3, 2),
        ({"minAvailable": "50%"}, 3, 2),
        ({"maxUnavailable": 1}, 4, 1),
        ({"maxUnavailable": "30%"}, 3, 2),
        ({"maxUnavailable": "100%"}, 0, 5),
        ({"minAvailable": 9}, 9, 0),
        ({}, 1, 4),
    ],
)
def test_how_many_may_go(spec: Body, desired: int, allowed: int) -> None:
    """Numbers and shares, which are rounded up."""
    status = budgets.status(budget(**spec), FIVE, 0.0)
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (desired, allowed)
    assert status["observedGeneration"] == 3


def test_who_is_healthy() -> None:
    """Others, those without a node, those that end and those that are not ready are not."""
    several = [
        *(pod("a"), pod("b", ready="True"), pod("c", ready="False"), pod("d", on="")),
        *(pod("e", deletionTimestamp="now"), pod("f", app="db")),
    ]
    status = budgets.status(budget(minAvailable=1), several, 0.0)
    assert (status["expectedPods"], status["currentHealthy"]) == (5, 2)


def test_no_pods_allow_nothing() -> None:
    """There is nobody to be disrupted."""
    assert budgets.status(budget(maxUnavailable=1), [], 0.0)["disruptionsAllowed"] == 0


def test_who_was_said_to_go_does_not_count_twice() -> None:
    """For two minutes, or until it is gone."""
    body = {**budget(minAvailable=1)}
    body["status"] = {
        "disruptedPods": {"p0": "1970-01-01T00:00:00Z", "gone": "1970-01-01T00:00:00Z"}
    }
    assert budgets.status(body, FIVE, 60.0)["currentHealthy"] == 4
    assert budgets.status(body, FIVE, 60.0)["disruptedPods"].keys() == {"p0"}
    assert budgets.status(body, FIVE, 180.0)["currentHealthy"] == 5


def test_nonsense_is_an_error() -> None:
    """It costs that budget."""
    with pytest.raises(BadObjectError, match="neither"):
        budgets.status(budget(minAvailable="many"), FIVE, 0.0)
