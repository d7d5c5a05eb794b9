"""The screen of ``koordlet top``: a node's document as lines of a terminal. Pure.

Covers: the head, CPUs by pool, workloads sorted and filtered, the line of keys, 80 columns.
Does not cover: where the document comes from (``cli.top_source``), keys (``cli.top``).

Whatever the document lacks is shown as ``-``: an agent of another version may say less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, cast

from rich import console, table, text

from koordlet.cli import output
from koordlet.model import cpuset
from koordlet.model.record import dataclass

Document = Mapping[str, object]

_BARS = " ▁▂▃▄▅▆▇█"
#: Where the terminal cannot show bars: tenths.
_DIGITS = ".123456789"
_COLOURS = {
    "LS": "green",
    "BE": "yellow",
    "reserved": "red",
    "system": "bright_red",
    "LSE": "magenta",
    "LSR": "bright_magenta",
    "exclusive": "magenta",
}
_CPUS_IN_A_LINE = 48
_MOVED = ("receivedBytesPerSecond", "sentBytesPerSecond")

HELP = """\
c m t p i w n   sort by CPU, memory, throttling, pressure, I/O, network, name
/               filter by name, namespace or class; Enter ends, Escape clears
up down         move through the workloads, also with k and j
space           stop and go on
h ?             this page
q               quit"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """What the person wants to see."""

    sort: str = "c"
    filter: str = ""
    #: The filter is being typed.
    typing: bool = False
    first: int = 0
    help: bool = False
    #: Somebody listens to keys.
    keys: bool = True
    paused: bool = False
    #: Where the document comes from, and what went wrong with the newest.
    source: str = ""
    problem: str = ""
    bars: bool = True
    height: int = 24
    width: int = field(default=80)


def screen(found: Document, how: Show) -> console.Group:
    """The whole screen."""
    head = [*_head(found, how), *_pools(found, how), text.Text("")]
    if how.help:
        return console.Group(*head, text.Text(HELP), _keys(how))
    room = max(1, how.height - len(head) - 2)
    keys = [_keys(how)] if how.keys else []
    return console.Group(*head, _workloads(found, how, room), *keys)


def _head(found: Document, how: Show) -> Iterator[text.Text]:
    usage = _part(found, "usage")
    online = cpuset.CPUSet.parse(str(_part(found, "cpus").get("online", "")))
    name = output.visible(str(found.get("name", "?")))
    yield _line(how, f"[b]{_safe(name)}[/b]  {found.get('mode', '-')}  {_safe(how.source)}")
    if how.problem:
        yield _line(how, f"[red]{_safe(how.problem)}[/red]")
    load = usage.get("load")
    loads = " ".join(_number(one, 2) for one in load) if isinstance(load, list) else "-"
    yield _line(
        how,
        f"CPU {_number(usage.get('cpuCores'), 2)} of {len(online)}   "
        f"memory {_bytes(usage.get('memoryBytes'))} of {_bytes(usage.get('memoryTotalBytes'))}"
        f"   load {loads}",
    )
    psi = _part(usage, "pressure")
    stalled = "   ".join(
        f"{one} {_percent(_part(psi, one).get('some'))}/{_percent(_part(psi, one).get('full'))}"
        for one in ("cpu", "memory", "io")
    )
    links = list(_part(usage, "links").values())
    moved = "/".join(_bytes(_sum(links, name)) for name in _MOVED)
    yield _line(how, f"waiting (some/full) {stalled}   net in/out {moved}")
    yield _line(how, _classes(_part(usage, "shares")))
    yield _line(how, _headroom(found, usage))
    yield _line(how, _limit(_part(found, "bestEffort")))


def _classes(shares: Document) -> str:
    """CPU, memory and network of each class that uses any."""
    parts = []
    for name in shares:
        used = _part(shares, name)
        if _key(used.get("memoryBytes")) > 0 or _key(used.get("cpuCores")) > 0:
            words = [_number(used.get("cpuCores"), 2), _bytes(used.get("memoryBytes"))]
            moved = _moved(used)
            parts.append(" ".join([name, *words, *([] if moved is None else [_bytes(moved)])]))
    return _safe(f"CPU memory net: {'   '.join(parts) or '-'}")


def _limit(found: Document) -> str:
    """What best-effort work may have, who says it and why."""
    if not found.get("policy"):
        return "BE is not limited"
    cores = found.get("limitCores")
    most = "all of its pool" if cores is None else f"{_number(cores, 2)} CPUs"
    cpus = f" on {found.get('cpus')}" if found.get("cpus") else ""
    return _safe(
        f"BE may have {most}{cpus} ({found.get('policy')}, {found.get('actuator') or 'nothing'}):"
        f" {found.get('reason')}"
    )


def _headroom(found: Document, usage: Document) -> str:
    """What best-effort work may still have, and how far the signals are from their thresholds."""
    pool = cpuset.union(
        cpuset.CPUSet.parse(str(one.get("cpus", "")))
        for one in _rows(_part(found, "pools"), "shared")
        if one.get("kind") == "BE"
    )
    share = _part(_part(usage, "shares"), "BE").get("cpuCores")
    cpus = [_part(usage, "cpus").get(str(cpu)) for cpu in pool]
    idle = sum(max(0.0, 1 - one) for one in cpus if isinstance(one, int | float))
    parts = [
        f"BE uses {_number(share, 2)} CPUs, {_number(idle if pool else None, 2)} of its pool idle"
    ]
    parts += [
        f"{one.get('name')} {one.get('observed')} (at {one.get('threshold')})"
        for one in _rows(found, "signals")[:2]
    ]
    parts.append(f"available {_bytes(usage.get('memoryAvailableBytes'))}")
    return _safe("   ".join(parts))


def _pools(found: Document, how: Show) -> Iterator[text.Text]:
    """Each pool's CPUs, one sign for each."""
    cpus = _part(_part(found, "usage"), "cpus")
    left = cpuset.CPUSet.parse(str(_part(found, "cpus").get("online", "")))
    kinds: list[tuple[str, str, cpuset.CPUSet]] = []
    pools = _part(found, "pools")
    for one in _rows(pools, "claims"):
        owner = str(one.get("owner", ""))
        colour = _COLOURS.get(owner, _COLOURS["exclusive"])
        members = cpuset.CPUSet.parse(str(one.get("cpus", "")))
        label = owner if owner == "reserved" else str(one.get("holder", owner))
        kinds.append((label, colour, members))
        left -= members
    for kind in ("LS", "BE"):
        members = cpuset.union(
            cpuset.CPUSet.parse(str(one.get("cpus", "")))
            for one in _rows(pools, "shared")
            if one.get("kind") == kind
        )
        if members:
            kinds.append((f"{kind} pool", _COLOURS[kind], members))
            left -= members
    if left:
        kinds.append(("CPUs" if not kinds else "others", "cyan", left))
    for label, colour, members in kinds:
        values = [cpus.get(str(cpu)) for cpu in members]
        known = [one for one in values if isinstance(one, int | float)]
        signs = "".join(_sign(one, bars=how.bars) for one in values)
        for start in range(0, len(signs), _CPUS_IN_A_LINE):
            part = signs[start : start + _CPUS_IN_A_LINE]
            line = text.Text(f"{label[:16] if start == 0 else '':<17}", no_wrap=True)
            line.append(part, style=colour)
            if start == 0:
                line.append(f"  {sum(known):.2f} of {len(members)}")
            yield line


