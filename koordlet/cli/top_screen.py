"""The screen of ``koordlet top``: a node's document as lines of a terminal. Pure.

Covers: the head, CPUs by pool, workloads sorted and filtered, the line of keys, 80 columns.
Does not cover: where the document comes from (``cli.node_source``), keys (``cli.top``).

Whatever the document lacks is shown as ``-``: an agent of another version may say less.
"""

from __future__ import annotations

import contextlib
import dataclasses
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from rich import console, table, text
from rich.style import Style

from koordlet.cli import output, top_cpus, top_workloads
from koordlet.model import cpuset
from koordlet.model.record import dataclass
from koordlet.report import documents

_part, _rows = documents.part, documents.rows
_number, _percent = top_workloads.number, top_workloads.percent
_size, _rank = top_workloads.size, top_workloads.rank

#: From so many lines on there is history in any case, and at most so many lines of each class.
_TALL, _TALLEST = 28, 20
#: Columns of the widest table without what workloads used lately, and the most signs of that.
_WIDEST, LATELY = 120, 60
#: Best-effort work is told from the rest by its colour, too.
_CLASS_STYLES = {"BE": "yellow", "LSE": "magenta", "LSR": "magenta"}
#: Lines that workloads have at least, with their head: what is above them gives way.
_LEAST = 4
#: Lines above an explanation at least, where it is a long one.
_ABOVE = 4

