"""Lines over time as an SVG: a panel for each quantity, a colour for each run.

Covers: drawing. Does not cover: what is drawn (``descheduling_balance``, ``rescheduling_week``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

_WIDTH, _LEFT, _RIGHT, _HEIGHT, _GAP = 960, 60, 230, 130, 46
_COLOURS = ("#9aa0a6", "#d98c21", "#3f9142", "#1b6ca8")
#: A run: its ``name``, and ``points``, of which each begins with its time.
Run = Mapping[str, Any]


def figure(title: str, runs: Sequence[Run], panels: Sequence[tuple[int, str]]) -> str:
    """The figure; ``panels``: a place in the points, and its label."""
    parts = [f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>']
    for place, (column, label) in enumerate(panels):
        parts += _panel(runs, column, label, 60 + place * (_HEIGHT + _GAP))
    height = 60 + len(panels) * (_HEIGHT + _GAP)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"'
        f' viewBox="0 0 {_WIDTH} {height}" role="img" style="font:12px sans-serif;fill:#202124">\n'
        f"<title>{escape(title)}</title>\n{body}\n</svg>\n"
    )


def _panel(runs: Sequence[Run], column: int, label: str, top: int) -> Iterator[str]:
    right = _WIDTH - _RIGHT
    most = max(point[column] for run in runs for point in run["points"]) or 1
    last = max(point[0] for run in runs for point in run["points"]) or 1
    yield f'<text x="{_LEFT}" y="{top - 8}">{escape(label)}</text>'
    for part in range(3):
        y = top + _HEIGHT - _HEIGHT * part / 2
        yield f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e0e0e0"/>'
        value = f"{most * part / 2:.4g}"
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value}</text>'
    for place, run in enumerate(runs):
        colour = _COLOURS[place]
        path = " L".join(
            f"{_LEFT + (right - _LEFT) * point[0] / last:.1f}"
            f" {top + _HEIGHT - _HEIGHT * point[column] / most:.1f}"
            for point in run["points"]
        )
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        y = top + 14 + 18 * place
        ends = f'x1="{right + 12}" x2="{right + 32}" y1="{y - 4}" y2="{y - 4}"'
        yield f'<line {ends} stroke="{colour}"/>'
        yield f'<text x="{right + 38}" y="{y}">{escape(str(run["name"]))}</text>'
