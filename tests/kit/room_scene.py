"""Nodes where a pod waits for room: short objects, the moves of a plan, what is requested.

Covers: bodies and questions. Does not cover: what is planned (the tests).
"""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.rescheduling.room_plan import RoomPlan
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit import clusters
from tests.kit.descheduling import node, pod

Body = dict[str, Any]


def waiting(**wanted: Any) -> Any:
    """A pod without a node."""
    return Decoder({}).decode(clusters.pod("big", **wanted), 0)


def moves(answer: RoomPlan | str) -> list[tuple[str, str, str]]:
    """Pod, origin and target of each move."""
    assert isinstance(answer, RoomPlan), answer
    return [(each.pod.name, each.origin, each.target) for each in answer.moves]


def rooms(scene: LimitedDump) -> list[list[int]]:
    """What is requested of each node."""
    requested: list[list[int]] = scene.state.columns.requested.tolist()
    return requested


RATE: Body = {
    "kind": "DisruptionRate",
    "metadata": {"name": "all", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {}}, "limits": [{"count": 1, "window": "1h"}]},
}
SHARED = (
    *(node(name, cpu="4") for name in "ab"),
    *(pod(f"a{n}", "a", cpu="1") for n in range(2)),
    pod("b0", "b", cpu="3500m"),
    node("c", cpu="2"),
)
