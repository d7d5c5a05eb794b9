"""``/api/v1/history``: what the recorder remembers, as a document. Pure.

Covers: the query, how numbers are spelled, the bound of one answer.
Does not cover: recording (``recorder``).

Rules:
1. Times are Unix seconds by the clock of now, also of what was recorded before the clock was set.
2. A missing sample is null. Bytes and counts are whole, everything else has four digits.
3. One answer has at most ``MOST`` samples: the loop that protects workloads spells them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable

from koordlet.history import space, timeline
from koordlet.http import message
from koordlet.model.record import dataclass
from koordlet.report import audit_json, documents, marks, recorder, view

#: About 20 milliseconds.
MOST = 60_000
#: An hour, the last five minutes of all workloads' CPU, a day.
RESOLUTIONS = {"1s": recorder.SECOND, "5s": recorder.RECENT, "1m": recorder.MINUTE}
FIELDS = (
    "resolution=1s or 5s or 1m, since=2026-01-31T12:00:00Z or 10m or Unix seconds,"
    " series=LS/cpuCores,BE/ (names, or beginnings that end in /)"
)
#: Of an answer that names no beginning.
_SINCE = {"1s": "5m", "5s": "5m", "1m": "6h"}

_WHOLE = ("Bytes", "BytesPerSecond", "pids")
#: Marks that come with each row.
_NEWEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuery:
    """Which part of the history."""

    resolution: str
    #: Unix time.
    since: float
    #: Names and beginnings of names; empty: all of the node.
    series: tuple[str, ...] = ()


def query(request: message.HttpRequest, wall: float) -> HistoryQuery:
    """The question of a request; ``ValueError`` for one that makes no sense."""
    unknown = set(request.query) - {"resolution", "since", "series"}
    if unknown:
        msg = f"unknown field {min(unknown)[:40]!r}"
        raise ValueError(msg)
    resolution = request.one("resolution") or "1s"
    if resolution not in RESOLUTIONS:
        msg = f"resolution is not one of {', '.join(RESOLUTIONS)}"
        raise ValueError(msg)
    since = audit_json.moment(request.one("since") or _SINCE[resolution], wall)
    series = tuple(name for name in (request.one("series") or "").split(",") if name)
    return HistoryQuery(resolution=resolution, since=since, series=series)


def document(
    recorded: recorder.Recorder, now: view.ReportView, question: HistoryQuery
) -> dict[str, object]:
    """The answer; ``ValueError`` where it were too long."""
    clock, wall = recorded.clock(), now.snapshot.wall
    after = question.since - wall + clock
    known = _samples(recorded, now, question, after)
    return {
        "version": "v1",
        "epoch": now.epoch,
        "observedAt": wall,
        "resolutionSeconds": RESOLUTIONS[question.resolution],
        "at": [round(at - clock + wall, 1) for at in known.at],
        "series": {name: _spelled(name, column) for name, column in known.columns.items()},
        "marks": spelled(recorded, recorded.marks.after(after), wall),
    }


def _samples(
    recorded: recorder.Recorder, now: view.ReportView, question: HistoryQuery, after: float
) -> space.Samples:
    if question.resolution == "5s":
        return recorded.recent(now)
    lines = [recorded.seconds]
    if question.resolution == "1m":
        # Both have their rows at the same moments.
        lines = [recorded.minutes, recorded.workloads] if question.series else [recorded.minutes]
    chosen = [(line, names) for line in lines if (names := _chosen(line, question, after))]
    count = sum(len(names) for _, names in chosen)
    rows = min(lines[0].length, math.ceil((recorded.clock() - after) / lines[0].period))
    if count * rows > MOST:
        msg = f"{count} series of {rows} rows are more than {MOST} samples"
        raise ValueError(msg)
    parts = [line.samples(names, after) for line, names in chosen or [(lines[0], [])]]
    columns = {name: column for part in parts for name, column in part.columns.items()}
    return space.Samples(parts[0].at, parts[0].span, columns)


def _chosen(line: timeline.Timeline, question: HistoryQuery, after: float) -> list[str]:
    names, wanted = line.names(after), question.series
    starts = tuple(name for name in wanted if name.endswith("/"))
    return [name for name in names if not wanted or name in wanted or name.startswith(starts)]


def _spelled(name: str, column: array[float]) -> list[float | None]:
    # NaN differs from itself.
    if name.endswith(_WHOLE):
        return [int(value) if value == value else None for value in column]  # noqa: PLR0124
    return [round(value, 4) if value == value else None for value in column]  # noqa: PLR0124


def row(recorded: recorder.Recorder, wall: float) -> dict[str, object]:
    """The newest row and marks, for those who have the rest already."""
    return {
        "at": round(recorded.seconds.newest - recorded.clock() + wall, 1) if recorded.row else None,
        "series": {
            name: int(value) if name.endswith(_WHOLE) else round(value, 4)
            for name, value in recorded.row.items()
        },
        "marks": spelled(recorded, recorded.marks.newest(_NEWEST), wall),
    }


def spelled(
    recorded: recorder.Recorder, several: Iterable[marks.Mark], wall: float
) -> list[dict[str, object]]:
    """Marks, as they are spelled."""
    shift = wall - recorded.clock()
    return [
        {
            "at": round(mark.at + shift, 1),
            **documents.fields(mark, "number kind policy text reason subject count"),
        }
        for mark in several
    ]
