"""Ports of the node that nobody asked for by name."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.plugins.ports import NodePorts
from tests.kit import clusters
from tests.kit.clusters import node, pod

Body = dict[str, Any]


def test_in_the_network_of_the_node_every_port_is_one() -> None:
    """As the API server fills it in; in a network of its own a port of a container is nobody's."""
    ports: Body = {"container": {"ports": [{"containerPort": 80}]}}

    assert "didn't have free ports" in clusters.message(
        "q", node("a"), pod("p", hostNetwork=True, **ports), pod("q", hostNetwork=True, **ports)
    )
    assert len(clusters.places(node("a"), pod("p", **ports), pod("q", **ports))) == 2


@pytest.mark.parametrize(("port", "helps"), [(80, True), (81, False)])
def test_a_pod_that_goes_helps_those_whose_ports_it_had(port: int, *, helps: bool) -> None:
    """As kube-scheduler's hint says."""
    waits, leaves = (
        inventory.load([node("a"), pod("p", container=taken)]).pending[0]
        for taken in ({"ports": [{"containerPort": each, "hostPort": each}]} for each in (80, port))
    )
    event = ClusterEvent(ActionType.POD_GONE, pod=leaves)

    assert NodePorts({}).helps(event, waits.pod_class) is helps
