"""One workload's CPUs on one node: never what another has, all or nothing, with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import cpuset
from koordlet.policy.cpu import accumulator, allocation, numa_hints
from koordlet.policy.cpu import shape as cpu_shape
from koordlet.policy.cpu.accumulator import Bind, Exclusive
from koordlet.policy.cpu.allocation import Grant, Holding, Node, Refusal, Request
from tests.policy.cpu.test_accumulator import machine, machines

SHAPE = cpu_shape.Shape.of(machine(2, 1, 4, 2))
SINGLE = numa_hints.NumaPolicy.SINGLE


def cpus(text: str) -> cpuset.CPUSet:
    """A set."""
    return cpuset.CPUSet.parse(text)


def ask(count: int, bind: Bind = Bind.FULL_CORES, **more: Any) -> accumulator.Request:
    """A request."""
    return accumulator.Request(count=count, bind=bind, **more)


def test_reserved_and_held_cpus_are_not_granted() -> None:
    """The grant says from which node it is."""
    node = Node(
        SHAPE, reserved=cpus("0,8"), holdings=[Holding(holder="ns/a", cpus=cpus("4-7,12-15"))]
    )

    assert Grant(cpus=cpus("1-2,9-10"), parts={0: {"cpu": 4000}}) == node.allocate(
        Request(cpus=ask(4))
    )
    assert Refusal(allocation.NOT_ENOUGH) == node.allocate(Request(cpus=ask(8)))


@pytest.mark.parametrize("policy", list(numa_hints.NumaPolicy))
def test_a_machine_without_numa_nodes_is_one_place(policy: numa_hints.NumaPolicy) -> None:
    """Every policy is content there, as on a machine with one node."""
    whole = machine(1, 1, 4, 2)
    bare = replace(whole, nodes=(), cpus=tuple(replace(cpu, node=None) for cpu in whole.cpus))
    node = Node(cpu_shape.Shape.of(bare), reserved=cpus("0,4"))
    answer = node.allocate(Request(cpus=ask(4), numa=policy))

    assert isinstance(answer, Grant)
    assert answer.cpus == cpus("1-2,5-6")
    too_many = node.allocate(Request(cpus=ask(8), numa=policy))
    assert too_many == Refusal(allocation.NOT_ENOUGH)


def test_preferred_cpus_may_be_held_but_never_reserved() -> None:
    """A reservation's own CPUs come back to its owner."""
    node = Node(SHAPE, reserved=cpus("0,8"), holdings=[Holding(holder="r", cpus=cpus("6-7,14-15"))])
    request = Request(cpus=ask(4), preferred=cpus("6-7,14-15"))

    assert Grant(cpus=cpus("6-7,14-15"), parts={1: {"cpu": 4000}}) == node.allocate(request)
    assert Refusal(allocation.NOT_ENOUGH) == node.allocate(
        Request(cpus=ask(15), preferred=cpus("0-15"))
    )


@pytest.mark.parametrize(
    ("wanted", "held", "parts"),
    [
        (ask(10), "", (5, 5)),
        # What does not divide comes from the second of equals, or from the richer.
        (ask(9), "", (4, 5)),
        (ask(9), "7", (5, 4)),
        (ask(10), "6-7,14-15", (6, 4)),
        # Required whole cores are not divided.
        (ask(10, required=True), "", (4, 6)),
        (ask(6, Bind.SPREAD, required=True), "", (3, 3)),
        # The second node has more free CPUs than CPUs of whole cores.
        (ask(8, required=True), "0,7,14-15", (4, 4)),
        (ask(10, required=True), "4-6", (8, 2)),
    ],
)
def test_cpus_of_several_numa_nodes_are_as_even_as_they_can_be(
    wanted: accumulator.Request, held: str, parts: tuple[int, int]
) -> None:
    """Not the first node whole and the rest of the second."""
    holdings = [Holding(holder="ns/a", cpus=cpus(held))] if held else []
    node = Node(SHAPE, reserved=cpus(""), holdings=holdings)
    answer = node.allocate(Request(cpus=wanted, numa=numa_hints.NumaPolicy.RESTRICTED))

    first, second = parts
    assert isinstance(answer, Grant)
    assert answer.parts == {0: {"cpu": first * 1000}, 1: {"cpu": second * 1000}}
    assert len(answer.cpus) == wanted.count


