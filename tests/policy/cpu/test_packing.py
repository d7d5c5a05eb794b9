"""Choosing CPUs from a number: the kubelet's packing, never too few, always the same."""

from __future__ import annotations

import dataclasses
import random

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.model import cpuset, topology
from koordlet.policy.cpu import packing
from tests.kit import moments, search

SERVER = moments.machine()


def taken(count: int, available: str = "0-11", machine: topology.Topology = SERVER) -> str | None:
    """The CPUs chosen, as a list."""
    chosen = packing.take(machine, cpuset.CPUSet.parse(available), count)
    return None if chosen is None else str(chosen)


@pytest.mark.parametrize(
    ("count", "chosen"),
    [
        (0, ""),
        (1, "0"),
        (2, "0,6"),
        (3, "0,2,6"),
        (6, "0,2,4,6,8,10"),
        (8, "0-2,4,6-8,10"),
        (12, "0-11"),
        (13, None),
    ],
)
def test_the_peer_s_examples(count: int, chosen: str | None) -> None:
    """Two sockets of three cores, siblings i and i+6, even CPUs first: as the peers pack them."""
    assert chosen == taken(count, machine=moments.machine(interleaved=True))


def test_nodes_come_before_sockets_where_they_hold_several() -> None:
    """Two sockets on one NUMA node, one on another: the smaller node is taken, as the kubelet does.

    A machine whose nodes are parts of its sockets is packed by sockets.
    """
    three = moments.machine(3, 2, threads=1)
    joined = dataclasses.replace(
        three, cpus=tuple(dataclasses.replace(cpu, node=cpu.cpu // 4) for cpu in three.cpus)
    )
    assert taken(2, "0-5", joined) == "4-5"
    assert taken(2, "0-5", three) == "0-1"

    split = dataclasses.replace(
        three,
        cpus=tuple(
            dataclasses.replace(cpu, socket=cpu.cpu // 4, node=cpu.cpu) for cpu in three.cpus
        ),
    )
    assert taken(3, "0-5", split) == "0,4-5"


def test_a_used_socket_is_filled_first() -> None:
    """Where one socket is partly used, its free cores go before a whole socket is broken."""
    assert taken(2, "1-11") == "1,7"


def test_single_cpus_fill_used_cores() -> None:
    """A single CPU is the free sibling of a used thread before a whole core is broken."""
    assert taken(1, "1-11") == "6"


@hypothesis.given(available=moments.sets(12), count=st.integers(0, 13))
def test_exactly_as_many_as_asked(available: cpuset.CPUSet, count: int) -> None:
    """The choice is inside what is available and has the size asked for, or there is none."""
    chosen = packing.take(SERVER, available, count)

    if count > len(available):
        assert chosen is None
    else:
        assert chosen is not None
        assert chosen <= available
        assert count == len(chosen)


@search.examples(60)
@hypothesis.given(
    available=moments.sets(12), count=st.integers(0, 12), seed=st.randoms(use_true_random=False)
)
def test_the_order_of_rows_does_not_matter(
    available: cpuset.CPUSet, count: int, seed: random.Random
) -> None:
    """The same machine gives the same choice, however its rows were listed."""
    rows = list(SERVER.cpus)
    seed.shuffle(rows)
    shuffled = dataclasses.replace(SERVER, cpus=tuple(rows))

    first, second = (packing.take(listed, available, count) for listed in (SERVER, shuffled))
    assert first == second


def test_cpus_without_a_place_are_taken_last_and_alone() -> None:
    """Where the machine does not say which core a CPU is in, each stands alone."""
    rows = tuple(topology.Cpu(cpu=n) for n in range(4))
    odd = topology.Topology(cpus=rows, online=cpuset.CPUSet.span(0, 3))

    assert taken(3, "0-3", odd) == "0-2"
