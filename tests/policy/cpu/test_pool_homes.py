"""Workloads that want the pool of few NUMA nodes get it, stay there, and do not crowd one."""

from __future__ import annotations

from typing import Any

import hypothesis
from hypothesis import strategies as st

from koordlet.model import pod, resources, wishes
from koordlet.policy.cpu import pool_homes
from tests.kit import moments


def wanting(name: str, cpus: float, **more: Any) -> pod.Pod:
    """A workload that wants a shared pool of this size near itself."""
    wish = wishes.Wishes(binding=wishes.Binding(required="ConstrainedBurst"), **more)
    return moments.workload(name, limits={resources.CPU: int(cpus * 1000)}, wishes=wish)


def test_the_fewest_nodes_that_suffice() -> None:
    """One node where its pool is large enough, the emptier one first; several where not."""
    pods = [wanting("a", 3), wanting("b", 3), wanting("c", 7), wanting("d", 99)]

    assert pool_homes.find(pods[:2], {0: 4, 1: 4}, {}) == {"uid-a": (0,), "uid-b": (1,)}
    assert pool_homes.find(pods[2:], {0: 4, 1: 4}, {}) == {}
    assert pool_homes.find([pods[2]], {0: 4, 1: 2, 2: 4}, {}) == {"uid-c": (0, 2)}


def test_who_wants_nothing() -> None:
    """No bind policy, a scheduler's decision, or no amount: there is no home."""
    decided = wishes.Grant(numa=(wishes.NumaShare(node=0, resources={"cpu": 1000}),))
    pods = [moments.workload("a"), wanting("b", 0), wanting("c", 1, grant=decided)]

    assert pool_homes.find(pods, {0: 4}, {}) == {}


def test_a_home_stays_while_it_is_large_enough() -> None:
    """Others that come do not move it; a pool that shrank does."""
    settled = wanting("a", 3)

    assert pool_homes.find([settled], {0: 9, 1: 3}, {"uid-a": (1,)}) == {"uid-a": (1,)}
    assert pool_homes.find([settled], {0: 9, 1: 2}, {"uid-a": (1,)}) == {"uid-a": (0,)}


@hypothesis.given(
    sizes=st.dictionaries(st.integers(0, 7), st.integers(0, 16), min_size=1),
    amounts=st.lists(st.floats(0, 20), max_size=5),
)
def test_a_home_is_large_enough(sizes: dict[int, int], amounts: list[float]) -> None:
    """Whoever has a home could use its limit there if it were alone."""
    pods = [wanting(f"w{number}", amount) for number, amount in enumerate(amounts)]
    homes = pool_homes.find(pods, sizes, {})
    for workload in pods:
        home = homes.get(workload.uid)
        if home:
            assert sum(sizes[node] for node in home) * 1000 >= workload.limits[resources.CPU]
