"""The layers of the cluster's network, as the object spells them."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi.network_topology import TopologyLayer, network_topology
from tests.kit import gangs


def read(*layers: dict[str, Any], name: str = "default") -> str:
    """Why a network of these layers is none."""
    body = {"metadata": {"name": name}, "spec": {"networkTopologySpec": list(layers)}}
    return network_topology(body).problem


def layer(name: str, parent: str = "", labels: object = ("l",)) -> dict[str, Any]:
    """One layer."""
    labels = list(labels) if isinstance(labels, tuple) else labels
    return {"topologyLayer": name, "parentTopologyLayer": parent, "labelKey": labels}


def test_layers_are_read_from_the_root_down_whatever_their_order() -> None:
    """The node's layer is implied; the root may be named or not."""
    body = gangs.network("spine", "block")
    body["spec"]["networkTopologySpec"].reverse()
    body["spec"]["networkTopologySpec"][-1]["parentTopologyLayer"] = "ClusterTopologyLayer"
    read = network_topology(body)
    assert read.layers == (
        TopologyLayer("spine", ("net/spine",)),
        TopologyLayer("block", ("net/block",)),
    )
    assert (read.counts, read.unused) == (True, "")
    assert network_topology(gangs.network()).layers == ()


@pytest.mark.parametrize(
    ("layers", "problem"),
    [
        ([], "layer NodeTopologyLayer is missing"),
        ([layer("NodeTopologyLayer", "rack")], "parent layer 'rack' is not listed"),
        (
            [layer("NodeTopologyLayer", "a"), layer("a", "b"), layer("b", "a")],
            "parent layer 'a' is its own ancestor",
        ),
        (
            [layer("NodeTopologyLayer"), layer("rack")],
            "layer 'rack' is not above NodeTopologyLayer",
        ),
        ([layer("a"), layer("a"), layer("NodeTopologyLayer", "a")], "layer 'a' is listed twice"),
        (
            [layer("a", labels="x"), layer("NodeTopologyLayer", "a")],
            "layer 'a': labelKey: expected a list of labels",
        ),
    ],
)
def test_layers_that_are_no_chain_are_no_network(
    layers: list[dict[str, Any]], problem: str
) -> None:
    """Each problem names the layer; nothing of such an object counts."""
    assert read(*layers) == f"spec.networkTopologySpec: {problem}"


@pytest.mark.parametrize("body", [{}, {"spec": 3}, {"spec": {"networkTopologySpec": [3, None]}}])
def test_a_body_of_any_shape_is_read(body: dict[str, Any]) -> None:
    """Bad input is a problem, not an error."""
    assert network_topology(body).problem


def test_only_the_object_of_the_usual_name_counts() -> None:
    """Another one says so."""
    other = network_topology(gangs.network("rack", name="other"))
    assert (other.counts, other.unused) == (False, 'the network is the object named "default"')
