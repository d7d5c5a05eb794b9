"""Nested boxes on a plane: who stands where, and how large.

Covers: sizes from labels and cells, rows of boxes that come near to a pleasant shape, stretching.
Does not cover: what the boxes are (``report.topology_boxes``), drawing (``report.topology_svg``).

Rules:
1. A box is its label, then its cells, then its sections, one below the other. A section is a grid.
2. Of the largest section the grid is the one that comes nearest to ``SHAPE``, the one with fewer
   columns in a tie; the others have as many columns as fit below it.
3. Boxes of one row have one height, of one column one width; a section fills its box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from koordlet.model.record import dataclass

#: Width to height of a grid that pleases.
SHAPE = 1.7
PAD, GAP, LINE = 8.0, 6.0, 15.0
#: A wide font at 11 px; a narrower one leaves room.
_LETTER = 6.7
_MAX_COLUMNS = 48
#: A CPU with its number, and one without.
CELL, SMALL = (30.0, 20.0), (9.0, 9.0)
_CELL_GAP = 3.0
_SMALL_GAP = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One CPU."""

    text: str
    classes: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One part of the machine. The first line of the label is its name."""

    kind: str
    label: tuple[str, ...] = ()
    title: str = ""
    sections: tuple[tuple[Box, ...], ...] = ()
    #: Strips of CPUs that belong together stand side by side, the members of one on each other.
    strips: tuple[tuple[Cell, ...], ...] = ()
    small: bool = False
    #: Strips in a row.
    columns: int = 1


@dataclass(frozen=True, slots=True)
class BoxPosition:
    """Position of a box or cell."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedBox:
    """A positioned box with its content."""

    box: Box
    at: BoxPosition
    label: tuple[tuple[float, float, str], ...]
    cells: tuple[tuple[BoxPosition, Cell], ...]
    inside: tuple[PlacedBox, ...]


@dataclass(frozen=True, slots=True)
class _Grid:
    """A section with its columns chosen."""

    members: tuple[_Sized, ...]
    widths: tuple[float, ...]
    heights: tuple[float, ...]

    @property
    def size(self) -> tuple[float, float]:
        width = sum(self.widths) + GAP * (len(self.widths) - 1)
        return width, sum(self.heights) + GAP * (len(self.heights) - 1)


@dataclass(frozen=True, slots=True)
class _Sized:
    """A box with the room that it needs."""

    box: Box
    width: float
    height: float
    grids: tuple[_Grid, ...]


def place(box: Box, x: float = 0.0, y: float = 0.0) -> PlacedBox:
    """The box with its upper left corner there, no larger than it must be."""
    sized = _measure(box)
    return _put(sized, BoxPosition(x, y, sized.width, sized.height))


def width_of(text: str) -> float:
    """Room for a line of text."""
    return _LETTER * len(text)


# How large --------------------------------------------------------------------------------------


def _measure(box: Box) -> _Sized:
    grids = _grids([[_measure(inner) for inner in section] for section in box.sections if section])
    cells = _cells_size(box)
    parts = [cells, *(grid.size for grid in grids)]
    if box.label:
        widest = max(width_of(line) for line in box.label)
        parts.insert(0, (widest, LINE * len(box.label)))
    parts = [part for part in parts if part[1] > 0]
    width = max((part[0] for part in parts), default=0.0) + 2 * PAD
    height = sum(part[1] for part in parts) + GAP * max(len(parts) - 1, 0) + 2 * PAD
    return _Sized(box, width, height, grids)


def _cells_size(box: Box) -> tuple[float, float]:
    if not box.strips:
        return 0.0, 0.0
    (width, height), gap = _cell(box)
    tall = max(len(strip) for strip in box.strips)
    rows = math.ceil(len(box.strips) / box.columns)
    columns = min(box.columns, len(box.strips))
    return columns * (width + gap) - gap, rows * (tall * (height + gap) + gap) - 2 * gap


def _cell(box: Box) -> tuple[tuple[float, float], float]:
    if box.small:
        return SMALL, _SMALL_GAP
    widest = max((len(cell.text) for strip in box.strips for cell in strip), default=0)
    return (max(CELL[0], widest * 7.5 + 8), CELL[1]), _CELL_GAP


def _grids(sections: Sequence[Sequence[_Sized]]) -> tuple[_Grid, ...]:
    """The largest section has the shape that it likes, the others use its width."""
    if not sections:
        return ()
    areas = [sum(member.width * member.height for member in members) for members in sections]
    largest = areas.index(max(areas))
    main = min(_choices(sections[largest]), key=_ugliness)
    grids = []
    for members in sections:
        first, *wider = _choices(members)
        fitting = [first, *(grid for grid in wider if grid.size[0] <= main.size[0])]
        grids.append(max(fitting, key=lambda grid: len(grid.widths)))
    return (*grids[:largest], main, *grids[largest + 1 :])


def _choices(members: Sequence[_Sized]) -> Iterator[_Grid]:
    """The section with one column, with two, and so on."""
    for count in range(1, min(len(members), _MAX_COLUMNS) + 1):
        rows = [members[start : start + count] for start in range(0, len(members), count)]
        widths = [max(member.width for member in members[column::count]) for column in range(count)]
        heights = [max(member.height for member in row) for row in rows]
        yield _Grid(tuple(members), tuple(widths), tuple(heights))


def _ugliness(grid: _Grid) -> float:
    width, height = grid.size
    holes = len(grid.widths) * len(grid.heights) - len(grid.members)
    return abs(math.log(width / height / SHAPE)) + 0.8 * holes / len(grid.widths)


# Where ------------------------------------------------------------------------------------------


def _put(sized: _Sized, at: BoxPosition) -> PlacedBox:
    x, y = at.x + PAD, at.y + PAD
    room = at.width - 2 * PAD
    label = tuple(
        (x, y + LINE * number + LINE * 0.75, line) for number, line in enumerate(sized.box.label)
    )
    y += LINE * len(label) + (GAP if label else 0.0)
    cells = tuple(_put_cells(sized.box, x, y, room))
    if cells:
        y += _cells_size(sized.box)[1] + GAP
    inside: list[PlacedBox] = []
    for grid in sized.grids:
        inside.extend(_put_grid(grid, x, y, room))
        y += grid.size[1] + GAP
    return PlacedBox(box=sized.box, at=at, label=label, cells=cells, inside=tuple(inside))


def _put_cells(box: Box, x: float, y: float, room: float) -> Iterator[tuple[BoxPosition, Cell]]:
    if not box.strips:
        return
    (width, height), gap = _cell(box)
    if box.small:
        width = min(2 * width, room / min(box.columns, len(box.strips)) - gap)
    tall = max(len(strip) for strip in box.strips) * (height + gap) + gap
    for number, strip in enumerate(box.strips):
        left = x + (number % box.columns) * (width + gap)
        top = y + (number // box.columns) * tall
        for level, cell in enumerate(strip):
            yield BoxPosition(left, top + level * (height + gap), width, height), cell


def _put_grid(grid: _Grid, x: float, y: float, room: float) -> Iterator[PlacedBox]:
    count = len(grid.widths)
    more = max(0.0, room - grid.size[0]) / count
    lefts = [x + sum(grid.widths[:column]) + (GAP + more) * column for column in range(count)]
    tops = [y + sum(grid.heights[:row]) + GAP * row for row in range(len(grid.heights))]
    for number, member in enumerate(grid.members):
        column, row = number % count, number // count
        width, height = grid.widths[column] + more, grid.heights[row]
        yield _put(member, BoxPosition(lefts[column], tops[row], width, height))
