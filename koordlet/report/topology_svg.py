"""A picture of the machine in the manner of lstopo, as SVG by hand.

Covers: drawing the boxes, colours for light and dark, the legend, the text for who cannot see.
Does not cover: what is in which box (``report.topology_boxes``), where (``report.box_layout``).

Rules:
1. Every text is escaped; what XML cannot hold at all becomes a replacement character.
2. Colours are in one style sheet, twice, with no variables: simple viewers know none.
3. Owners colour CPUs by class: a known name has its own colour, others take the rest in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from koordlet.model import topology
from koordlet.report import box_layout, topology_boxes, topology_words

#: Class to fill and line, in light and in dark.
_COLOURS: Mapping[str, tuple[str, str, str, str]] = {
    "machine": ("#f6f7f9", "#9aa1ab", "#15181c", "#5b636e"),
    "socket": ("#ffffff", "#6b7480", "#1c2026", "#7c8693"),
    "node": ("#eef5ee", "#7da37d", "#1c2a20", "#557a5c"),
    "memory": ("#cfe6cf", "#7da37d", "#2c4a33", "#557a5c"),
    "l3": ("#fbf3dd", "#c8a951", "#332c18", "#8d7636"),
    "l2": ("#f6e6c0", "#c8a951", "#40371d", "#8d7636"),
    "core": ("#ffffff", "#a7adb5", "#22272e", "#5b636e"),
    "off": ("#ffffff", "#a7adb5", "#1c2026", "#5b636e"),
    "device": ("#ede4f7", "#9677bd", "#2f2440", "#7a5fa0"),
    "cpu": ("#d6e4f5", "#5b83b5", "#25405f", "#5b83b5"),
    "cpu.offline": ("#ffffff", "#a7adb5", "#1c2026", "#5b636e"),
}
#: The colours of owners: known names first, then what is left for others.
_OWNERS: Mapping[str, tuple[str, str]] = {
    "reserved": ("#b9bec6", "#59616c"),
    "system": ("#8fd0d6", "#1f6a72"),
    "lse": ("#f2a0a0", "#8a2f36"),
    "lsr": ("#f7bf8a", "#8a5320"),
    "ls": ("#f4e07a", "#77681a"),
    "be": ("#a8dba0", "#2f6b31"),
    "free": ("#d6e4f5", "#25405f"),
    "outside": ("#e4e6ea", "#39404a"),
    "1": ("#c9b3ec", "#5a4390"),
    "2": ("#f0aed4", "#85386a"),
    "3": ("#9fc5f8", "#2b5c99"),
    "4": ("#d3c1a5", "#6b583b"),
    "5": ("#b5d98b", "#4f6f22"),
}
_SPARE = [name for name in _OWNERS if name.isdigit()]
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARGIN = 10.0
_STYLE = """\
text{font:11px system-ui,"Segoe UI","DejaVu Sans",sans-serif;fill:#1f2328}
.name{font-weight:600}
.cpu text,.number{text-anchor:middle}
rect{stroke-width:1}
path{stroke-width:.6}
.offline,.off>rect{stroke-dasharray:3 2}
.isolated{stroke-width:2.5}
.nohz_full{stroke-width:2.5;stroke-dasharray:5 2}
.back{fill:#ffffff}
"""
_DARK_STYLE = "text{fill:#e6e8eb}.back{fill:#0d1014}"


def picture(machine: topology.Topology, owners: Mapping[int, str] | None = None) -> str:
    """The whole document. ``owners``: a word for the owner of a CPU, which becomes its class."""
    owned = owners or {}
    words = sorted({word for cpu, word in owned.items() if cpu in machine.present})
    classes = {cpu: _class(word) for cpu, word in owned.items()}
    placed = box_layout.place(topology_boxes.build(machine, classes), _MARGIN, _MARGIN)
    legend = tuple(_legend(machine, words, placed.at.y + placed.at.height, placed.at.width))
    width = placed.at.width + 2 * _MARGIN
    height = placed.at.height + 2 * _MARGIN + 24 * (1 + max((row for row, _ in legend), default=0))
    title = _text(", ".join(topology_words.summary(machine)))
    about = _text(" ".join(_description(machine)))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}" role="img"'
        ' aria-labelledby="machine-title machine-desc">\n'
        f'<title id="machine-title">{title}</title>\n<desc id="machine-desc">{about}</desc>\n'
    )
    style = f"<style>\n{_style(words)}</style>\n"
    back = '<rect class="back" width="100%" height="100%"/>\n'
    keys = (line for _, line in legend)
    return "".join((head, style, back, *_draw(placed), *keys, "</svg>\n"))


def _text(text: str) -> str:
    return escape(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", text), quote=True)


def _class(owner: str) -> str:
    return "owner-" + (re.sub(r"[^a-z0-9]+", "-", owner.lower()).strip("-") or "unnamed")


# Boxes ------------------------------------------------------------------------------------------


def _draw(placed_box: box_layout.PlacedBox) -> Iterator[str]:
    yield f'<g class="{placed_box.box.kind}">'
    if placed_box.box.title:
        yield f"<title>{_text(placed_box.box.title)}</title>"
    yield f"{_rect(placed_box.at, radius=4 if placed_box.box.kind == 'core' else 6)}\n"
    for number, (x, y, line) in enumerate(placed_box.label):
        attribute = ' class="name"' if number == 0 else ""
        yield f'<text{attribute} x="{x:g}" y="{y:g}">{_text(line)}</text>\n'
    if placed_box.box.small:
        yield from _small(placed_box.cells)
    else:
        for at, cell in placed_box.cells:
            yield (
                f"<g><title>{_text(cell.title)}</title>{_rect(at, cell.classes, radius=3)}"
                f'<text class="number" x="{at.x + at.width / 2:g}" y="{at.y + 14:g}">'
                f"{_text(cell.text)}</text></g>\n"
            )
    for below in placed_box.inside:
        yield from _draw(below)
    yield "</g>\n"


def _rect(at: box_layout.BoxPosition, classes: str = "", *, radius: int) -> str:
    attribute = f'class="{classes}" ' if classes else ""
    return (
        f'<rect {attribute}x="{at.x:g}" y="{at.y:g}" width="{at.width:g}" height="{at.height:g}"'
        f' rx="{radius}"/>'
    )


def _small(cells: Iterable[tuple[box_layout.BoxPosition, box_layout.Cell]]) -> Iterator[str]:
    """Squares of one class as one path: 2 048 of them are a few kilobytes."""
    paths: dict[str, list[str]] = {}
    for at, cell in cells:
        step = f"M{at.x:g} {at.y:g}h{at.width:g}v{at.height:g}h-{at.width:g}z"
        paths.setdefault(cell.classes, []).append(step)
    for classes, steps in paths.items():
        yield f'<path class="{classes}" d="{"".join(steps)}"/>\n'


# Legend, style, text ----------------------------------------------------------------------------


def _legend(
    machine: topology.Topology, owners: Sequence[str], top: float, width: float
) -> Iterator[tuple[int, str]]:
    """Legend of the colours that occur: the row, and the drawing."""
    entries = [("node", "NUMA node"), ("memory", "memory")] if machine.nodes else []
    if any(cpu.l3 is not None for cpu in machine.cpus):
        entries.append(("l3", "L3"))
    entries += [("core", "core"), ("cpu", "CPU")]
    entries += [(f"cpu {_class(word)}", word) for word in owners]
    for name in ("isolated", "nohz_full"):
        if getattr(machine, name) & machine.present:
            entries.append((f"cpu {name}", name))
    if any(not cpu.online for cpu in machine.cpus):
        entries.append(("cpu offline", "offline"))
    if machine.devices:
        entries.append(("device", "PCI device"))
    x, row = 0.0, 0
    for classes, text in entries:
        need = 30 + box_layout.width_of(text)
        if x and x + need > width:
            x, row = 0.0, row + 1
        y = top + 10 + 24 * row
        at = box_layout.BoxPosition(_MARGIN + x, y, 14, 14)
        label = f'<text x="{_MARGIN + x + 19:g}" y="{y + 11:g}">{_text(text)}</text>'
        group = classes if classes.split()[0] != "cpu" else ""
        rect = _rect(at, "" if group else classes, radius=3)
        yield row, f'<g class="{group or "key"}">{rect}{label}</g>\n'
        x += need


def _style(owners: Iterable[str]) -> str:
    fills: list[tuple[str, str, str, str, str]] = []
    for kind, colours in _COLOURS.items():
        own = f".{kind}" if kind.startswith("cpu") else f".{kind}>rect"
        fills.append((own, *colours))
    spare = iter(_SPARE * (1 + len(tuple(owners)) // len(_SPARE)))
    line = (_COLOURS["cpu"][1], _COLOURS["cpu"][3])
    for word in owners:
        light, dark = _OWNERS[word.lower() if word.lower() in _OWNERS else next(spare)]
        fills.append((f".cpu.{_class(word)}", light, line[0], dark, line[1]))
    bright = "".join(f"{name}{{fill:{a};stroke:{b}}}\n" for name, a, b, _, _ in fills)
    dark = "".join(f"{name}{{fill:{a};stroke:{b}}}\n" for name, _, _, a, b in fills)
    return f"{_STYLE}{bright}@media (prefers-color-scheme:dark){{{_DARK_STYLE}\n{dark}}}\n"


def _description(machine: topology.Topology) -> Iterator[str]:
    """The picture in sentences."""
    yield f"{topology_words.made_by(machine)}."
    online = [cpu for cpu in machine.cpus if cpu.online]
    for socket, members in topology_words.split(online, lambda cpu: cpu.socket):
        cpus = topology_words.compact(topology_words.cpus(members), 60)
        yield f"Socket {topology_words.name(socket)} has {topology_words.counts(members)}: {cpus}."
    for node in machine.nodes:
        cpus = topology_words.compact(node.cpus, 60)
        where = f"CPUs {cpus}" if node.cpus else "no CPUs"
        yield f"NUMA node {node.node}: {topology_words.memory(node.memory_bytes)}, {where}."
    off = machine.offline & machine.present
    if off:
        yield f"Offline: {topology_words.compact(off, 60)}."
