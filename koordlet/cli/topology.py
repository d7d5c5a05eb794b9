"""``koordlet topology``: the machine at a glance, or as one JSON document.

Covers: the table (sockets, then NUMA nodes, L3 domains, cores, CPUs) and the choice of form.
Does not cover: discovery (``host.topology.discovery``), the document (``report.topology_json``).

Rules of the table:
1. 80 columns, for 4 CPUs and for 2 048: sets are written as the kernel accepts them, with a stride
   (``0-78:1/2``) where that is shorter; each core is listed only on machines of up to 64 CPUs.
2. ``?`` is what the machine does not say.
3. Not on a terminal: the same lines without colour.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from koordlet.cli import node_source, options, output
from koordlet.host.devices import netlink
from koordlet.host.recording import roots
from koordlet.host.topology import discovery
from koordlet.model import cpuset, errors, topology
from koordlet.model.record import dataclass
from koordlet.report import documents, topology_json, topology_svg, topology_words

EXAMPLES = """\
koordlet topology                              this machine at a glance
koordlet topology -o json                      everything, for programs
koordlet topology -o svg > machine.svg         a picture
koordlet topology -o svg --owners > cpus.svg   whose each CPU is, by colour
koordlet topology --root machine.tar.gz        a recorded machine
"""
_OPTIONS = {
    "--owners": "with -o svg: colour each CPU by its owner; asks the running agent, or decides what"
    " it would decide",
}

_WIDTH = 80
_WARNING, _ABOUT = -1, -2
_EACH_CORE_UP_TO = 64
_WARNINGS_SHOWN = 10
_DEVICES_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One line and its depth in the machine, which chooses indent and colour.

    Below zero: no part of the machine (``_ABOUT`` it as a whole, ``_WARNING``), so no indent.
    """

    level: int
    text: str


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    options.root(parser)
    options.output(parser, ("table", "json", "svg"))
    options.declare(parser, _OPTIONS)
    node_source.add_source(parser)


def run(args: argparse.Namespace) -> int:
    """Discover and print; what cannot be read is in the warnings, not in the exit status."""
    if args.owners and args.output != "svg":
        raise errors.UsageError(
            "only a picture has colours", culprit="--owners", fix="add -o svg, or koordlet plan"
        )
    for option in ("address", "pods"):
        if getattr(args, option) is not None and not args.owners:
            raise errors.UsageError(
                "nobody was asked for owners", culprit=f"--{option}", fix="add --owners -o svg"
            )
    host = roots.open_root(args.root)
    machine = netlink.complete(host, discovery.discover(host))
    if args.output == "json":
        output.print_json(topology_json.document(machine))
    elif args.output == "svg":
        sys.stdout.write(topology_svg.picture(machine, _owners(args)))
    elif sys.stdout.isatty():
        _print_coloured(lines(machine))
    else:
        sys.stdout.write("".join(f"{plain(line)}\n" for line in lines(machine)))
    return 0


def _owners(args: argparse.Namespace) -> dict[int, str]:
    """CPU to the word for its owner; empty where nobody asked."""
    if not args.owners:
        return {}
    every = documents.rows(node_source.cpus(args), "cpus")
    pairs = ((document.get("cpu"), str(document.get("owner"))) for document in every)
    return {cpu: owner for cpu, owner in pairs if isinstance(cpu, int)}


def plain(line: Line) -> str:
    """A line for a file or a pipe."""
    return output.visible("  " * max(line.level, 0) + line.text).rstrip()


_STYLES = {_WARNING: "yellow", 0: "bold", 1: "cyan", 2: "green", 3: "", 4: "dim"}


def _print_coloured(rows: Iterable[Line]) -> None:
    """On a terminal; rich is imported only here."""
    from rich import console, text  # noqa: PLC0415

    out = console.Console(highlight=False, soft_wrap=True)
    for row in rows:
        out.print(text.Text(plain(row), style=_STYLES.get(row.level, "")))


# The table --------------------------------------------------------------------------------------


def lines(machine: topology.Topology) -> Iterator[Line]:
    """The whole table."""
    yield from _wrapped(0, ", ".join(topology_words.summary(machine)))
    yield from _wrapped(_ABOUT, topology_words.made_by(machine))
    for label, cpus in (
        ("offline", machine.offline & machine.present),
        ("isolated", machine.isolated),
        ("nohz_full", machine.nohz_full),
    ):
        if cpus:
            yield Line(_ABOUT, f"{label} {topology_words.compact(cpus, 50)}")
    yield Line(_ABOUT, "")
    nodes = {node.node: node for node in machine.nodes}
    online = [cpu for cpu in machine.cpus if cpu.online]
    for socket, members in topology_words.split(online, lambda cpu: cpu.socket):
        yield Line(0, f"socket {topology_words.name(socket)}: {topology_words.counts(members)}")
        yield from _nodes(machine, members, nodes)
    yield from _bare_nodes(machine)
    yield from _devices(machine)
    yield from _warnings(machine)


