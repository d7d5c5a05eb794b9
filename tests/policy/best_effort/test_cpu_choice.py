"""Which CPUs best-effort work gets: pairs over NUMA nodes in turn, then single ones."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.model import cpuset
from koordlet.policy.best_effort import cpu_choice
from tests.kit import moments, steps

#: Two sockets of four cores with two threads: CPUs n and n+8 are one core.
SIXTEEN = moments.machine(2, 4)


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (1, (0,)),
        (2, (0, 8)),
        (3, (0, 8, 4)),
        (4, (0, 8, 4, 12)),
        (5, (0, 8, 4, 12, 1)),
        (6, (0, 8, 4, 12, 1, 9)),
        (17, ()),
        (0, ()),
        (-3, ()),
    ],
)
def test_the_order_of_the_choice(wanted: int, chosen: tuple[int, ...]) -> None:
    """A pair of each node in turn; a single one comes from the node where that stopped."""
    assert chosen == cpu_choice.pick(SIXTEEN, SIXTEEN.online, wanted)


def test_the_larger_node_gives_first() -> None:
    """Buckets by size; single threads where no core has both."""
    pool = cpuset.CPUSet.parse("0,4-6,12")

    assert cpu_choice.pick(SIXTEEN, pool, 4) == (4, 12, 5, 0)


def test_reserved_cpus_are_shared_in_proportion() -> None:
    """Of four CPUs, one comes from LSR workloads when they hold a quarter of all."""
    lsr = cpuset.CPUSet.parse("0-1,8-9")
    chosen = cpu_choice.choose(SIXTEEN, 4, SIXTEEN.online - lsr, lsr)

    assert (len(chosen & lsr), len(chosen)) == (1, 4)


def test_no_pool_no_choice() -> None:
    """Nothing is divided by nothing."""
    assert not cpu_choice.choose(SIXTEEN, 4, cpuset.CPUSet(), cpuset.CPUSet())


def test_a_pool_with_cpus_that_are_not_there() -> None:
    """CPUs that are offline or never were cannot be had: no choice, and no search without end."""
    pool = cpuset.CPUSet.span(8, 23)

    assert cpu_choice.pick(SIXTEEN, pool, 9) == ()
    assert len(cpu_choice.pick(SIXTEEN, pool, 8)) == 8


def test_a_large_machine_costs_in_proportion() -> None:
    """Eight times the CPUs are about eight times the work: the fast lane asks for all of them."""

    def cost(cores: int) -> int:
        machine = moments.machine(1, cores, threads=1)
        assert cores == len(cpu_choice.pick(machine, machine.online, cores))
        return steps.lines(lambda: cpu_choice.pick(machine, machine.online, cores))

    assert cost(4096) < 9 * cost(512)


@hypothesis.given(pool=moments.sets(16), wanted=st.integers(0, 20))
def test_a_choice_is_exact_or_empty(pool: cpuset.CPUSet, wanted: int) -> None:
    """So many different CPUs of the pool, or none where it has fewer."""
    chosen = cpu_choice.pick(SIXTEEN, pool, wanted)

    assert len(chosen) == (wanted if wanted <= len(pool) else 0)
    assert len(set(chosen)) == len(chosen)
    assert cpuset.CPUSet.of(chosen) <= pool
