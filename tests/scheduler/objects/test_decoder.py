"""What annotations say that a pod was given, and whether it is ready; what they cannot say."""

from __future__ import annotations

import json
import re

import pytest

from koordlet.model import cpuset
from koordlet.scheduler.objects.decoder import Decoder, assigned
from tests.kit import clusters
from tests.kit.clusters import node, pod

STATUS = "scheduling.koordinator.sh/resource-status"


@pytest.mark.parametrize(
    "listed",
    [
        [{"node": 0, "resources": {"cpu": "-1"}}],
        [{"node": 0, "resources": {"cpu": "many"}}],
        [{"node": 0, "resources": ["cpu"]}],
        [{"node": "0"}, 7, None],
        {"node": 0},
    ],
)
def test_a_broken_annotation_hides_nobody(listed: object) -> None:
    """A pod whose amounts by NUMA node cannot be read still takes its room on its node."""
    notes = {STATUS: json.dumps({"cpuset": "0-1", "numaNodeResources": listed})}
    there = pod("a", on="n", cpu="4", meta={"annotations": notes})

    assignment = assigned(notes)
    assert (assignment["cpus"], assignment["parts"]) == (cpuset.CPUSet.parse("0-1"), {})
    message = clusters.message("b", node("n", cpu="4"), there, pod("b", cpu="1"))
    assert message == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize("own", ["g", ["g"], {"name": "g"}, {"podGroupName": 7}])
def test_a_scheduling_group_that_names_nobody_is_a_mistake_and_no_pod_without_a_gang(
    own: object,
) -> None:
    """Such a pod is rejected by the field's name: it must not be placed alone."""
    document = clusters.tried(node("n"), pod("p", schedulingGroup=own))
    assert document["placements"] == []
    [pending] = document["pending"]
    assert re.search("schedulingGroup|podGroupName", pending["message"])


@pytest.mark.parametrize(
    ("on", "conditions", "reported", "presumed"),
    [
        ("n", [], False, True),
        ("n", [("PodScheduled", "True")], False, True),
        ("n", [("Ready", "True")], True, True),
        ("n", [("Ready", "False")], False, False),
        ("n", [("Ready", "Unknown")], False, False),
        ("", [], False, False),
    ],
)
def test_readiness_is_presumed_of_placed_pods_alone_and_only_where_no_condition_denies_it(
    on: str, conditions: list[tuple[str, str]], *, reported: bool, presumed: bool
) -> None:
    """Beside a kubelet a pod that was placed a moment ago is not up; without one it is."""
    body = pod("p", on=on)
    body["status"] = {"conditions": [{"type": kind, "status": value} for kind, value in conditions]}

    assert Decoder({}).decode(body, 1).up is reported
    assert Decoder({}, presumes_ready=True).decode(body, 1).up is presumed
