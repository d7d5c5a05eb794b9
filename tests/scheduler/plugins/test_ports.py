"""Ports of the node that nobody asked for by name."""

from __future__ import annotations

from typing import Any

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
