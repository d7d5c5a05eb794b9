"""The CPUs in ``koordlet top``: a bar by class, history in braille, each CPU by socket and cache.

Covers: who uses the machine now and lately, whose each CPU is, how busy it is. Pure.
Does not cover: workloads and the rest of the screen (``top_screen``).

Each CPU is drawn once, in the colour of its owner: a CPU that both pools have is ``shared``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich import text
from rich.style import Style

from koordlet.cli import output
from koordlet.model import cpuset
from koordlet.report import documents

_BARS = "▁▂▃▄▅▆▇█"
#: Where the terminal cannot show bars: tenths.
_DIGITS = ".123456789"
COLOURS = {
    "LSE": "magenta",
    "LSR": "bright_magenta",
    "LS": "green",
    "BE": "yellow",
    "system": "bright_red",
    "reserved": "red",
    "shared": "cyan",
    "exclusive": "magenta",
    "outside": "bright_black",
}
#: Classes of a bar in their order, and the lines of the history.
_CLASSES = ("LSE", "LSR", "LS", "system", "BE")
_LINES = {"LS lately": ("LSE", "LSR", "LS"), "BE lately": ("BE",), "system": ("system",)}
_LABEL = 10
#: CPUs in use that are worth a line of history.
_TRACE = 0.05
#: Dots of a braille sign, from the lowest up, left and right.
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
_BLANK = 0x2800

#: CPU to socket and last-level cache.
Places = Mapping[int, tuple[object, object]]


def places(topology: documents.Document) -> Places:
    """Places of a machine's document."""
    return {
        row["cpu"]: (row.get("socket"), row.get("l3"))
        for row in documents.rows(topology, "cpus")
        if isinstance(row.get("cpu"), int)
    }


