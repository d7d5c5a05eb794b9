"""Groups of GPUs: tables that are read, and the group that a pod gets."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from koordlet.scheduler.allocation import gpu_partitions
from koordlet.scheduler.allocation.gpu_partitions import (
    GPUPartition,
    PartitionChoice,
    PartitionSpec,
)

EIGHT = frozenset(range(8))


def hopper() -> gpu_partitions.PartitionTable:
    """The table that everybody knows."""
    table = gpu_partitions.of_model("", "H100")
    assert table is not None
    return table


def chosen(
    count: int,
    used: set[int],
    table: gpu_partitions.PartitionTable | None = None,
    *,
    spec: PartitionSpec = gpu_partitions.ANY,
    preferred: frozenset[int] = frozenset(),
) -> Any:
    """The minors that a pod gets of eight GPUs, or why none."""
    choice = PartitionChoice(count, EIGHT - used, used, preferred)
    answer = choice.of(hopper() if table is None else table, spec)
    return answer if isinstance(answer, str) else sorted(answer)


@pytest.mark.parametrize(
    ("used", "count", "minors"),
    [
        (set(), 1, [0]),
        (set(), 2, [0, 1]),
        (set(), 4, [0, 1, 2, 3]),
        (set(), 8, [0, 1, 2, 3, 4, 5, 6, 7]),
        # The half that is broken already, and in it the pair.
        ({4}, 1, [5]),
        ({4}, 2, [6, 7]),
        ({4}, 4, [0, 1, 2, 3]),
        ({4, 6}, 1, [5]),
        ({0, 4, 6}, 2, [2, 3]),
        ({0, 2, 4, 6}, 1, [1]),
    ],
)
def test_a_group_leaves_as_many_larger_groups_whole_as_can_be(
    used: set[int], count: int, minors: list[int]
) -> None:
    """Eight count more than four, four more than two; the lowest first minor of equals."""
    assert chosen(count, used) == minors


@pytest.mark.parametrize(
    ("used", "count"), [({0}, 8), ({0, 4}, 4), ({0, 2, 4, 6}, 2), (set(EIGHT), 1)]
)
def test_a_group_is_whole_or_not_given(used: set[int], count: int) -> None:
    """Enough GPUs that make no group are not enough."""
    assert chosen(count, used) == "Insufficient Partitioned GPU Devices"


def test_messages_tell_a_missing_table_from_a_missing_number() -> None:
    """Neither is mended by pods that go."""
    answer = PartitionChoice(1, EIGHT, set(), set()).of(None, gpu_partitions.ANY)
    assert answer == "node(s) missing GPU Partition Table"
    assert chosen(3, set()) == "node(s) Unsupported number of GPU requests"


RANKED = gpu_partitions.read(
    json.dumps(
        {
            "2": [
                {"minors": [0, 1], "allocationScore": 1, "ringBusBandwidth": "100Gi"},
                {"minors": [2, 3], "allocationScore": 3, "ringBusBandwidth": "200Gi"},
                {"minors": [4, 5], "allocationScore": 3},
                {"Minors": [6, 7], "AllocationScore": 2, "RingBusBandwidth": "400G"},
            ]
        }
    )
)


@pytest.mark.parametrize(
    ("used", "spec", "minors"),
    [
        (set(), PartitionSpec(), [2, 3]),
        ({2}, PartitionSpec(), [4, 5]),
        ({2, 4}, PartitionSpec(), [6, 7]),
        ({2, 4, 6}, PartitionSpec(), [0, 1]),
        ({2}, PartitionSpec(restricted=True), [4, 5]),
        ({2, 4}, PartitionSpec(restricted=True), "Insufficient Partitioned GPU Devices"),
        ({2}, PartitionSpec(bandwidth=Fraction(2**30)), [6, 7]),
        (set(), PartitionSpec(bandwidth=Fraction(300 * 2**30)), [6, 7]),
        (set(), PartitionSpec(bandwidth=Fraction(10**12)), "Insufficient Partitioned GPU Devices"),
    ],
)
def test_the_highest_score_comes_first_and_restricted_means_that_alone(
    used: set[int], spec: PartitionSpec, minors: Any
) -> None:
    """A pod that asks for bandwidth gets a group that states as much."""
    assert chosen(2, used, RANKED, spec=spec) == minors


def test_a_group_of_devices_that_are_kept_for_the_pod_comes_first() -> None:
    """Whatever else would stay whole; their score still comes before."""
    assert chosen(2, set(), preferred=frozenset({6, 7})) == [6, 7]
    assert chosen(2, set(), RANKED, preferred=frozenset({0, 1})) == [2, 3]


def test_minors_beyond_a_machine_word_are_minors_like_others() -> None:
    """Nothing is shifted out of a number."""
    table = gpu_partitions.read('{"1": [{"minors": [64]}, {"minors": [0]}]}')
    answer = PartitionChoice(1, {0, 64}, {0}, set()).of(table, gpu_partitions.ANY)
    assert answer == frozenset({64})


@pytest.mark.parametrize(
    ("vendor", "model", "known"),
    [
        ("", "H100", True),
        ("nvidia", "H800", True),
        ("nvidia", "H20", True),
        ("huawei", "H20", False),
        ("", "A100", False),
        ("", "", False),
    ],
)
def test_hopper_machines_have_a_table_by_their_labels(
    vendor: str, model: str, *, known: bool
) -> None:
    """By the labels of their node, where no agent writes one."""
    assert (gpu_partitions.of_model(vendor, model) is not None) is known


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "[]",
        "{",
        '{"two": []}',
        '{"2": 7}',
        '{"1": [{"minors": ["a"]}]}',
        '{"1": [{"minors": 1}]}',
        '{"1": [{"minors": [true]}]}',
        '{"1": [{"minors": [[0]]}]}',
        '{"1": [{"minors": [0], "allocationScore": "x"}]}',
        '{"1": [{"minors": [0], "ringBusBandwidth": "fast"}]}',
    ],
)
def test_a_table_that_cannot_be_read_is_no_table(text: Any) -> None:
    """All of it: half a table would give groups that are none."""
    assert gpu_partitions.read(text) is None


def test_a_group_of_another_size_than_it_is_listed_under_is_left_out() -> None:
    """Two GPUs asked for are never three."""
    table = gpu_partitions.read('{"2": [{"minors": [0, 1, 2]}, {"minors": [3, 4]}], "0": [{}]}')
    assert table == {2: ((GPUPartition(frozenset({3, 4}), 0),),)}
