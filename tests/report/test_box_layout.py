"""Boxes stand inside of each other, never on each other, and have room for what they say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.report import box_layout, topology_boxes
from tests.kit import large_machines, machines
from tests.kit.topologies import discover

LEAF = st.builds(
    box_layout.Box,
    kind=st.just("leaf"),
    label=st.lists(st.text("abc ", max_size=30), max_size=3).map(tuple),
)


def tree(below: st.SearchStrategy[box_layout.Box]) -> st.SearchStrategy[box_layout.Box]:
    """Boxes with sections of boxes."""
    sections = st.lists(st.lists(below, max_size=7).map(tuple), max_size=3).map(tuple)
    return st.builds(box_layout.Box, kind=st.just("box"), sections=sections)


def boxes_of(box: box_layout.PlacedBox) -> Iterator[box_layout.PlacedBox]:
    """The box and all in it."""
    yield box
    for below in box.inside:
        yield from boxes_of(below)


def within(inner: box_layout.BoxPosition, outer: box_layout.BoxPosition) -> bool:
    """Whether one place is inside of another, rounding aside."""
    near = 1e-6
    return (
        inner.x >= outer.x - near
        and inner.y >= outer.y - near
        and inner.x + inner.width <= outer.x + outer.width + near
        and inner.y + inner.height <= outer.y + outer.height + near
    )


def apart(first: box_layout.BoxPosition, second: box_layout.BoxPosition) -> bool:
    """Whether two places share no point, rounding aside."""
    near = 1e-6
    return (
        first.x + first.width <= second.x + near
        or second.x + second.width <= first.x + near
        or first.y + first.height <= second.y + near
        or second.y + second.height <= first.y + near
    )


def check(placed: box_layout.PlacedBox) -> None:
    """All that must hold of any layout."""
    for box in boxes_of(placed):
        parts = [below.at for below in box.inside] + [at for at, _ in box.cells]
        assert all(within(part, box.at) for part in parts)
        if len(parts) <= 64:
            assert all(apart(a, b) for a, b in combinations(parts, 2))
        for x, y, line in box.label:
            assert x + box_layout.width_of(line) <= box.at.x + box.at.width
            assert box.at.y < y < box.at.y + box.at.height
            assert all(part.y >= y for part in parts)


@given(st.recursive(LEAF, tree, max_leaves=40))
def test_nothing_overlaps(box: box_layout.Box) -> None:
    """Whatever the boxes, they are inside of their box and apart from each other."""
    check(box_layout.place(box))


@pytest.mark.parametrize("name", machines.SHAPES)
def test_machines(name: str) -> None:
    """The boxes of our machines stand right, down to the CPUs."""
    check(box_layout.place(topology_boxes.build(discover(machines.SHAPES[name]()), {})))


@pytest.mark.parametrize("count", [256, 2048])
def test_large_machine_has_a_pleasant_shape(count: int) -> None:
    """A large machine fits a page: neither a ribbon nor a tower."""
    placed = box_layout.place(topology_boxes.build(discover(large_machines.large(count)), {}))

    check(placed)
    assert 0.5 < placed.at.width / placed.at.height < 3


def test_row_has_one_height() -> None:
    """Boxes side by side are equally high, and fill the width."""
    low, high = (box_layout.Box(kind="x", label=("a",) * lines) for lines in (1, 5))
    wide = box_layout.Box(kind="x", label=("w" * 60,))

    placed = box_layout.place(box_layout.Box(kind="y", sections=((wide,), (low, high))))

    first, second, third = placed.inside
    assert second.at.height == third.at.height
    assert first.at.x + first.at.width == pytest.approx(third.at.x + third.at.width)
