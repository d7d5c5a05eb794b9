"""The requested share of each node, as an SVG.

Covers: a self-contained SVG, one bar a node and resource. Does not cover: deciding.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

import numpy as np

from koordlet.scheduler.cluster.columns import Columns

_ROWS_OF = {"cpu": 0, "memory": 1, "pods": 3}
_COLORS = {"cpu": "#2f6f9f", "memory": "#7a9f35", "pods": "#b0703c"}
_BAR, _GAP, _WIDTH, _LEFT = 8, 14, 420, 180
#: More nodes than this are drawn as groups of neighbours.
_MOST = 200


def svg(columns: Columns) -> str:
    """The SVG; in a large cluster each bar is the mean of a group."""
    rows = [row for row, node in enumerate(columns.nodes) if node is not None]
    size = max(1, -(-len(rows) // _MOST))
    groups = [rows[start : start + size] for start in range(0, len(rows), size)]
    step = _BAR * len(_ROWS_OF) + _GAP
    height = 40 + step * len(groups)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 70}" height="{height}">',
        "<title>Requested share of each node</title>",
        "<style>text { font: 11px sans-serif; fill: #222222 }</style>",
        f'<rect width="100%" height="{height}" fill="#ffffff"/>',
    ]
    for place, (name, color) in enumerate(_COLORS.items()):
        parts.append(
            f'<rect x="{_LEFT + 90 * place}" y="10" width="10" height="10" fill="{color}"/>'
            f'<text x="{_LEFT + 90 * place + 15}" y="19">{name}</text>'
        )
    for number, group in enumerate(groups):
        parts += _bars(columns, group, 34 + number * step)
    return "\n".join([*parts, "</svg>"])


def _bars(columns: Columns, group: list[int], top: int) -> list[str]:
    names = [node.name for row in (group[0], group[-1]) if (node := columns.nodes[row])]
    label = names[0] if len(group) == 1 else f"{names[0]} to {names[-1]}"
    caption = f"{escape(label[:30])}<title>{escape(label)}</title>"
    parts = [f'<text x="{_LEFT - 8}" y="{top + 15}" text-anchor="end">{caption}</text>']
    for place, (name, row) in enumerate(_ROWS_OF.items()):
        room = columns.allocatable[row, group]
        used = columns.requested[row, group]
        share = float(np.mean(np.where(room > 0, used / np.maximum(room, 1), 0.0)))
        at = top + place * _BAR
        width = round(min(share, 1.0) * _WIDTH, 1)
        parts.append(
            f'<rect x="{_LEFT}" y="{at}" width="{_WIDTH}" height="{_BAR - 1}" fill="#eeeeee"/>'
            f'<rect x="{_LEFT}" y="{at}" width="{width}" height="{_BAR - 1}"'
            f' fill="{_COLORS[name]}"><title>{name} {share:.0%}</title></rect>'
        )
    return parts
