"""A week of a cluster with and without plans of moves, simulated: ``docs/images/rescheduling.svg``.

Covers: runs of the model, the picture of a recorded result. Does not cover: the cluster
(``rescheduling_model``).

    python -m tools.docs.rescheduling_week --record   # simulates: minutes of CPU
    python -m tools.docs.rescheduling_week            # draws docs/images/rescheduling.svg anew
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from koordlet.scheduler.disruption.settings import PlanSettings
from tools.docs import line_figure, rescheduling_model

_ROOT = Path(__file__).parents[2]
RECORD = _ROOT / "docs" / "data" / "rescheduling.json"
PICTURE = _ROOT / "docs" / "images" / "rescheduling.svg"
#: Hours in which the cluster fills; no plan begins, and nothing counts.
_BEFORE = 24
WAYS: tuple[tuple[str, PlanSettings], ...] = (
    ("no plans", PlanSettings()),
    ("room for pods that wait", PlanSettings(make_room_after=600.0, acts=True)),
    (
        "and a node emptied each hour",
        PlanSettings(make_room_after=600.0, consolidate_every=3600.0, acts=True),
    ),
)


def simulate(nodes: int, hours: int, seed: int, way: tuple[str, PlanSettings]) -> dict[str, Any]:
    """One way over one cluster; the day before, in which it fills, does not count."""
    name, settings = way
    week = rescheduling_model.Week(nodes, seed)
    points = []
    for number in range(1, (hours + _BEFORE) * 60 + 1):
        week.minute()
        if number == _BEFORE * 60:
            week.begin(settings)
        if number >= _BEFORE * 60 and number % (2 * 60) == 0:
            points.append(week.point())
    result = {"name": name, "summary": week.summary(), "points": points}
    sys.stderr.write(f"{name}: {result['summary']}\n")
    return result


_PANELS = (
    (1, "largest pod that fits, CPUs (with 4 GiB each)"),
    (2, "CPU stranded, % of all: free where its memory is not"),
    (3, "memory stranded, % of all: free where its CPU is not"),
    (4, "large pods that wait"),
    (5, "moves in the last day, of a thousand pods"),
)


def picture(result: Mapping[str, Any]) -> str:
    """The recorded result as a picture."""
    days = result["hours"] // 24
    large = rescheduling_model.LARGE[0]
    title = f"{result['nodes']} nodes over {days} days, with pods of {large} CPUs now and then"
    return line_figure.figure(title, result["runs"], _PANELS)


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate where that is wanted, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="simulate anew")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--hours", type=int, default=7 * 24)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(argv)
    if args.record:
        runs = [simulate(args.nodes, args.hours, args.seed, way) for way in WAYS]
        size = {"nodes": args.nodes, "hours": args.hours, "seed": args.seed}
        text = json.dumps({**size, "runs": runs}, separators=(",", ":"))
        RECORD.write_text(text + "\n", encoding="utf-8")
    PICTURE.write_text(picture(json.loads(RECORD.read_text(encoding="utf-8"))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
