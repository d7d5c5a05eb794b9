"""Prometheus text and OpenMetrics, from a view.

Covers: writing our own families fast, and the agent's own ``process_*`` series.
Does not cover: what the families say (``families``), HTTP (``http_api``).

Rules:
1. The bulk is written by us: the lines of a family are kept from scrape to scrape as one format
   for its values.
2. Label values may be anything; they are escaped, cut to ``MAX_LABEL``, and never make two series
   of one name.
3. A family is cut at its bound, and ``koordlet_series_dropped`` says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from koordlet.model.record import dataclass
from koordlet.report import families, feature_families, peer_families, usage_families, view

#: Kubernetes names have up to 253 characters.
MAX_LABEL = 256


@dataclass(frozen=True, slots=True)
class TextFormat:
    """One of the two text formats."""

    content_type: str
    #: Whether a counter's metadata carries the ``_total`` of its samples.
    total_in_name: bool
    end: bytes


TEXT = TextFormat("text/plain; version=0.0.4; charset=utf-8", total_in_name=True, end=b"")
OPENMETRICS = TextFormat(
    "application/openmetrics-text; version=1.0.0; charset=utf-8",
    total_in_name=False,
    end=b"# EOF\n",
)

Events = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines of a family, with a place for each value."""

    subjects: list[tuple[str, ...]]
    #: One format for all values: printed one by one they cost half as much again.
    text: str
    #: Numbers of the rows with a line of their own; ``None`` where each has one.
    rows: list[int] | None
    lost: int

    def lines(self) -> dict[tuple[str, ...], str]:
        """Line of each subject that has one."""
        if self.rows is None:
            return dict(zip(self.subjects, self.text.split("\n"), strict=bool(self.subjects)))
        shown = (self.subjects[row] for row in self.rows)
        return dict(zip(shown, self.text.split("\n"), strict=True))


_EMPTY = _Block([], "", None, 0)


class MetricsWriter:
    """Writes families; keeps their lines without the values."""

    def __init__(self) -> None:
        #: By sample name; from scrape to scrape mostly the same subjects are there.
        self._blocks: dict[str, _Block] = {}

    @property
    def kept(self) -> int:
        """Number of lines that are kept."""
        return sum(len(block.lines()) for block in self._blocks.values())

    def write(
        self, chosen: Iterable[families.Family], now: view.ReportView, form: TextFormat
    ) -> tuple[list[str], dict[str, int]]:
        """The lines, and by family how many series were dropped."""
        lines: list[str] = []
        dropped: dict[str, int] = {}
        for family in chosen:
            written, lost = self._family(family, now, form)
            lines += written
            if lost:
                dropped[family.name] = lost
        return lines, dropped

    def _family(
        self, family: families.Family, now: view.ReportView, form: TextFormat
    ) -> tuple[list[str], int]:
        if family.type == families.HISTOGRAM:
            return _histogram(family, now)
        sample = f"{family.name}_total" if family.type == families.COUNTER else family.name
        shown = sample if form.total_in_name else family.name
        finite = math.isfinite
        rows = [row for row in family.rows(now) if row[1] is not None and finite(row[1])]
        subjects = [labels for labels, _ in rows]
        block = self._blocks.get(sample, _EMPTY)
        if block.subjects != subjects:
            block = self._blocks[sample] = _block(sample, family, subjects, block.lines())
        values = [value for _, value in rows]
        if block.rows is not None:
            values = [values[row] for row in block.rows]
        lines = [f"# HELP {shown} {_help(family.help)}", f"# TYPE {shown} {family.type}"]
        if values:
            lines.append(block.text % tuple(values))
        return lines, block.lost


def _block(
    sample: str,
    family: families.Family,
    subjects: list[tuple[str, ...]],
    known: Mapping[tuple[str, ...], str],
) -> _Block:
    """Two labels that are one after escaping and cutting are one series: the first has the line."""
    rows: dict[str, int] = {}
    for row, labels in enumerate(subjects):
        line = known.get(labels)
        if line is None:
            line = _prefix(sample, family.labels, labels).replace("%", "%%") + family.form
        rows.setdefault(line, row)
    shown = list(rows)[: family.most]
    whole = len(shown) == len(subjects)
    numbers = None if whole else [rows[line] for line in shown]
    return _Block(subjects, "\n".join(shown), numbers, len(rows) - len(shown))