HELP = """\
c m t p i w n   sort by CPU, memory, throttling, pressure, I/O, network, name
/               filter by name, namespace or class; Enter ends, Escape clears
up down         move through the workloads; also k and j, page keys, the wheel
Enter           explain the chosen workload or CPU; Escape closes
click           choose a workload or CPU, again: explain it; on a head: sort
Tab             to the CPUs and back; arrows choose one
left right      in a recording: one moment back or on, or click its bar
space           stop and go on
h ?             this page
q               quit"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """Settings of the screen."""

    sort: str = "c"
    filter: str = ""
    #: The filter is being typed.
    typing: bool = False
    #: The chosen workload, and the chosen CPU; keys move the one or the other.
    cursor: int = 0
    cpu: int = 0
    on_cpus: bool = False
    help: bool = False
    #: An explanation in place of the workloads.
    detail: tuple[str, ...] = ()
    #: What classes used at the last looks, oldest first, and the same of workloads; where CPUs are.
    history: tuple[Mapping[str, float], ...] = ()
    workloads: tuple[Mapping[str, float], ...] = ()
    places: top_cpus.Places = field(default_factory=dict)
    #: Of a recording: the moment that is shown, and how many there are.
    moment: int = 0
    moments: int = 0
    #: Somebody listens to keys.
    keys: bool = True
    paused: bool = False
    #: Where the document comes from, and what went wrong with the newest.
    source: str = ""
    problem: str = ""
    bars: bool = True
    #: What a click may point at is told by the style of its signs.
    marks: bool = False
    height: int = 24
    width: int = field(default=80)


def screen(document: documents.Document, how: Show) -> console.Group:
    """The whole screen."""
    help_lines = [_line(how, splitline) for splitline in HELP.splitlines()] if how.help else []
    detail = list(_detail(how))
    least = len(help_lines) or max(
        _LEAST, how.height // 3, min(len(detail), how.height - _ABOVE - 1)
    )
    head, (bar, *cpus) = list(_head(document, how)), list(_cpus(document, how))
    below = max(least, len(detail) or 1 + len(top_workloads.every(document)))
    spare = how.height - len(head) - len(cpus) - below - 3
    above = [*head, bar, *_history(document, how, spare), *cpus, text.Text("")]
    head = _cut(above, max(1, how.height - least - 1), how)
    if how.help:
        return console.Group(*head, *help_lines, _keys(how))
    room = max(_LEAST, how.height - len(head) - 1)
    keys = [_keys(how)] if how.keys else []
    if detail:
        return console.Group(*head, *_cut(detail, room, how), *keys)
    return console.Group(*head, _workloads(document, how, room), *keys)


def pointed(document: documents.Document, how: Show, place: tuple[int, int]) -> Mapping[str, Any]:
    """What is at a column and line of the screen: a ``row``, a ``cpu``, a ``sort``, or nothing."""
    column, line = place
    screen_of = console.Console(width=how.width, height=how.height, color_system=None)
    marked = screen(document, dataclasses.replace(how, marks=True))
    for segment in (*screen_of.render_lines(marked, pad=False)[line : line + 1], [])[0]:
        column -= segment.cell_length
        if column < 0:
            return segment.style.meta if segment.style else {}
    return {}


def _mark(how: Show, name: str, **target: int | str) -> str | Style:
    """A style, where asked with what a click on it points at."""
    return Style.parse(name) + Style(meta=target) if how.marks else name


def _detail(how: Show) -> Iterator[text.Text]:
    for number, line in enumerate(how.detail):
        yield from _wrapped(how, line, "" if number else "bold")


def _wrapped(how: Show, words: str, style: str) -> Iterator[text.Text]:
    """All of the words, on as many lines as they take."""
    rows = textwrap.wrap(
        words, max(20, how.width), subsequent_indent=" " * 4, break_on_hyphens=False
    )
    yield from (_line(how, (row, style)) for row in rows or [""])


def _cut(lines: list[text.Text], most: int, how: Show) -> list[text.Text]:
    """The first lines, where a terminal is too low for all: workloads are what one looks for."""
    if len(lines) <= most:
        return lines
    more = len(lines) - most + 1
    return [*lines[: most - 1], _line(how, f"... {more} more lines need more room")]


def _head(document: documents.Document, how: Show) -> Iterator[text.Text]:
    usage = _part(document, "usage")
    online = top_cpus.cpus_of(_part(document, "cpus").get("online"))
    rest = f"  {document.get('mode', '-')}  {how.source}"
    # A name may have 253 characters; the mode stands after it.
    name = text.Text(output.visible(str(document.get("name", "?"))))
    name.truncate(max(how.width // 2, how.width - len(rest)), overflow="ellipsis")
    yield _line(how, (name.plain, "bold"), rest)
    if how.moments:
        yield _time_bar(how, document.get("observedAt"))
    if how.problem:
        yield _line(how, (how.problem, "red"))
    banner = document.get("banner")
    for warning in banner if isinstance(banner, list) else ():
        yield from _wrapped(how, str(warning), "bold yellow")
    load = usage.get("load")
    loads = " ".join(_number(average, 2) for average in load) if isinstance(load, list) else "-"
    yield _line(
        how,
        f"CPU {_number(usage.get('cpuCores'), 2)} of {len(online)}   "
        f"memory {_size(usage.get('memoryBytes'))} of {_size(usage.get('memoryTotalBytes'))}"
        f"   load {loads}",
    )
    psi = _part(usage, "pressure")
    stalled = "   ".join(
        f"{kind} {_percent(_part(psi, kind).get('some'))}/{_percent(_part(psi, kind).get('full'))}"
        for kind in ("cpu", "memory", "io")
    )
    links = list(_part(usage, "links").values())
    moved = "/".join(_size(_sum(links, name)) for name in top_workloads.MOVED)
    yield _line(how, f"waiting (some/full) {stalled}   net in/out {moved}")
    yield _line(how, _classes(_part(usage, "shares")))
    yield _line(how, _headroom(document, usage))
    yield _line(how, _limit(_part(document, "bestEffort")))


def _time_bar(how: Show, observed: object) -> text.Text:
    """Where in the recording this moment is, and when it was."""
    when = "-"
    if isinstance(observed, int | float):
        with contextlib.suppress(ValueError, OverflowError, OSError):  # no time of any year
            when = time.strftime("%H:%M:%S", time.localtime(observed))
    words = f" {when}  {how.moment + 1} of {how.moments}"
    room = max(1, how.width - len(words) - 2)
    last = max(1, how.moments - 1)
    at = round((room - 1) * how.moment / last)
    before, here, after = ("━", "●", "─") if how.bars else ("=", "O", "-")
    line = text.Text(no_wrap=True)
    for place in range(room):
        sign = here if place == at else before if place < at else after
        moment = round(place * last / max(1, room - 1))
        line.append(sign, _mark(how, "" if place > at else "bold", moment=moment))
    return line.append(words)


def _classes(shares: documents.Document) -> str:
    """CPU, memory and network of each class that uses any."""
    parts = []
    for name in shares:
        used = _part(shares, name)
        if _rank(used.get("memoryBytes")) > 0 or _rank(used.get("cpuCores")) > 0:
            words = [
                _number(used.get("cpuCores"), 2),
                _size(used.get("memoryBytes")),
            ]
            moved = top_workloads.moved(used)
            parts.append(" ".join([name, *words, *([] if moved is None else [_size(moved)])]))
    return f"CPU memory net: {'   '.join(parts) or '-'}"


def _limit(document: documents.Document) -> str:
    """Format the limit of best-effort work, its policy and reason."""
    would_be = _part(document, "wouldBe")
    if would_be:
        return f"BE is not limited; {would_be.get('policy')} would allow {_most(would_be)}"
    if not document.get("policy"):
        return "BE is not limited"
    cpus = f" on {document.get('cpus')}" if document.get("cpus") else ""
    by = f"{document.get('policy')}, {document.get('actuator') or 'nothing'}"
    return f"BE may have {_most(document)}{cpus} ({by}): {document.get('reason')}"


def _most(document: documents.Document) -> str:
    cores = document.get("limitCores")
    return "all of its pool" if cores is None else f"{_number(cores, 2)} CPUs"


def _headroom(document: documents.Document, usage: documents.Document) -> str:
    """Format the offer to best-effort work, and the distance of signals from their thresholds."""
    pool = cpuset.union(
        top_cpus.cpus_of(row.get("cpus"))
        for row in _rows(_part(document, "pools"), "shared")
        if row.get("kind") == "BE"
    )
    share = _part(_part(usage, "shares"), "BE").get("cpuCores")
    cpus = [_part(usage, "cpus").get(str(cpu)) for cpu in pool]
    known = [max(0.0, 1 - cpu) for cpu in cpus if isinstance(cpu, int | float)]
    idle = _number(sum(known) if known else None, 2)
    parts = [f"BE uses {_number(share, 2)} CPUs, {idle} of its pool idle"]
    parts += [
        f"{row.get('name')} {row.get('observed')} (at {row.get('threshold')})"
        for row in _rows(document, "signals")[:2]
    ]
    parts.append(f"available {_size(usage.get('memoryAvailableBytes'))}")
    return "   ".join(parts)


def _cpus(document: documents.Document, how: Show) -> Iterator[text.Text]:
    """The machine by class, and CPU by CPU."""
    numbers = sorted(top_cpus.owners(document))
    cpus = len(numbers)
    yield top_cpus.bar(top_cpus.used(document), cpus, how.width, bars=how.bars)
    yield from top_cpus.grid(
        document,
        how.places,
        how.width,
        bars=how.bars,
        chosen=numbers[min(how.cpu, cpus - 1)] if how.on_cpus and numbers else None,
        style=lambda cpu, name: _mark(how, name, cpu=numbers.index(cpu)),
    )
    legend = top_cpus.legend(document)
    legend.truncate(how.width, overflow="ellipsis")
    yield legend


def _history(document: documents.Document, how: Show, spare: int) -> Iterator[text.Text]:
    """What classes used lately, as high as there are lines to spare."""
    classes = max(1, len(top_cpus.lines_of(how.history)))
    least = (how.height >= _TALL) + (how.height >= 2 * _TALL)
    high = max(least, min(_TALLEST, spare // classes))
    if how.bars and high > 0:
        cpus = len(top_cpus.owners(document))
        yield from top_cpus.history(how.history, cpus, how.width, high)


def _workloads(document: documents.Document, how: Show, room: int) -> table.Table:
    rows = top_workloads.chosen(document, how.sort, how.filter)
    made = table.Table(box=None, padding=(0, 1, 0, 0), header_style="reverse", expand=True)
    # Not all of a wide terminal: numbers belong near their name.
    signs = min(LATELY, (how.width - 80) // 2) if how.workloads and how.bars else 0
    signs = signs if how.width >= _WIDEST else 0
    made.width = min(how.width, _WIDEST + signs)
    shown = [
        column
        for column in top_workloads.COLUMNS
        if how.width >= column.width or column.key == how.sort
    ]
    for column in shown:
        head = column.head + (("▾" if how.bars else "v") if column.key == how.sort else "")
        form: dict[str, Any] = {"justify": "right" if column.key else "left", "max_width": 10}
        if column.key == "n":
            form = {"ratio": 1, "min_width": 16}
        made.add_column(
            text.Text(head, _mark(how, "", sort=column.key)),
            no_wrap=True,
            overflow="ellipsis",
            **form,
        )
    if signs:
        made.add_column("CPU lately", no_wrap=True, width=signs)
    highest = max((max(sample.values(), default=0.0) for sample in how.workloads), default=0.0)
    cursor = min(how.cursor, max(0, len(rows) - 1))
    first = max(0, cursor - (room - 2))
    for number, row in enumerate(rows[first : first + room - 1], start=first):
        marked = how.keys and not how.on_cpus and number == cursor
        made.add_row(
            *(text.Text(output.visible(column.form(column.value(row)))) for column in shown),
            *([_lately(row, how, signs, highest)] if signs else []),
            style=_mark(
                how,
                "reverse" if marked else _CLASS_STYLES.get(str(row.get("qos")), ""),
                row=number,
            ),
        )
    if not rows:
        made.add_row("[dim]none[/dim]" if how.filter else "[dim]no workloads declared[/dim]")
    return made


def _lately(row: documents.Document, how: Show, signs: int, highest: float) -> str:
    """What a workload used at the last looks; a full sign: as much as any of them had."""
    name = top_workloads.name_of(row)
    values = [sample.get(name, 0.0) / (highest or 1.0) for sample in how.workloads]
    return top_cpus.braille(values, signs, 1)[0]


def _keys(how: Show) -> text.Text:
    if how.typing or how.filter:
        return _line(how, f"filter: {how.filter}{'_' if how.typing else ''}   Escape clears")
    state = [("stopped  ", "bold")] if how.paused else []
    words = "sort c m t p i w n   explain Enter   CPUs Tab   filter /   help h   quit q"
    return _line(how, *state, (words, "dim"))


def _sum(several: Sequence[object], name: str) -> float | None:
    """Of what is known; ``None`` where nothing is."""
    values = [part.get(name) for part in several if isinstance(part, Mapping)]
    known = [float(value) for value in values if isinstance(value, int | float)]
    return sum(known) if known else None


def _line(how: Show, *parts: str | tuple[str, str]) -> text.Text:
    """Words, or words and their style. Nothing is taken for markup: names may look like it."""
    made = text.Text(no_wrap=True, overflow="ellipsis")
    for part in parts:
        words, style = (part, "") if isinstance(part, str) else part
        made.append(output.visible(words), style=style)
    made.truncate(how.width, overflow="ellipsis")
    return made
