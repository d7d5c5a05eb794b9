"""The parts of NUMA nodes, and what third parties were given before."""

from __future__ import annotations

import dataclasses
import json

import pytest

from koordlet.model import pod, resources, topology, wishes
from koordlet.policy.best_effort import batch_formulas as policy
from tests.kit import moments
from tests.policy.best_effort import test_batch_resources as node

BATCH_CPU, BATCH_MEMORY = resources.BATCH_CPU, resources.BATCH_MEMORY
TWO = moments.machine(2, 4)


def placed(workload: pod.Pod, **cpus: int) -> pod.Pod:
    """A pod whose CPUs a scheduler gave on NUMA nodes (``n0=…``, in thousandths)."""
    parts = tuple(
        wishes.NumaShare(node=int(name[1:]), resources={"cpu": milli})
        for name, milli in cpus.items()
    )
    return dataclasses.replace(workload, wishes=wishes.Wishes(grant=wishes.Grant(numa=parts)))


def test_a_workload_counts_where_it_was_placed() -> None:
    """In proportion of what it was given; without a place evenly."""
    workload = placed(node.LS, n0=1000, n1=3000)

    half = policy.ZonePart(1, 2)
    assert [policy.share(workload, "cpu", zone, half) for zone in (0, 1)] == [0.25, 0.75]
    assert [policy.share(node.LS, "cpu", zone, half) for zone in (0, 1)] == [0.5, 0.5]
    # Memory was not placed.
    assert policy.share(workload, "memory", 0, half) == 0.5


def test_zones_of_a_machine() -> None:
    """Even parts of the node, less the pods of each zone; one zone is not told apart."""
    use = {str(node.LS.group): (4.0, 8.0 * node.GIB)}
    past = node.history(use, (5.0, 12.0 * node.GIB))
    pods = (placed(node.LS, n0=6000),)
    whole = node.moment(*pods)
    two = dataclasses.replace(whole, topology=TWO)
    made = node.decided(two, past).offer
    assert made is not None

    cpu = {zone: amounts[BATCH_CPU] for zone, amounts in made.zones.items()}
    # 8000 - margin 3200 - system 500 (half of what nobody owns) - what the pod uses there.
    assert cpu == {0: 300, 1: 4300}
    assert made.amounts[BATCH_CPU] == sum(cpu.values())
    alone = node.decided(whole, past).offer
    assert alone is not None
    assert alone.zones == {}


def test_a_node_of_memory_alone_offers_no_cpu() -> None:
    """A CXL node with three quarters of the memory: batch memory is there, batch CPU is not."""
    past = node.history({str(node.LS.group): (4.0, 8.0 * node.GIB)}, (5.0, 12.0 * node.GIB))
    whole = node.moment(node.LS)
    shape = moments.machine(1, 8)
    cxl = topology.Node(node=1, memory_bytes=48 * node.GIB)
    uneven = dataclasses.replace(
        shape, nodes=(dataclasses.replace(shape.nodes[0], memory_bytes=16 * node.GIB), cxl)
    )
    made = node.decided(dataclasses.replace(whole, topology=uneven), past).offer
    assert made is not None

    assert [made.zones[zone][BATCH_CPU] for zone in (0, 1)] == [made.amounts[BATCH_CPU], 0]
    near, far = (made.zones[zone][BATCH_MEMORY] for zone in (0, 1))
    assert 0 < near < far
    assert far == pytest.approx(made.amounts[BATCH_MEMORY] * 3 / 4, abs=8)


def test_small_changes_are_not_said_anew() -> None:
    """Each is a write of an object; beyond the tolerance it is said."""
    before = {0: {"a": 100}, 1: {"a": 200}}

    assert before is policy.steady({0: {"a": 109}, 1: {"a": 181}}, before, 0.1)
    for zones in ({0: {"a": 111}, 1: {"a": 200}}, {0: {"a": 100}}, {0: {"b": 1}, 1: {"a": 200}}):
        assert zones is policy.steady(zones, before, 0.1)


def allocations(priority: str = "koord-batch", **given: str) -> str:
    """The annotation of one third party."""
    allocation = {"name": "yarn", "priority": priority, "resources": given}
    return json.dumps({"allocations": [allocation]})


@pytest.mark.parametrize(
    ("annotation", "left"),
    [
        ("", (5000, 50)),
        (allocations(cpu="2", memory="20"), (3000, 30)),
        (allocations(**{BATCH_CPU: "9000"}), (0, 50)),
        (allocations("koord-mid", cpu="2"), (5000, 50)),
    ],
)
def test_third_parties(annotation: str, left: tuple[int, int]) -> None:
    """What they were given is taken off, never below nothing."""
    amounts, problem = policy.less_third_parties({BATCH_CPU: 5000, BATCH_MEMORY: 50}, annotation)

    assert left == (amounts[BATCH_CPU], amounts[BATCH_MEMORY])
    assert not problem


@pytest.mark.parametrize(
    "annotation",
    [
        "{",
        "[]",
        "1",
        "{}",
        json.dumps({"allocations": [{}]}),
        json.dumps({"allocations": [{"priority": "", "resources": []}]}),
        allocations(cpu="many"),
    ],
)
def test_a_broken_annotation_counts_as_none(annotation: str) -> None:
    """The offer stands, and a condition says what is wrong."""
    now = node.moment(node.LS)
    annotated = dataclasses.replace(now.node, annotations={policy.ALLOCATIONS: annotation})
    past = node.history({str(node.LS.group): (4.0, 8.0 * node.GIB)}, (5.0, 12.0 * node.GIB))
    made = node.decided(dataclasses.replace(now, node=annotated), past)

    assert made.offer is not None
    assert made.offer.amounts == made.offer.original
    assert [condition.type for condition in made.conditions] == ["ThirdPartiesIgnored"]


def test_the_amounts_before_third_parties_are_said_too() -> None:
    """Their own sums start from there."""
    text = allocations(cpu="1")
    now = node.moment(node.LS)
    annotated = dataclasses.replace(now.node, annotations={policy.ALLOCATIONS: text})
    past = node.history({str(node.LS.group): (4.0, 8.0 * node.GIB)}, (5.0, 12.0 * node.GIB))
    made = node.decided(dataclasses.replace(now, node=annotated), past).offer

    assert made is not None
    assert made.original[BATCH_CPU] - made.amounts[BATCH_CPU] == 1000
