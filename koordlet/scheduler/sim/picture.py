"""The requested share of each node, as an SVG of the whole cluster.

Covers: a self-contained SVG for light and dark: bars with names and numbers for some nodes, a cell
for each node of many. Does not cover: deciding.

Rules:
1. Every node is drawn, whatever their number, and none twice.
2. A cell has the colour of the resource that is fullest; pointing at it names node and shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

import numpy as np

from koordlet.scheduler.cluster.columns import FIXED, Columns

_NAMES = ("cpu", "memory", "pods")
_ROWS = [FIXED.index(name) for name in _NAMES]
_COLORS = {"cpu": "#2f7fb8", "memory": "#7a9f35", "pods": "#c0763c"}
_BAR, _GAP, _WIDTH, _NUMBER = 8, 14, 420, 44
#: Width of a letter; of a wide one, so that no name is cut.
_LETTER = 7.5
#: More nodes than this are cells, so many in a row, of so many pixels.
_MOST_BARS, _ACROSS, _CELL = 200, 100, 11
#: Shares of the fullest resource from which a cell is so coloured.
_STEPS = (
    *((0.0, "#d7ead9"), (0.25, "#9fd3a8"), (0.5, "#f2d16b"), (0.75, "#ec9a3c")),
    *((0.9, "#d9534f"), (1.0, "#8e2a2a")),
)
_STYLE = (
    "text { font: 11px sans-serif; fill: #222222 } .ground { fill: #ffffff }"
    " .empty { fill: #e8e8e8 }"
    " @media (prefers-color-scheme: dark) { text { fill: #dddddd } .ground { fill: #16191d }"
    " .empty { fill: #30353b } }"
)


def svg(columns: Columns) -> str:
    """The SVG."""
    rows = [row for row, node in enumerate(columns.nodes) if node is not None]
    names = [columns.chosen(row).name for row in rows]
    room, used = columns.allocatable[:, rows][_ROWS], columns.requested[:, rows][_ROWS]
    shares = np.where(room > 0, used / np.maximum(room, 1), 0.0).T
    whole = "  ".join(
        f"{name} {asked / max(1, there):.0%}"
        for name, asked, there in zip(_NAMES, used.sum(axis=1), room.sum(axis=1), strict=True)
    )
    head = f"{len(rows)} nodes; requested: {whole}"
    draw = _bars if len(rows) <= _MOST_BARS else _cells
    width, height, parts = draw(names, [list(map(float, each)) for each in shares])
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            "<title>Requested share of each node</title>",
            f"<style>{_STYLE}</style>",
            '<rect class="ground" width="100%" height="100%"/>',
            f'<text x="10" y="18">{escape(head)}</text>',
            *parts,
            "</svg>",
        ]
    )


_Drawing = tuple[int, int, list[str]]


def _bars(names: list[str], shares: list[list[float]]) -> _Drawing:
    """Bars by resource, with the name on the left and numbers on the right."""
    left = 20 + round(_LETTER * max(map(len, names), default=0))
    step = _BAR * len(_NAMES) + _GAP
    parts = list(_legend([(color, name) for name, color in _COLORS.items()], left))
    for number, (name, each) in enumerate(zip(names, shares, strict=True)):
        top = 52 + number * step
        parts.append(f'<text x="{left - 8}" y="{top + 15}" text-anchor="end">{escape(name)}</text>')
        for place, (resource, share) in enumerate(zip(_NAMES, each, strict=True)):
            at = top + place * _BAR
            filled = round(min(share, 1.0) * _WIDTH, 1)
            parts.append(
                f'<rect class="empty" x="{left}" y="{at}" width="{_WIDTH}" height="{_BAR - 1}"/>'
                f'<rect x="{left}" y="{at}" width="{filled}" height="{_BAR - 1}"'
                f' fill="{_COLORS[resource]}"><title>{resource} {share:.0%}</title></rect>'
            )
        parts.append(f'<text x="{left + _WIDTH + 6}" y="{top + 15}">{max(each):.0%}</text>')
    return left + _WIDTH + _NUMBER, 60 + step * len(names), parts


def _cells(names: list[str], shares: list[list[float]]) -> _Drawing:
    """A cell for each node, in the order of the input, row by row."""
    bounds = [f"{share:.0%}" for share, _ in _STEPS]
    levels = [
        (color, f"{bound} and more" if color == _STEPS[-1][1] else f"from {bound}")
        for (_, color), bound in zip(_STEPS, bounds, strict=True)
    ]
    parts = list(_legend(levels, 10))
    for number, (name, each) in enumerate(zip(names, shares, strict=True)):
        x, y = 10 + number % _ACROSS * _CELL, 52 + number // _ACROSS * _CELL
        color = [color for share, color in _STEPS if max(each) >= share][-1]
        spelled = ", ".join(
            f"{resource} {share:.0%}" for resource, share in zip(_NAMES, each, strict=True)
        )
        parts.append(
            f'<rect x="{x}" y="{y}" width="{_CELL - 1}" height="{_CELL - 1}" fill="{color}">'
            f"<title>{escape(name)}: {spelled}</title></rect>"
        )
    return 20 + _ACROSS * _CELL, 64 + -(-len(names) // _ACROSS) * _CELL, parts


def _legend(colors: list[tuple[str, str]], left: int) -> Iterator[str]:
    for place, (color, text) in enumerate(colors):
        x = left + 110 * place
        yield (
            f'<rect x="{x}" y="28" width="10" height="10" fill="{color}"/>'
            f'<text x="{x + 15}" y="37">{text}</text>'
        )