def _histogram(family: families.Family, now: view.ReportView) -> tuple[list[str], int]:
    """A few lines for a family that seldom has any: nothing of it is kept."""
    lines = [f"# HELP {family.name} {_help(family.help)}", f"# TYPE {family.name} {family.type}"]
    rows = list(family.rows(now))
    for (part, *labels), value in rows[: family.most]:
        names = (*family.labels, "le") if part == families.BUCKET else family.labels
        lines.append(_prefix(family.name + part, names, tuple(labels)) + f"{value:.15g}")
    return lines, max(0, len(rows) - family.most)


_WRITER = MetricsWriter()
_FAMILIES = (
    *families.FAMILIES,
    *usage_families.FAMILIES,
    *feature_families.BEST_EFFORT,
    *peer_families.FAMILIES,
    *feature_families.RUNTIME,
    *feature_families.CLAIMS,
    *feature_families.SHUTDOWN,
    *feature_families.RESCTRL,
)


def render(
    now: view.ReportView,
    version: str,
    events: Events,
    form: TextFormat,
    without: Collection[str] = (),
) -> bytes:
    """Our own series without some groups, and without the end mark of the format."""
    chosen = [family for family in _FAMILIES if family.group not in without]
    lines, dropped = _WRITER.write((*chosen, *extra(version, events)), now, form)
    more, _ = _WRITER.write((_dropped(dropped),), now, form)
    return ("\n".join([*lines, *more]) + "\n").encode("utf-8", "replace")


def extra(version: str, events: Events) -> tuple[families.Family, ...]:
    """The families that are not of the view."""
    return (
        families.Family(
            name="koordlet_build_info",
            help="1, with the agent's version as label.",
            labels=("version",),
            rows=lambda _: (((version,), 1),),
            form="%d",
        ),
        families.Family(
            name="koordlet_surface_events",
            help="Client events by surface: requests, refused, busy, dropped, timeouts.",
            type=families.COUNTER,
            labels=("surface", "event"),
            bound="9 for each of 5 surfaces",
            rows=lambda _: list(events.items()),
            form="%d",
        ),
    )


def _dropped(counted: Mapping[str, int]) -> families.Family:
    return families.Family(
        name="koordlet_series_dropped",
        help="Series of a family beyond its bound, which are not exported.",
        labels=("family",),
        bound="one for each family that was cut",
        rows=lambda _: (((name,), number) for name, number in counted.items()),
        form="%d",
    )


def table() -> tuple[families.Family, ...]:
    """Every family, for the documentation."""
    return (*_FAMILIES, *extra("", {}), _dropped({}))


def _prefix(name: str, names: tuple[str, ...], values: tuple[str, ...]) -> str:
    if not names:
        return f"{name} "
    pairs = ",".join(
        f'{label}="{_value(value)}"' for label, value in zip(names, values, strict=True)
    )
    return f"{name}{{{pairs}}} "


def _value(text: str) -> str:
    clean = text[:MAX_LABEL].encode("utf-8", "replace").decode()
    return clean.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


class ProcessMetrics:
    """The agent's own ``process_*`` series, read by ``prometheus_client`` and written by us.

    Its collector alone is executed: its text formats come with an HTTP server, TLS and mail.
    """

    def __init__(self) -> None:
        import prometheus_client.process_collector as collectors  # noqa: PLC0415 -- 2 ms

        self._collector = collectors.ProcessCollector(registry=None)

    def render(self, form: TextFormat) -> bytes:
        """The series, without the end mark of the format."""
        lines: list[str] = []
        for series in self._collector.collect():
            for sample in series.samples:
                shown = sample.name if form.total_in_name else series.name
                lines.append(f"# HELP {shown} {_help(series.documentation)}")
                lines.append(f"# TYPE {shown} {series.type}")
                lines.append(f"{sample.name} {sample.value!r}")
        return "".join(f"{line}\n" for line in lines).encode()