def _sign(value: object, *, bars: bool) -> str:
    if not isinstance(value, int | float):
        return "?"
    steps = _BARS if bars else _DIGITS
    return steps[min(len(steps) - 1, max(0, round(value * (len(steps) - 1))))]


#: Each column sorts by values of one type.
_SORTS: Mapping[str, Callable[[Document], Any]] = {
    "c": lambda one: -_key(one.get("cpuCores")),
    "m": lambda one: -_key(_part(one, "usage").get("memoryBytes")),
    "t": lambda one: -_key(_part(one, "usage").get("throttledRatio")),
    "p": lambda one: -max(map(_key, _stalls(one))),
    "i": lambda one: (
        -(
            _key(_part(one, "usage").get("readBytesPerSecond"))
            + _key(_part(one, "usage").get("writtenBytesPerSecond"))
        )
    ),
    "w": lambda one: -_key(_moved(_part(one, "usage"))),
    "n": lambda one: (str(one.get("namespace")), str(one.get("name"))),
}
SORTS = frozenset(_SORTS)


def chosen(found: Document, how: Show) -> Sequence[Document]:
    """The workloads that pass the filter, in order; equal ones by name."""
    wanted = how.filter.lower()
    rows = [
        one
        for one in (*_rows(found, "workloads"), *_rows(found, "unmanaged"))
        if wanted in f"{one.get('namespace')}/{one.get('name')} {one.get('qos')}".lower()
    ]
    rows.sort(key=_SORTS["n"])
    rows.sort(key=_SORTS[how.sort])
    return rows


