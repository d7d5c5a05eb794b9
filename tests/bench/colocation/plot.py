"""The plot of a report: for each load, latency and best-effort work of each arm. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from koordlet.demo.intervals import Interval

_WIDTH, _ROW, _LEFT, _COLUMN = 900, 22, 210, 320
_COLOURS = ("#7f7f7f", "#1f77b4", "#ff7f0e", "#d62728", "#2ca02c")

Arms = Mapping[str, tuple[Interval, Interval]]


def svg(rows: Mapping[str, Arms], title: str) -> str:
    """Level to arm to (p99 as times alone, best-effort share of what is idle)."""
    lines: list[str] = []
    y = 50
    for level, arms in rows.items():
        lines.append(f'<text x="10" y="{y}" font-weight="bold">{escape(level)}</text>')
        y += _ROW
        for number, (arm, (latency, work)) in enumerate(arms.items()):
            colour = _COLOURS[number % len(_COLOURS)]
            lines.append(f'<text x="24" y="{y}">{escape(arm)}</text>')
            lines += _bar(_LEFT, y, latency, 6.0, colour)
            lines += _bar(_LEFT + _COLUMN + 40, y, work, 1.2, colour)
            y += _ROW
    heads = (
        f'<text x="10" y="20" font-size="15">{escape(title)}</text>'
        f'<text x="{_LEFT}" y="36">p99, times alone (goal 1.10)</text>'
        f'<text x="{_LEFT + _COLUMN + 40}" y="36">best-effort, part of the rest (goal 0.90)</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y}"'
        f' font-family="sans-serif" font-size="12">{heads}{"".join(lines)}</svg>\n'
    )


def _bar(x: int, y: int, span: Interval, most: float, colour: str) -> list[str]:
    def at(value: float) -> float:
        return x + _COLUMN * min(value, most) / most * 0.8

    return [
        (
            f'<rect x="{x}" y="{y - 11}" width="{at(span.value) - x:.1f}" height="12"'
            f' fill="{colour}"/>'
        ),
        (
            f'<line x1="{at(span.low):.1f}" x2="{at(span.high):.1f}" y1="{y - 5}" y2="{y - 5}"'
            ' stroke="black"/>'
        ),
        f'<text x="{x + _COLUMN * 0.83:.0f}" y="{y}">{escape(str(span))}</text>',
    ]
