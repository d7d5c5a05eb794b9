"""The picture of a recording: who used the CPUs, what best-effort work had, who waited. Pure.

Covers: lines over time, a second limit beside the first, pressure below.
Does not cover: the numbers (``cli.replay``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from xml.sax.saxutils import escape

from koordlet.model.record import dataclass

_WIDTH, _LEFT, _RIGHT = 960, 60, 190
_PANELS = ((40, 300), (350, 110))
_STYLE = "font:12px sans-serif;fill:#202124"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One moment. CPU in thousandths of a core; ``None``: not known, or no limit."""

    at: float
    node: int | None = None
    ls: int | None = None
    system: int | None = None
    be: int | None = None
    limit: int | None = None
    #: The limit with the other configuration.
    other: int | None = None
    #: Percent of time in which some task waited for a CPU, for memory.
    cpu_wait: float | None = None
    memory_wait: float | None = None


_Column = tuple[str, str, str, Callable[[Point], float | None]]
_CPU: tuple[_Column, ...] = (
    ("node", "#9aa0a6", "", lambda point: point.node),
    ("latency-sensitive", "#3fa34d", "", lambda point: point.ls),
    ("system", "#8757a8", "", lambda point: point.system),
    ("best-effort", "#d98c21", "", lambda point: point.be),
    ("best-effort limit", "#c5221f", "", lambda point: point.limit),
    ("limit, as configured", "#c5221f", "5 4", lambda point: point.other),
)
_WAIT: tuple[_Column, ...] = (
    ("waiting for a CPU", "#1b6ca8", "", lambda point: point.cpu_wait),
    ("waiting for memory", "#5f6368", "5 4", lambda point: point.memory_wait),
)


def render(points: Sequence[Point], capacity: int, title: str) -> str:
    """The whole picture; ``capacity`` is the machine's, in thousandths of a core."""
    parts = [f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>']
    panels = ((_CPU, max(1, capacity), "CPUs", 1000.0), (_WAIT, 100, "% of time", 1.0))
    for (top, height), (columns, most, unit, scale) in zip(_PANELS, panels, strict=True):
        parts += _axes(top, height, most / scale, unit)
        for row, column in enumerate(columns):
            parts += _line(points, column, (top, height, most), row)
    end = _PANELS[1][0] + _PANELS[1][1]
    if points:
        span = points[-1].at - points[0].at
        parts.append(_text(_LEFT, end + 18, "0 s"))
        parts.append(_text(_WIDTH - _RIGHT, end + 18, f"{span:.0f} s", anchor="end"))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{end + 30}"'
        f' viewBox="0 0 {_WIDTH} {end + 30}" role="img" style="{_STYLE}">\n'
        f"<title>{escape(title)}</title>\n{body}\n</svg>\n"
    )


def _axes(top: int, height: int, most: float, unit: str) -> Iterable[str]:
    right = _WIDTH - _RIGHT
    for part in range(5):
        y = top + height - height * part / 4
        yield f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e0e0e0"/>'
        yield _text(_LEFT - 6, y + 4, f"{most * part / 4:g}", anchor="end")
    yield _text(_LEFT, top - 6, unit)


def _line(
    points: Sequence[Point], column: _Column, panel: tuple[int, int, float], row: int
) -> Iterable[str]:
    """One column: a path that is broken where a value is missing, and its name beside it."""
    name, colour, dash, value = column
    top, height, most = panel
    start = points[0].at if points else 0.0
    span = (points[-1].at - start if points else 0.0) or 1.0
    steps: list[str] = []
    pen = "M"
    for point in points:
        amount = value(point)
        if amount is None:
            pen = "M"
            continue
        x = _LEFT + (_WIDTH - _RIGHT - _LEFT) * (point.at - start) / span
        y = top + height - height * min(max(amount, 0.0), most) / most
        steps.append(f"{pen}{x:.1f} {y:.1f}")
        pen = "L"
    if not steps:
        return
    if len(steps) == 1:
        steps.append(steps[0].replace("M", "L"))
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    yield (
        f'<path d="{" ".join(steps)}" fill="none" stroke="{colour}" stroke-width="1.6"{dashes}>'
        f"<title>{escape(name)}</title></path>"
    )
    y = top + 14 + 18 * row
    x = _WIDTH - _RIGHT + 12
    yield f'<line x1="{x}" x2="{x + 20}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}"{dashes}/>'
    yield _text(x + 26, y, name)


def _text(x: float, y: float, words: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(words)}</text>'