def _workloads(found: Document, how: Show, room: int) -> table.Table:
    rows = chosen(found, how)
    made = table.Table(box=None, padding=(0, 1, 0, 0), header_style="reverse", expand=True)
    marks = {"n": "workload", "c": "CPU", "m": "memory", "t": "thr", "p": "cpu/mem/io", "i": "I/O"}
    marks["w"] = "net"
    heads = {key: word + ("v" if key == how.sort else "") for key, word in marks.items()}
    made.add_column(heads["n"], no_wrap=True, overflow="ellipsis", ratio=1, min_width=16)
    made.add_column("class", no_wrap=True)
    for key in ("c", "m", "t", "p", "i", "w"):
        made.add_column(heads[key], no_wrap=True, justify="right")
    made.add_column("CPUs", no_wrap=True, overflow="ellipsis", max_width=10)
    first = min(how.first, max(0, len(rows) - 1))
    for one in rows[first : first + room - 1]:
        usage = _part(one, "usage")
        done = [usage.get("readBytesPerSecond"), usage.get("writtenBytesPerSecond")]
        total = None if None in done else sum(map(_key, done))
        made.add_row(
            _safe(output.visible(f"{one.get('namespace')}/{one.get('name')}")),
            str(one.get("qos") or "-"),
            _number(one.get("cpuCores"), 2),
            _bytes(usage.get("memoryBytes")),
            _percent(usage.get("throttledRatio")),
            "/".join(_percent(stall).rstrip("%") for stall in _stalls(one)),
            _bytes(total),
            _bytes(_moved(usage)),
            str(one.get("cpus") or "-"),
        )
    if not rows:
        made.add_row("[dim]none[/dim]" if how.filter else "[dim]no workloads declared[/dim]")
    return made


def _keys(how: Show) -> text.Text:
    if how.typing or how.filter:
        return _line(how, f"filter: {_safe(how.filter)}{'_' if how.typing else ''}   Escape clears")
    state = "[b]stopped[/b]  " if how.paused else ""
    return _line(how, f"{state}[dim]sort c m t p i w n   filter /   help h   quit q[/dim]")


def _moved(used: Document) -> float | None:
    """Bytes a second through the network, both ways."""
    both = _part(used, "network")
    return (
        None if None in (both.get(name) for name in _MOVED) else sum(_key(both[n]) for n in _MOVED)
    )


def _sum(several: Sequence[object], name: str) -> float | None:
    """Of what is known; ``None`` where nothing is."""
    found = [one.get(name) for one in several if isinstance(one, Mapping)]
    known = [float(one) for one in found if isinstance(one, int | float)]
    return sum(known) if known else None


def _stalls(one: Document) -> list[object]:
    psi = _part(_part(one, "usage"), "pressure")
    return [_part(psi, resource).get("some") for resource in ("cpu", "memory", "io")]


def _line(how: Show, markup: str) -> text.Text:
    made = text.Text.from_markup(markup)
    made.no_wrap, made.overflow = True, "ellipsis"
    made.truncate(how.width, overflow="ellipsis")
    return made


def _safe(words: str) -> str:
    return words.replace("[", r"\[")


def _part(found: Document, name: str) -> Document:
    one = found.get(name)
    return cast("Document", one) if isinstance(one, Mapping) else {}


def _rows(found: Document, name: str) -> list[Document]:
    rows = found.get(name)
    return [one for one in rows if isinstance(one, Mapping)] if isinstance(rows, list) else []


def _key(value: object) -> float:
    return float(value) if isinstance(value, int | float) else -1.0


def _number(value: object, digits: int) -> str:
    return f"{value:.{digits}f}" if isinstance(value, int | float) else "-"


def _percent(value: object) -> str:
    return f"{value:.0%}" if isinstance(value, int | float) else "-"


def _bytes(value: object) -> str:
    if not isinstance(value, int | float):
        return "-"
    size, unit = float(value), "B"
    for unit in ("B", "K", "M", "G", "T"):
        if size < 1000 or unit == "T":
            break
        size /= 1024
    return f"{size:.0f}{unit}" if size >= 100 or unit == "B" else f"{size:.1f}{unit}"
