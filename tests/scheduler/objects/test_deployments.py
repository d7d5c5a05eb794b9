"""Deployments without pods are read as their controller would."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.objects import deployments
from koordlet.scheduler.objects.wire import BadObjectError
from tests.kit.clusters import pod


def deployment(**more: Any) -> dict[str, Any]:
    """Two pods with ``app=web``."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template, **more}
    return {"kind": "Deployment", "metadata": {"name": "web", "namespace": "d"}, "spec": spec}


def test_pods_of_a_deployment() -> None:
    """One for each replica, one without a number; none where it has been at work."""
    assert [pod["metadata"]["name"] for pod in deployments.pods(deployment(), [])] == [
        "web-0",
        "web-1",
    ]
    assert len(deployments.pods(deployment(replicas=None), [])) == 1
    assert deployments.pods(deployment(), [pod("web-x", labels={"app": "web"})]) == ()
    assert len(deployments.pods(deployment(), [pod("other", labels={"app": "db"})])) == 2


@pytest.mark.parametrize(
    "more",
    [{"replicas": -1}, {"replicas": 10**9}, {"selector": None}, {"template": {"metadata": {}}}],
)
def test_one_that_makes_no_sense(more: dict[str, Any]) -> None:
    """Refused, and named by its loader."""
    with pytest.raises(BadObjectError):
        deployments.pods(deployment(**more), [])
