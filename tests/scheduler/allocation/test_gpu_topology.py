"""The smallest part of a node's GPUs that serves a pod."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.scheduler.allocation import gpu_topology
from koordlet.scheduler.allocation.gpu_topology import ScopeSearch

#: Eight GPUs, four switches, two NUMA nodes.
PLACES = [(minor, minor // 4, str(minor // 2)) for minor in range(8)]
TREE = gpu_topology.tree(PLACES)
assert TREE is not None


def chosen(
    count: int,
    used: Iterable[int] = (),
    *,
    scope: str = "",
    scores: dict[int, int] | None = None,
    preferred: Iterable[int] = (),
) -> list[int]:
    """The minors that a pod gets; ``scores``: it wants a share, of these."""
    assert TREE is not None
    taken = set(used)
    able = scores or dict.fromkeys(set(range(8)) - taken, 0)
    result = ScopeSearch(
        count=count,
        level=gpu_topology.SCOPES.get(scope, 0),
        shared=scores is not None,
        able=able,
        used=taken,
        preferred=set(preferred),
    ).best(TREE)
    return [] if result is None else list(result.minors)


@pytest.mark.parametrize(
    ("used", "count", "minors"),
    [
        ([], 1, [0]),
        ([], 2, [0, 1]),
        ([], 3, [0, 1, 2]),
        ([], 4, [0, 1, 2, 3]),
        ([], 8, [0, 1, 2, 3, 4, 5, 6, 7]),
        # Fragments after 1 + 1: the broken switch, then the switch beside it.
        ([0], 1, [1]),
        ([0], 2, [2, 3]),
        ([5], 1, [4]),
        ([5], 2, [6, 7]),
        ([0, 4], 1, [1]),
        ([0], 4, [4, 5, 6, 7]),
        ([0, 4], 4, [1, 2, 3, 5]),
        ([0, 2], 2, [4, 5]),
        ([0, 2, 4, 6], 2, [1, 3]),
        ([0, 1, 2, 3, 4], 4, []),
    ],
)
def test_whole_gpus_come_from_the_deepest_part_and_what_is_broken_first(
    used: list[int], count: int, minors: list[int]
) -> None:
    """A switch before a NUMA node before the node."""
    assert chosen(count, used) == minors


@pytest.mark.parametrize(
    ("used", "count", "scope", "minors"),
    [
        ([0, 2], 2, "PCIe", [4, 5]),
        ([0, 2, 4, 6], 2, "PCIe", []),
        ([0, 2, 4, 6], 2, "NUMANode", [1, 3]),
        ([0, 1, 2, 4, 5, 6], 2, "NUMANode", []),
        ([0, 1, 2, 4, 5, 6], 2, "Node", [3, 7]),
        ([], 3, "PCIe", []),
        ([], 5, "NUMANode", []),
        ([], 1, "Device", [0]),
        ([], 2, "Device", []),
    ],
)
def test_a_required_scope_is_never_left(
    used: list[int], count: int, scope: str, minors: list[int]
) -> None:
    """One GPU is always within one device; two never are."""
    assert chosen(count, used, scope=scope) == minors


def test_a_share_takes_the_best_gpu_of_the_part_that_is_in_use() -> None:
    """By score inside a part, the lowest of equals; parts in use before others."""
    assert chosen(1, [2], scores={0: 90, 1: 90, 2: 10, 3: 50}) == [3]
    assert chosen(1, scores={0: 10, 1: 90, 6: 90}) == [1]


def test_gpus_that_are_kept_for_the_pod_decide_between_parts_of_one_depth() -> None:
    """They come before what is in use."""
    assert chosen(1, [0], preferred=[6]) == [6]
    assert chosen(2, [0], preferred=[6, 7]) == [6, 7]


def test_no_gpus_have_no_tree() -> None:
    """A node without any."""
    assert gpu_topology.tree([]) is None


@given(st.sets(st.integers(0, 7)), st.integers(1, 8))
def test_a_pod_is_served_wherever_enough_is_free(used: set[int], count: int) -> None:
    """Without a required scope; and by a switch or a NUMA node where one suffices."""
    free = set(range(8)) - used
    minors = set(chosen(count, used))
    assert len(minors) == (count if len(free) >= count else 0)
    assert minors <= free
    for part in ({0, 1}, {2, 3}, {4, 5}, {6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}):
        if len(part & free) >= count:
            size = len(part)
            assert any(minors <= set(range(at, at + size)) for at in range(0, 8, size))
            break
