"""What a node sets aside is read once: its agent and a scheduler act on the same amounts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.kubeapi import node_annotations
from koordlet.model import cpuset
from koordlet.policy.cpu import reserved_cpus
from koordlet.scheduler.objects import machines, nodes
from tests.kit import clusters, moments, pods

KEY = node_annotations.RESERVATION
SERVER = moments.machine()


def agent(text: str) -> reserved_cpus.State:
    """What the agent of a node keeps from pods."""
    now = moments.moment(SERVER, annotations={KEY: text})
    made = reserved_cpus.decide(
        now, series.History(), reserved_cpus.Settings(), reserved_cpus.State()
    )
    return made.next_state


def body(text: str) -> dict[str, Any]:
    """A Node of 12 CPUs and 8 GiB."""
    node = clusters.node("n", cpu="12")
    node["metadata"]["annotations"] = {KEY: text}
    return node


def aside(node: nodes.Node) -> dict[str, int]:
    """What a scheduler does not offer of it."""
    whole = {"cpu": 12_000, "memory": 8 << 30}
    return {name: much - node.allocatable[name] for name, much in whole.items()}


def count(state: reserved_cpus.State) -> int:
    """CPUs."""
    return sum(len(reserve.cpus) for reserve in state.reserves)


@pytest.mark.parametrize(
    ("text", "cpus", "memory"),
    [
        ('{"resources":{"cpu":"2","memory":"x"}}', 2, 0),
        ('{"resources":{"cpu":"x","memory":"1Gi"}}', 0, 1 << 30),
        ('{"reservedCPUs":"0-","resources":{"cpu":"2"}}', 0, 0),
        ('{"resources":{"cpu":"1500m"}}', 2, 0),
        ('{"RESOURCES":{"cpu":"2"}}', 2, 0),
        ('{"resources":{"CPU":"2"}}', 0, 0),
        ('{"ReservedCPUs":"0-2","resources":{"cpu":"1"}}', 3, 0),
        ('{"reservedCPUs":" ","resources":{"cpu":"1"}}', 0, 0),
        ('{"reservedCPUs":3}', 0, 0),
        ('{"reservedCPUs":null,"resources":{"cpu":null,"memory":"1Gi"}}', 0, 1 << 30),
        ('{"resources":{"cpu":"-2"}}', 0, 0),
        ("{", 0, 0),
    ],
)
def test_agent_and_scheduler_set_the_same_aside(text: str, cpus: int, memory: int) -> None:
    """As many CPUs are kept from pods as are taken from what the node offers them."""
    assert count(agent(text)) == cpus
    assert aside(nodes.decode(body(text))) == {"cpu": 1000 * cpus, "memory": memory}


def test_cpus_only_leaves_the_amounts_alone() -> None:
    """The kubelet reserves them already; the CPUs by number are nobody's all the same."""
    text = '{"ReservedCPUs":"0-1","applyPolicy":"ReservedCPUsOnly","resources":{"memory":"1Gi"}}'
    node = nodes.decode(body(text))

    assert aside(node) == {"cpu": 0, "memory": 0}
    assert str(node.reserved_cpus) == "0-1"
    assert count(agent(text)) == 2


@pytest.mark.parametrize("text", ["{", '{"reservedCPUs":"0-"}', '{"resources":{"cpu":"x"}}'])
def test_a_typing_error_frees_no_cpus_for_the_scheduler(text: str) -> None:
    """What was valid last holds, and the node says what cannot be read; a removal counts."""
    decoder = nodes.NodeDecoder()
    decoder.decode(body('{"reservedCPUs":"0-3"}'))
    node = decoder.decode(body(text))

    assert (aside(node)["cpu"], str(node.reserved_cpus)) == (4000, "0-3")
    assert KEY in node.problems[0]
    assert aside(decoder.decode(clusters.node("n", cpu="12")))["cpu"] == 0
    assert aside(decoder.decode(body(text)))["cpu"] == 0


def test_an_amount_that_cannot_be_read_costs_itself_and_not_the_node() -> None:
    """The others are offered to pods, and the node says what is missing."""
    node = nodes.decode(clusters.node("n", allocatable={"memory": "many"}))

    assert (node.allocatable["cpu"], "memory" in node.allocatable) == (4000, False)
    assert "allocatable.memory" in node.problems[0]


GOOD = {"resources": {"cpu": "2", "memory": "1Gi"}, "reservedCPUs": "0-1", "applyPolicy": "Default"}


@given(value=pods.broken(GOOD), spelling=st.sampled_from([str, str.upper, str.title]))
def test_whatever_is_written_both_set_the_same_aside(value: Any, spelling: Any) -> None:
    """Any JSON, with keys of any case: the agent's CPUs are those that the node does not offer."""
    if isinstance(value, dict):
        value = {spelling(key): part for key, part in value.items()}
    text = json.dumps(value)
    reserved = node_annotations.reservation(text)
    node = nodes.decode(body(text))
    kept = 12 if reserved.cpus is None or len(reserved.cpus) > 12 else len(reserved.cpus)
    wanted = reserved.amounts.get("cpu", 0) // 1000 if reserved.cpus is None else kept

    assert node.reserved_cpus == (reserved.cpus or cpuset.CPUSet())
    if (
        wanted < 12
        and not reserved.cpus_only
        and (reserved.cpus or cpuset.CPUSet()) <= SERVER.online
    ):
        assert aside(node)["cpu"] == 1000 * count(agent(text))


@given(text=st.text(max_size=40) | pods.JSON.map(json.dumps))
def test_system_cpus_are_the_same_for_both(text: str) -> None:
    """A machine withholds the CPUs that the agent gives to system work alone, and no others."""
    system_cpus = node_annotations.system(text)
    notes = {node_annotations.SYSTEM_QOS: text}
    _, machine = machines.decode({"metadata": {"name": "n", "annotations": notes}})

    exclusive = system_cpus.cpus if system_cpus.exclusive and not system_cpus.fault else None
    assert machine.withheld == (exclusive or cpuset.CPUSet())