def test_cpu_time_that_is_spoken_for_in_fractions_divides_into_no_whole_cpus() -> None:
    """Both NUMA nodes together have it all the same."""
    node = Node(SHAPE, reserved=cpus(""), zones={0: {"cpu": 7500}, 1: {"cpu": 7500}})
    answer = node.allocate(Request(cpus=ask(15), numa=numa_hints.NumaPolicy.RESTRICTED))

    assert isinstance(answer, Grant)
    assert len(answer.cpus) == 15


def test_one_numa_node_or_none() -> None:
    """The policy of a single node refuses what needs two, memory included."""
    node = Node(SHAPE, reserved=cpus(""), zones={0: {"memory": 10}, 1: {"memory": 90}})
    small = Request(cpus=ask(4), numa=SINGLE, others={"memory": 50})

    parts = {1: {"cpu": 4000, "memory": 50}}
    assert Grant(cpus=cpus("4-5,12-13"), parts=parts, nodes=(1,)) == node.allocate(small)
    assert isinstance(
        node.allocate(Request(cpus=ask(4), numa=SINGLE, others={"memory": 95})), Refusal
    )
    assert isinstance(node.allocate(Request(cpus=ask(10), numa=SINGLE)), Refusal)


def test_refusals_that_no_departure_mends_are_final() -> None:
    """Half a core under a required policy, and a node of unknown shape."""
    node = Node(SHAPE, reserved=cpus(""))
    bare = Node(cpu_shape.Shape.of(machine(0, 1, 1, 1)), reserved=cpus(""))

    assert Refusal(allocation.NOT_WHOLE_CORES, final=True) == node.allocate(
        Request(cpus=ask(3, required=True))
    )
    assert Refusal(allocation.NO_TOPOLOGY, final=True) == bare.allocate(Request(cpus=ask(1)))


def test_exclusive_workloads_of_one_kind_repel_each_other() -> None:
    """Another kind does not."""
    held = [Holding(holder="ns/a", cpus=cpus("0"), exclusive=Exclusive.PCPU)]
    node = Node(SHAPE, reserved=cpus("4-7,12-15"), holdings=held)

    def granted(exclusive: Exclusive) -> str:
        answer = node.allocate(Request(cpus=ask(4, Bind.SPREAD, exclusive=exclusive)))
        assert isinstance(answer, Grant)
        return str(answer.cpus)

    assert granted(Exclusive.PCPU) == "1-3,9"
    assert granted(Exclusive.NONE) == "1-3,8"


@given(st.data())
def test_any_sequence_of_arrivals_and_departures_keeps_sets_apart(data: st.DataObject) -> None:
    """Grants are disjoint, inside what is free, as large as asked, and parts add up."""
    shape = cpu_shape.Shape.of(data.draw(machines))
    reserved = cpuset.CPUSet(data.draw(st.integers(0, shape.online)) & shape.online)
    holdings: list[Holding] = []
    for number in range(data.draw(st.integers(1, 12))):
        leaving = data.draw(st.integers(0, 2 * len(holdings)))
        holdings[leaving : leaving + 1] = []
        node = Node(shape, reserved=reserved, holdings=holdings)
        exclusive = data.draw(st.sampled_from(Exclusive))
        count = data.draw(st.integers(1, 6))
        request = Request(
            cpus=ask(
                count,
                data.draw(st.sampled_from(Bind)),
                required=data.draw(st.booleans()),
                exclusive=exclusive,
            ),
            numa=data.draw(st.sampled_from(numa_hints.NumaPolicy)),
        )
        answer = node.allocate(request)

        assert answer == node.allocate(request)
        if isinstance(answer, Grant):
            assert answer.cpus <= node.free
            assert count == len(answer.cpus)
            assert count * 1000 == sum(part["cpu"] for part in answer.parts.values())
            if request.numa is SINGLE:
                assert len(answer.parts) == 1
            holdings.append(Holding(holder=str(number), cpus=answer.cpus, exclusive=exclusive))