def used(document: documents.Document) -> Mapping[str, float]:
    """CPUs that each class uses now, as far as it is known."""
    shares = documents.part(documents.part(document, "usage"), "shares")
    cores = {name: documents.part(shares, name).get("cpuCores") for name in _CLASSES}
    return {
        name: float(value)
        for name, value in cores.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def history_path(seconds: float) -> str:
    """Where an agent has what classes used in the last seconds."""
    series = ",".join(f"{name}/cpuCores" for name in _CLASSES)
    return f"/api/v1/history?since={round(seconds)}s&series={series}"


def past(recorded: documents.Document, pause: float) -> Iterator[Mapping[str, float]]:
    """The same of each look before now, from an agent's history, which has a row a second."""
    series = documents.part(recorded, "series")
    columns = {name: series.get(f"{name}/cpuCores") for name in _CLASSES}
    known = {name: values for name, values in columns.items() if isinstance(values, list)}
    rows = max(map(len, known.values()), default=0)
    step = max(1, round(pause))
    for row in range((rows - 1) % step, rows, step):
        sample = {name: values[row] for name, values in known.items() if row < len(values)}
        yield {name: cores for name, cores in sample.items() if isinstance(cores, int | float)}


def bar(classes: Mapping[str, float], cpus: int, width: int, *, bars: bool) -> text.Text:
    """The machine as one line: each class as wide as the CPUs it uses, the rest idle."""
    line = text.Text(f"{'by class':<{_LABEL}}", no_wrap=True)
    room = max(1, width - _LABEL - 1)
    filled = 0
    sign, idle = ("█", "░") if bars else ("#", ".")
    for name, cores in classes.items():
        part = min(room - filled, max(0, round(room * cores / max(cpus, 1))))
        shown = f"{name}" if part > len(name) + 1 else ""
        style = COLOURS[name]
        line.append(shown, style=f"reverse {style}")
        line.append(sign * (part - len(shown)), style=style)
        filled += part
    line.append(idle * (room - filled), style="dim")
    return line


def history(
    samples: Sequence[Mapping[str, float]], cpus: int, width: int, height: int
) -> Iterator[text.Text]:
    """What each class used at the last looks, newest at the right; a full column: all CPUs."""
    for label, names in lines_of(samples).items():
        values = [sum(sample.get(name, 0.0) for name in names) / max(cpus, 1) for sample in samples]
        rows = braille(values, max(1, width - _LABEL - 1), height)
        for head, row in itertools.zip_longest((label, f"of {cpus}")[:height], rows, fillvalue=""):
            line = text.Text(f"{head:<{_LABEL}}", no_wrap=True)
            line.append(row, style=COLOURS[label.split()[0]])
            yield line


def lines_of(samples: Sequence[Mapping[str, float]]) -> Mapping[str, Sequence[str]]:
    """The lines of a history, and whom each counts; none for who used nearly nothing."""
    known = {name for sample in samples for name, cores in sample.items() if cores >= _TRACE}
    return {label: names for label, names in _LINES.items() if known.intersection(names)}


def braille(values: Sequence[float], width: int, height: int) -> list[str]:
    """Shares of 1 as filled columns, two to a sign and four dots high each; the newest last."""
    newest = values[-2 * width :]
    dots = [0] * (2 * width - len(newest))
    dots += [min(4 * height, max(0, round(4 * height * value))) for value in newest]
    rows = []
    for row in range(height - 1, -1, -1):
        signs = []
        for left, right in zip(dots[::2], dots[1::2], strict=True):
            code = _BLANK
            for column, top in zip(_DOTS, (left, right), strict=True):
                code |= sum(column[: max(0, min(4, top - 4 * row))])
            signs.append(chr(code))
        rows.append("".join(signs))
    return rows


def owners(document: documents.Document) -> Mapping[int, tuple[str, str]]:
    """CPU to its colour's name and to who has it."""
    known = documents.part(document, "cpus")
    owned: dict[int, tuple[str, str]] = dict.fromkeys(cpus_of(known.get("online")), ("", "others"))
    owned.update(dict.fromkeys(cpus_of(known.get("outside")), ("outside", "outside")))
    pools = documents.part(document, "pools")
    shared = {
        kind: cpuset.union(
            cpus_of(row.get("cpus"))
            for row in documents.rows(pools, "shared")
            if row.get("kind") == kind
        )
        for kind in ("LS", "BE")
    }
    for kind, members in shared.items():
        owned.update(dict.fromkeys(members, (kind, f"{kind} pool")))
    owned.update(dict.fromkeys(shared["LS"] & shared["BE"], ("shared", "LS and BE pool")))
    for claim in documents.rows(pools, "claims"):
        owner = str(claim.get("owner", ""))
        name = owner if owner == "reserved" else str(claim.get("holder", owner))
        colour = owner if owner in COLOURS else "exclusive"
        owned.update(dict.fromkeys(cpus_of(claim.get("cpus")), (colour, name)))
    return owned


def grid(
    document: documents.Document,
    where: Places,
    width: int,
    *,
    bars: bool,
    chosen: int | None = None,
    style: Callable[[int, str], str | Style] = lambda _, name: name,
) -> Iterator[text.Text]:
    """A sign for each CPU, as high as it is busy: a line for a socket, a gap between caches."""
    owned = owners(document)
    use = documents.part(documents.part(document, "usage"), "cpus")
    ordered = sorted(owned, key=lambda cpu: (*map(_order, where.get(cpu, ())), cpu))
    sockets = itertools.groupby(ordered, key=lambda cpu: where.get(cpu, (None, None))[0])
    for socket, members in sockets:
        label = "CPUs" if socket is None else f"socket {output.visible(str(socket))}"
        line = text.Text(f"{label[: _LABEL - 1]:<{_LABEL}}", no_wrap=True)
        for _, cpus in itertools.groupby(members, key=lambda cpu: where.get(cpu, (None, None))[1]):
            group = list(cpus)
            if len(line) > _LABEL and len(line) + len(group) + 1 > width:
                yield line
                line = text.Text(" " * _LABEL, no_wrap=True)
            elif len(line) > _LABEL:
                line.append(" ")
            for cpu in group:
                if len(line) >= width:
                    yield line
                    line = text.Text(" " * _LABEL, no_wrap=True)
                colour = COLOURS.get(owned[cpu][0], "")
                if cpu == chosen:
                    colour = f"reverse {colour}"
                line.append(sign(use.get(str(cpu)), bars=bars), style=style(cpu, colour))
        yield line


def legend(document: documents.Document) -> text.Text:
    """Owners by colour, how many CPUs each has and uses."""
    use = documents.part(documents.part(document, "usage"), "cpus")
    members: dict[tuple[str, str], list[object]] = {}
    for cpu, owner in owners(document).items():
        members.setdefault(owner, []).append(use.get(str(cpu)))
    line = text.Text(no_wrap=True)
    for (colour, name), values in sorted(members.items(), key=lambda item: -len(item[1])):
        known = [value for value in values if isinstance(value, int | float)]
        busy = f"{sum(known):.2f}" if known else "-"
        words = f"{output.visible(name)[:24]} {busy} of {len(values)}   "
        line.append(words, style=COLOURS.get(colour, ""))
    return line


def cpus_of(value: object) -> cpuset.CPUSet:
    """A list of CPUs; none for what is no list."""
    try:
        return cpuset.CPUSet.parse(value if isinstance(value, str) else "")
    except ValueError:
        return cpuset.CPUSet()


def sign(value: object, *, bars: bool) -> str:
    """How busy a CPU is; ``?`` while that is not known."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "?"
    steps = _BARS if bars else _DIGITS
    return steps[min(len(steps) - 1, max(0, round(value * (len(steps) - 1))))]


def _order(value: object) -> int:
    return value if isinstance(value, int) else -1
