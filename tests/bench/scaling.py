"""How cost grows: ``docs/images/scaling.svg``.

Covers: the cost at each size, at the machine's own pace (``pace``); the slope; the picture.
Does not cover: budgets (the gates of ``python -m tests.bench``), the reasons of the slopes
(``docs/measurements.md``).

    python -m tests.bench.scaling --record [AXIS …]   # measures, as root: minutes of CPU
    python -m tests.bench.scaling                     # draws docs/images/scaling.svg anew

A slope is that of the logarithms: with 0 every size costs the same, with 1 twice the size costs
twice as much.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from tests.bench import classes, fanout, pace, quotas, reservations, scheduler, tick

_ROOT = Path(__file__).parents[2]
RECORD = _ROOT / "docs" / "data" / "scaling.json"
PICTURE = _ROOT / "docs" / "images" / "scaling.svg"
_REPEATS, _PODS = 3, 2000

#: Of each size its CPU seconds, at the machine's full speed.
Points = Sequence[tuple[int, float]]


class Axis(NamedTuple):
    """What grows, and what is measured meanwhile."""

    name: str
    cost: str
    sizes: Sequence[int]
    measure: Callable[[int], float]


def _paced(pairs: Iterable[tuple[float, float]]) -> float:
    seconds, second = pace.budget(1.0, pairs)
    return seconds / second


def _least(measure: Callable[[], float]) -> float:
    return _paced((measure(), pace.work()) for _ in range(_REPEATS))


def _watched(watchers: int) -> float:
    seconds, second = asyncio.run(fanout.measured(watchers, _REPEATS))
    return seconds / second / 100


def _quotas(pods: int) -> Callable[[int], float]:
    """Of three levels, as wide each as their leaves ask for; so many pods a leaf."""
    return lambda size: _least(quotas.turns(math.isqrt(size), pods * math.isqrt(size) ** 2))


#: A leaf's maximum are ten pods.
AXES = (
    Axis(
        *("pods on a node", "a tick", (125, 250, 500, 1000)),
        lambda size: _paced(tick.rounds(size, _REPEATS)),
    ),
    Axis("watchers", "one event to each", (125, 250, 500, 1000), _watched),
    Axis(
        *("nodes", "placing a pod", (2500, 5000, 10_000, 20_000)),
        lambda size: _least(lambda: scheduler.whole("SchedulingBasic", size)),
    ),
    Axis(
        *("classes of pods", "placing a pod", (1, 10, 100, 1000)),
        lambda size: _least(lambda: classes.of_classes(size, _PODS)),
    ),
    Axis(
        *("reservations of others", "placing a pod", (10, 100, 1000, 10_000)),
        lambda size: _least(lambda: reservations.among(size)),
    ),
    Axis("quotas below their maximum", "a pod's turn", (111, 421, 1641, 6481), _quotas(2)),
    Axis("quotas above their maximum", "a pod's turn", (111, 421, 1641, 6481), _quotas(20)),
)


def slope(points: Points) -> float:
    """Of the logarithms, by least squares."""
    sizes, costs = zip(*((math.log(size), math.log(cost)) for size, cost in points), strict=True)
    return statistics.linear_regression(sizes, costs).slope


_WIDTH, _HEIGHT, _GAP, _LEFT, _COLUMNS = 240, 110, 80, 40, 3


def picture(recorded: Mapping[str, Points]) -> str:
    """A panel for each axis: sizes in equal steps, cost from 0."""
    panels = [
        line
        for place, axis in enumerate(AXES)
        for line in _panel(axis, recorded[axis.name], *divmod(place, _COLUMNS))
    ]
    width = _LEFT + _COLUMNS * (_WIDTH + _LEFT)
    height = math.ceil(len(AXES) / _COLUMNS) * (_HEIGHT + _GAP)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" role="img" style="font:12px sans-serif;fill:#202124">'
    )
    return "\n".join([head, "<title>How cost grows</title>", *panels, "</svg>\n"])


def _panel(axis: Axis, points: Points, row: int, column: int) -> Iterator[str]:
    left, top = _LEFT + column * (_WIDTH + _LEFT), 46 + row * (_HEIGHT + _GAP)
    bottom, most = top + _HEIGHT, max(cost for _, cost in points)
    title = f"{axis.cost}, CPU: slope {slope(points):.2f}"
    yield f'<text x="{left}" y="{top - 24}" font-weight="bold">{escape(title)}</text>'
    yield f'<line x1="{left}" x2="{left + _WIDTH}" y1="{bottom}" y2="{bottom}" stroke="#9aa0a6"/>'
    step = (_WIDTH - 50) / (len(points) - 1)
    places = [
        (left + 25 + step * place, bottom - _HEIGHT * cost / most)
        for place, (_, cost) in enumerate(points)
    ]
    line = " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<path d="M{line}" fill="none" stroke="#1b6ca8" stroke-width="1.6"/>'
    for (x, y), (size, cost) in zip(places, points, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#1b6ca8"/>'
        yield f'<text x="{x:.1f}" y="{y - 7:.1f}" text-anchor="middle">{_time(cost)}</text>'
        yield f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{size}</text>'
    yield f'<text x="{left}" y="{bottom + 30}">{escape(axis.name)}</text>'


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def _recorded() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return known


def main(argv: Sequence[str] | None = None) -> int:
    """Measure where that is wanted, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [axis.name for axis in AXES]
    parser.add_argument("--record", nargs="*", metavar="AXIS", help=f"of: {', '.join(names)}")
    args = parser.parse_args(argv)
    for axis in AXES:
        if args.record is not None and axis.name in (args.record or names):
            points = [(size, float(f"{axis.measure(size):.3g}")) for size in axis.sizes]
            sys.stderr.write(f"{axis.name}: {points}, slope {slope(points):.2f}\n")
            RECORD.write_text(json.dumps({**_recorded(), axis.name: points}) + "\n")
    PICTURE.write_text(picture(_recorded()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
