"""The nodes of a workload: the smallest set that fits, compared with a look at every set."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.policy.cpu import numa_hints
from koordlet.policy.cpu.numa_hints import Choice, NumaPolicy, Zone


def zones(*free: Mapping[str, int]) -> list[Zone]:
    """Nodes 0, 1, … with what they have left."""
    return [Zone(node=number, free=row) for number, row in enumerate(free)]


TWO = zones({"cpu": 4, "memory": 8}, {"cpu": 6, "memory": 2})


@pytest.mark.parametrize(
    ("policy", "wants", "expected"),
    [
        (NumaPolicy.NONE, {"cpu": 99}, Choice(None)),
        (NumaPolicy.SINGLE, {"cpu": 4, "memory": 8}, Choice((0,))),
        (NumaPolicy.SINGLE, {"cpu": 5}, Choice((1,))),
        (NumaPolicy.SINGLE, {"cpu": 5, "memory": 3}, None),
        # All nodes are no affinity.
        (NumaPolicy.RESTRICTED, {"cpu": 5, "memory": 3}, Choice(None)),
        (NumaPolicy.RESTRICTED, {"cpu": 11}, None),
        (NumaPolicy.BEST_EFFORT, {"cpu": 11}, Choice(None)),
        # What no node speaks of is nobody's constraint here.
        (NumaPolicy.SINGLE, {"cpu": 1, "gpu": 3}, Choice((0,))),
        (NumaPolicy.SINGLE, {}, Choice((0,))),
    ],
)
def test_policies(policy: NumaPolicy, wants: dict[str, int], expected: Choice | None) -> None:
    """Who is admitted, and to which nodes."""
    assert numa_hints.choose(TWO, wants, policy) == expected


def test_of_equal_sets_the_one_of_the_lowest_bitmap_is_taken() -> None:
    """As the kubelet compares them; -1, which is no node, has no bit."""
    alike = [Zone(node=number, free={"cpu": 4}) for number in (-1, 3, 70)]

    assert numa_hints.choose(alike, {"cpu": 4}, NumaPolicy.SINGLE) == Choice((-1,))
    assert numa_hints.choose(alike, {"cpu": 8}, NumaPolicy.RESTRICTED) == Choice((-1, 3))


def test_what_a_set_needs_in_sum_may_be_lacking_in_a_member() -> None:
    """Devices on node 1 alone, CPUs of both; nowhere where the sum is too little."""
    taste = numa_hints.Taste(needed={"gpu": 2}, given={1: {"gpu": 2}})
    three = zones({"cpu": 4}, {"cpu": 4}, {"cpu": 4})
    few = numa_hints.choose(three, {"cpu": 4}, NumaPolicy.SINGLE, taste=taste)
    many = numa_hints.choose(three, {"cpu": 6}, NumaPolicy.RESTRICTED, taste=taste)
    assert (few, many) == (Choice((1,)), Choice((0, 1)))
    none = numa_hints.Taste(needed={"gpu": 3}, given={1: {"gpu": 2}})
    assert numa_hints.choose(three, {"cpu": 4}, NumaPolicy.RESTRICTED, taste=none) is None


def test_a_set_that_does_not_serve_is_passed_over() -> None:
    """However well its amounts fit."""
    taste = numa_hints.Taste(serves=lambda nodes: 2 in nodes)
    three = zones({"cpu": 4}, {"cpu": 4}, {"cpu": 4})
    assert numa_hints.choose(three, {"cpu": 4}, NumaPolicy.SINGLE, taste=taste) == Choice((2,))


def test_near_nodes_are_taken_together() -> None:
    """Of two nodes that fit, the pair with the smaller distance; then the smaller numbers."""
    four = zones(*({"cpu": 2} for _ in range(4)))
    near = {frozenset((1, 2)): 11}

    def far(node: int, other: int) -> int:
        return near.get(frozenset((node, other)), 20)

    assert Choice((1, 2)) == numa_hints.choose(four, {"cpu": 4}, NumaPolicy.RESTRICTED, far=far)
    assert Choice((0, 1)) == numa_hints.choose(four, {"cpu": 4}, NumaPolicy.RESTRICTED)


def test_a_higher_score_wins_among_equal_sizes() -> None:
    """The caller's score stands above distance and number."""
    taste = numa_hints.Taste(score=lambda nodes: int(nodes == (1,)))

    assert Choice((1,)) == numa_hints.choose(TWO, {"cpu": 1}, NumaPolicy.BEST_EFFORT, taste=taste)


