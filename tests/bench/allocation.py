"""The CPUs of one workload on a machine of 256 CPUs and 8 NUMA nodes, against 1 ms.

Covers: the slowest of all policies, on a machine that is partly taken.
Does not cover: what a pass does with the answer.
"""

from __future__ import annotations

import itertools
import time

from koordlet.model import cpuset
from koordlet.policy.cpu import accumulator, allocation, numa_hints
from koordlet.policy.cpu import shape as cpu_shape
from tests.bench import gate, pace
from tests.policy.cpu.test_accumulator import machine

LIMIT = 0.001
_REPEATS = 7


def slowest() -> gate.Ratio:
    """The slowest request, the best of several tries of each."""
    node = _node()
    spent = {
        request: pace.budget(
            LIMIT, ((_seconds(node, request), pace.work()) for _ in range(_REPEATS))
        )
        for request in _asks()
    }
    worst = max(spent, key=lambda request: spent[request][0] / spent[request][1])
    print(
        f"     allocation: the slowest asks for {worst[0]} CPUs, {worst[1].value} {worst[2].name}"
    )
    return gate.Ratio(
        name="allocation.slowest",
        ours=spent[worst][0],
        reference=spent[worst][1],
        limit=1.0,
        unit="CPU s",
        against="1 ms",
    )


Ask = tuple[int, accumulator.Bind, numa_hints.NumaPolicy]


def _asks() -> list[Ask]:
    return list(itertools.product((2, 16, 40, 100), accumulator.Bind, numa_hints.NumaPolicy))


def _node() -> allocation.Node:
    shape = cpu_shape.Shape.of(machine(2, 4, 16, 2, l3=2))
    reserved = cpuset.CPUSet.parse("0,128")
    holdings: list[allocation.Holding] = []
    for number, count in enumerate((2, 8, 3, 4) * 3):
        node = allocation.Node(shape, reserved=reserved, holdings=holdings)
        answer = node.allocate(allocation.Request(cpus=accumulator.Request(count=count)))
        assert isinstance(answer, allocation.Grant)
        holdings.append(allocation.Holding(holder=str(number), cpus=answer.cpus))
    return allocation.Node(shape, reserved=reserved, holdings=holdings)


def _seconds(node: allocation.Node, ask: Ask) -> float:
    count, bind, numa = ask
    cpus = accumulator.Request(
        count=count, bind=bind, required=True, exclusive=accumulator.Exclusive.PCPU
    )
    request = allocation.Request(cpus=cpus, numa=numa)
    began = time.process_time()
    node.allocate(request)
    return time.process_time() - began
