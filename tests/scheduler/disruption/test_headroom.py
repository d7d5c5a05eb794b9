"""Entries of room that is to be kept ahead: sizes, nodes, and what is wrong with a bad one."""

from __future__ import annotations

import re

import pytest

from koordlet.scheduler.disruption import headroom
from koordlet.scheduler.disruption.headroom import Headroom


def test_entries_are_sizes_and_numbers_of_nodes() -> None:
    """One node where nothing is said; a resource of a domain, too; nothing of 0."""
    assert headroom.read(
        [
            {"cpu": 8, "memory": "32Gi", "nodes": 3},
            {"cpu": "500m", "example.com/gpu": 1, "memory": 0},
        ]
    ) == (
        Headroom({"cpu": 8000, "memory": 32 << 30}, 3),
        Headroom({"cpu": 500, "example.com/gpu": 1}, 1),
    )
    assert headroom.read([]) == ()


def test_a_size_is_one_word_that_does_not_depend_on_how_it_was_written() -> None:
    """As people and metrics have it."""
    sizes = [
        headroom.size(body)
        for body in ({"memory": "32768Mi", "cpu": 8}, {"cpu": "8000m", "memory": "32Gi"})
    ]
    assert {headroom.spelled(size) for size in sizes} == {"cpu=8,memory=32Gi"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"cpu": 8}, "expected a list"),
        ([8], "expected an object, found 8"),
        ([{"nodes": 1}], "a size needs an amount above 0"),
        ([{"cpu": 0}], "a size needs an amount above 0"),
        ([{"cpu": "much"}], "size.cpu: "),
        ([{"cpu": True}], "size.cpu is not a quantity: found bool"),
        ([{"cpu": -1}], "size.cpu is negative"),
        ([{"cpus": 1}], "'cpus' is no resource; cpu, memory, ephemeral-storage"),
        ([{"cpu": 1, "nodes": 0}], "nodes: expected 1 to 1000, found 0"),
        ([{"cpu": 1, "nodes": "all"}], "nodes: expected a whole number"),
        ([{"cpu": 1}, {"cpu": "1000m", "nodes": 2}], "cpu=1 is there twice"),
        ([{"cpu": n} for n in range(1, 10)], "at most 8 entries, found 9"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(value: object, words: str) -> None:
    """A size that is misspelled would keep nothing."""
    with pytest.raises(ValueError, match=re.escape(words)):
        headroom.read(value)
