"""Workloads of the configuration: where one is found, and what it may ask for."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from koordlet.config import schema


def workload(**fields: object) -> dict[str, Any]:
    """A configuration with one workload."""
    return {"workloads": [{"name": "a", "qos": "BE", "match": {"unit": "a.service"}, **fields}]}


@pytest.mark.parametrize(
    ("match", "words"),
    [
        ({}, "found neither"),
        ({"unit": "a.service", "cgroup": "a"}, "found both"),
        ({"cgroup": "../a"}, '"../a"'),
        ({"cgroup": "/a"}, '"/a"'),
        ({"cgroup": ""}, "empty"),
        ({"cgroup": "a\n"}, r'"a\n"'),
    ],
)
def test_match(match: object, words: str) -> None:
    """A workload matches exactly one unit or one plain relative cgroup path."""
    with pytest.raises(ValidationError, match="workloads") as caught:
        schema.Config.model_validate(workload(match=match))

    assert words in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("requests", "limits", "fits"),
    [
        ({"cpu": "1"}, {"cpu": "1000m"}, True),
        ({"cpu": "1001m"}, {"cpu": 1}, False),
        ({"memory": "1Gi"}, {"cpu": 1}, True),
        ({"memory": "1Gi"}, {"memory": "1G"}, False),
    ],
)
def test_requests_within_limits(requests: object, limits: object, *, fits: bool) -> None:
    """A request never exceeds the limit of the same resource."""
    data = workload(requests=requests, limits=limits)
    if fits:
        schema.Config.model_validate(data)
        return
    with pytest.raises(ValidationError, match="exceeds the limit"):
        schema.Config.model_validate(data)