def test_a_set_that_is_barred() -> None:
    """SingleNUMANode has no other, Restricted a larger one, BestEffort takes it if need be."""
    three = zones({"cpu": 2}, {"cpu": 2}, {"cpu": 2})
    taste = numa_hints.Taste(barred=lambda nodes: len(nodes) == 1)

    assert numa_hints.choose(three, {"cpu": 1}, NumaPolicy.SINGLE, taste=taste) is None
    choice = numa_hints.choose(three, {"cpu": 1}, NumaPolicy.RESTRICTED, taste=taste)
    assert Choice((0, 1)) == choice
    assert Choice((0,)) == numa_hints.choose(three, {"cpu": 1}, NumaPolicy.BEST_EFFORT, taste=taste)
    first = numa_hints.Taste(barred=lambda nodes: nodes == (0,))
    assert Choice((1,)) == numa_hints.choose(three, {"cpu": 1}, NumaPolicy.BEST_EFFORT, taste=first)


def test_many_nodes_are_not_enumerated() -> None:
    """64 nodes of which 32 are needed: an answer after a bounded number of steps."""
    many = zones(*({"cpu": 1, "memory": 1 + number % 3} for number in range(64)))

    chosen = numa_hints.choose(many, {"cpu": 32, "memory": 40}, NumaPolicy.RESTRICTED)

    assert chosen is not None
    assert chosen.nodes is not None
    assert len(chosen.nodes) == 32


def test_quantities_are_split_evenly_in_their_unit() -> None:
    """The poorest gives what it can, never more than the others; bound CPUs come in whole ones."""
    free = zones({"cpu": 1000, "memory": 7}, {"cpu": 8000, "memory": 7})
    wants = {"cpu": 4000, "memory": 9}

    assert numa_hints.split(free, (0, 1), wants, {"cpu": 1000}) == {
        0: {"cpu": 1000, "memory": 4},
        1: {"cpu": 3000, "memory": 5},
    }
    assert numa_hints.split(free, (0,), wants, {}) is None


rows = st.lists(
    st.fixed_dictionaries({"cpu": st.integers(0, 4), "memory": st.integers(0, 4)}),
    min_size=1,
    max_size=6,
)
asks = st.fixed_dictionaries({"cpu": st.integers(0, 12), "memory": st.integers(0, 12)})


def smallest(free: Sequence[Mapping[str, int]], wants: Mapping[str, int]) -> int | None:
    """The size of the smallest set that fits, by looking at all."""
    asked = {name: much for name, much in wants.items() if much}
    for size in range(1, len(free) + 1):
        for members in itertools.combinations(free, size):
            if all(
                all(zone[name] for zone in members) and sum(zone[name] for zone in members) >= much
                for name, much in asked.items()
            ):
                return size
    return None


@given(rows, asks)
def test_the_choice_is_the_smallest_that_fits(
    free: list[dict[str, int]], wants: dict[str, int]
) -> None:
    """As many nodes as a look at every set finds, and they do fit."""
    size = smallest(free, wants)
    chosen = numa_hints.choose(zones(*free), wants, NumaPolicy.RESTRICTED)

    if size is None:
        assert chosen is None
    else:
        assert chosen is not None
        nodes = chosen.nodes or tuple(range(len(free)))
        assert size == len(nodes)
        assert numa_hints.split(zones(*free), nodes, wants, {}) is not None