def _nodes(
    machine: topology.Topology, members: Sequence[topology.Cpu], nodes: dict[int, topology.Node]
) -> Iterator[Line]:
    for node, inside in topology_words.split(members, lambda cpu: cpu.node):
        numa_node = nodes.get(node) if node is not None else None
        if numa_node is not None:
            yield from _node(numa_node, inside)
        elif machine.nodes:
            yield Line(1, f"node ?: CPUs {topology_words.compact(topology_words.cpus(inside), 50)}")
        for l3, sharing in topology_words.split(inside, lambda cpu: cpu.l3):
            yield from _l3(machine, l3, sharing)


def _node(node: topology.Node, inside: Sequence[topology.Cpu]) -> Iterator[Line]:
    cpus = (
        f"CPUs {topology_words.compact(topology_words.cpus(inside), 44)}" if inside else "no CPUs"
    )
    distances = " ".join(str(distance) for distance in node.distances)
    parts = [topology_words.memory(node.memory_bytes), cpus]
    if distances and len(node.distances) <= 8:
        parts.append(f"distances {distances}")
    used = [f"{p.total} x {size}" for size, p in node.hugepages.items() if p.total]
    yield from _wrapped(1, f"node {node.node}: {', '.join(parts)}")
    if used:
        yield Line(2, f"huge pages {', '.join(used)}")


def _l3(
    machine: topology.Topology, l3: int | None, sharing: Sequence[topology.Cpu]
) -> Iterator[Line]:
    cpus = topology_words.cpus(sharing)
    if l3 is None:
        yield Line(2, f"L3 ?: {topology_words.counts(sharing)}")
    else:
        what = next((c for c in machine.caches if c.level == 3 and cpus <= c.cpus), None)
        size = f", {topology_words.size(what.bytes)}" if what and what.bytes else ""
        ways = f", {what.ways} ways" if what and what.ways else ""
        yield Line(2, f"L3 {l3}{size}{ways}: {topology_words.counts(sharing)}")
    for shape, cores in _core_kinds(sharing):
        if len(machine.cpus) <= _EACH_CORE_UP_TO:
            text = f"{shape}: " + "  ".join(str(core) for core in cores)
            yield from _wrapped(3, text)
        else:
            yield Line(3, f"{shape}: CPUs {topology_words.compact(cpuset.union(cores), 44)}")


def _core_kinds(sharing: Sequence[topology.Cpu]) -> Iterator[tuple[str, list[cpuset.CPUSet]]]:
    """Cores of the same kind together, in the order of their lowest CPU."""
    kinds: dict[str, list[cpuset.CPUSet]] = {}
    for threads in topology_words.cores(sharing):
        count = "?" if threads[0].core is None else len(threads)
        shape = ", ".join((f" x {count}", *topology_words.speed(threads[0])))
        kinds.setdefault(shape, []).append(topology_words.cpus(threads))
    for shape, cores in kinds.items():
        yield f"{topology_words.many(len(cores), 'core')}{shape}", cores


def _bare_nodes(machine: topology.Topology) -> Iterator[Line]:
    """Nodes that no online CPU is in: memory only, or nothing at all."""
    used = {cpu.node for cpu in machine.cpus if cpu.online}
    bare = [node for node in machine.nodes if node.node not in used]
    if bare:
        yield Line(0, f"{topology_words.many(len(bare), 'node')} without online CPUs")
    for node in bare:
        yield from _node(node, [])


def _devices(machine: topology.Topology) -> Iterator[Line]:
    """PCI devices node by node; those of one kind and driver are one line."""
    if machine.devices:
        yield Line(0, topology_words.many(len(machine.devices), "PCI device"))
    nodes = sorted({device.node for device in machine.devices}, key=lambda n: (n is None, n or 0))
    for node in nodes:
        yield Line(1, f"node {topology_words.name(node)}")
        here = [device for device in machine.devices if device.node == node]
        for kind, alike in topology_words.devices(here):
            shown = [device.name or device.address for device in alike[:_DEVICES_SHOWN]]
            more = f" ... ({len(alike)})" if len(alike) > _DEVICES_SHOWN else ""
            yield from _wrapped(2, f"{kind}: {'  '.join(shown)}{more}")


def _warnings(machine: topology.Topology) -> Iterator[Line]:
    for warning in machine.warnings[:_WARNINGS_SHOWN]:
        yield Line(_WARNING, f"warning: {warning}")
    more = len(machine.warnings) - _WARNINGS_SHOWN
    if more > 0:
        yield Line(_WARNING, f"warning: ... and {more} more, see -o json")


# Words ------------------------------------------------------------------------------------------


def _wrapped(level: int, text: str) -> Iterator[Line]:
    width = _WIDTH - 2 * max(level, 0)
    for row in textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False):
        yield Line(level, row)
