"""The machine as nested boxes: sockets, NUMA nodes, L3 domains, cores, CPUs.

Covers: what is in which box, what the boxes say, what is folded on large machines.
Does not cover: where they stand (``report.box_layout``), how they look (``report.topology_svg``).

Rules:
1. Up to ``EACH_CPU_UP_TO`` CPUs each core is a box and each CPU has its number. Beyond, cores of a
   kind that share an L3 are one box with a small square for each CPU, a column for each core.
2. Beyond ``EACH_L3_UP_TO`` L3 domains in a node, equal ones are one box, too.
3. A level that the machine does not speak of at all is left out; what is unknown for some is ``?``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from koordlet.model import cpuset, topology
from koordlet.model.record import dataclass
from koordlet.report import box_layout, topology_words

EACH_CPU_UP_TO = 128
EACH_L3_UP_TO = 16
_EACH_DEVICE_UP_TO = 12
_SHORT = {"Data": "d", "Instruction": "i", "Unified": ""}
_WIDTH = 34
_TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class _View:
    """The machine, and what is asked of it again and again."""

    machine: topology.Topology
    classes: Mapping[int, str]
    small: bool
    #: Cores differ in speed, so each says its own.
    uneven: bool
    caches: Mapping[int, Sequence[topology.Cache]]


def build(machine: topology.Topology, classes: Mapping[int, str]) -> box_layout.Box:
    """The box of the machine. ``classes``: further classes of a CPU, such as its owner's."""
    online = [cpu for cpu in machine.cpus if cpu.online]
    view = _View(
        machine,
        classes,
        small=len(machine.cpus) > EACH_CPU_UP_TO,
        uneven=len({(cpu.capacity, cpu.max_khz) for cpu in online}) > 1,
        caches=_by_cpu(machine),
    )
    bare = [node for node in machine.nodes if node.node not in {cpu.node for cpu in online}]
    known = {node.node for node in machine.nodes}
    label = [topology_words.made_by(machine), ", ".join(topology_words.summary(machine))]
    if machine.warnings:
        label.append(f"{topology_words.many(len(machine.warnings), 'warning')}, see -o json")
    return box_layout.Box(
        kind="machine",
        label=tuple(label),
        sections=(
            tuple(_sockets(view, online)),
            tuple(_bare_node(view, node) for node in bare),
            tuple(_devices(device for device in machine.devices if device.node not in known)),
            tuple(_offline(view)),
        ),
    )


def _by_cpu(machine: topology.Topology) -> Mapping[int, Sequence[topology.Cache]]:
    caches: dict[int, list[topology.Cache]] = {}
    for cache in machine.caches:
        for cpu in cache.cpus:
            caches.setdefault(cpu, []).append(cache)
    return caches


# From the machine down to the L3 ----------------------------------------------------------------


def _sockets(view: _View, online: Sequence[topology.Cpu]) -> Iterator[box_layout.Box]:
    shown: set[int] = set()
    for socket, members in topology_words.split(online, lambda cpu: cpu.socket):
        yield box_layout.Box(
            kind="socket",
            label=(f"socket {topology_words.name(socket)}: {topology_words.counts(members)}",),
            sections=(tuple(_nodes(view, members, shown)),),
        )


def _nodes(
    view: _View, members: Sequence[topology.Cpu], shown: set[int]
) -> Iterator[box_layout.Box]:
    """The nodes of a socket. One that spans sockets shows its memory and devices once."""
    nodes = {node.node: node for node in view.machine.nodes}
    for node, inside in topology_words.split(members, lambda cpu: cpu.node):
        domains = tuple(_domains(view, inside))
        numa_node = nodes.get(node) if node is not None else None
        if numa_node is not None and numa_node.node in shown:
            label = (f"NUMA node {numa_node.node}, continued",)
            yield box_layout.Box(kind="node", label=label, sections=(domains,))
        elif numa_node is not None:
            shown.add(numa_node.node)
            yield _node(view, numa_node, domains)
        elif view.machine.nodes:
            yield box_layout.Box(kind="node", label=("NUMA node ?",), sections=(domains,))
        else:
            yield from domains


def _node(view: _View, node: topology.Node, domains: tuple[box_layout.Box, ...]) -> box_layout.Box:
    bare = domains and not node.memory_bytes
    what = f", {topology_words.memory(node.memory_bytes)}" if bare else ""
    label = [f"NUMA node {node.node}{what}"]
    if 1 < len(node.distances) <= 8:
        label.append("distances " + " ".join(str(distance) for distance in node.distances))
    memory = [topology_words.memory(node.memory_bytes)]
    memory += [f"{p.total} {_TIMES} {size} pages" for size, p in node.hugepages.items() if p.total]
    return box_layout.Box(
        kind="node",
        label=tuple(label),
        sections=(
            (box_layout.Box(kind="memory", label=tuple(memory)),) if node.memory_bytes else (),
            domains,
            tuple(_devices(device for device in view.machine.devices if device.node == node.node)),
        ),
    )


def _bare_node(view: _View, node: topology.Node) -> box_layout.Box:
    """A node that no running CPU is in."""
    made = _node(view, node, ())
    why = "no CPUs" if node.memory_bytes else f"no CPUs, {topology_words.memory(node.memory_bytes)}"
    return dataclasses.replace(made, label=(f"{made.label[0]}: {why}", *made.label[1:]))


def _domains(view: _View, members: Sequence[topology.Cpu]) -> Iterator[box_layout.Box]:
    """The L3 domains of a node; without any L3 in the machine, the cores stand alone."""
    if not any(cpu.l3 is not None for cpu in view.machine.cpus):
        yield from _cores(view, members)
        return
    domains = topology_words.split(members, lambda cpu: cpu.l3)
    if not view.small or len(domains) <= EACH_L3_UP_TO:
        for l3, sharing in domains:
            yield _domain(view, f"L3 {topology_words.name(l3)}", l3, sharing)
        return
    alike: dict[tuple[object, ...], list[topology.Cpu]] = {}
    count: dict[tuple[object, ...], int] = {}
    for l3, sharing in domains:
        key = (_l3_size(view, l3, sharing), *sorted(_kinds(view, sharing)), len(sharing))
        alike.setdefault(key, []).extend(sharing)
        count[key] = count.get(key, 0) + 1
    for key, sharing in alike.items():
        yield _domain(view, f"{count[key]} {_TIMES} L3", sharing[0].l3, sharing)


def _domain(
    view: _View, name: str, l3: int | None, sharing: Sequence[topology.Cpu]
) -> box_layout.Box:
    size = _l3_size(view, l3, sharing)
    # Nodes inside of a socket may share it: then each node shows its part.
    whole = next((c for c in view.caches.get(sharing[0].cpu, ()) if c.level == 3), None)
    part = whole is not None and bool(whole.cpus - topology_words.cpus(sharing))
    shared = " (shared)" if part and l3 is not None and _TIMES not in name else ""
    return box_layout.Box(
        kind="l3",
        label=(f"{name}{f', {size}' if size else ''}{shared}",),
        sections=(tuple(_cores(view, sharing)),),
    )


def _l3_size(view: _View, l3: int | None, sharing: Sequence[topology.Cpu]) -> str:
    caches = view.caches.get(sharing[0].cpu, ())
    size = next((cache.bytes for cache in caches if cache.level == 3), None)
    return topology_words.size(size) if size and l3 is not None else ""


# Cores ------------------------------------------------------------------------------------------


def _cores(view: _View, sharing: Sequence[topology.Cpu]) -> Iterator[box_layout.Box]:
    if view.small:
        for kind, cores in _kinds(view, sharing).items():
            yield _folded(view, kind, cores)
        return
    clusters: dict[int, list[box_layout.Box]] = {}
    shared: dict[int, list[topology.Cache]] = {}
    for threads in topology_words.cores(sharing):
        wider = _wider(view, threads)
        bits = max((cache.cpus.bits for cache in wider), default=0, key=int.bit_count)
        # Only neighbours that share are in one box; alone, the box would say nothing.
        key = bits or -1 - threads[0].cpu
        clusters.setdefault(key, []).append(_core(view, threads))
        shared.setdefault(key, wider)
    for key, boxes in clusters.items():
        if key < 0:
            yield from boxes
        else:
            label = tuple(_cache(cache) for cache in shared[key])
            yield box_layout.Box(kind="l2", label=label, sections=(tuple(boxes),))


def _wider(view: _View, threads: Sequence[topology.Cpu]) -> list[topology.Cache]:
    """The caches below the L3 that this core shares with other cores."""
    own = topology_words.cpus(threads)
    caches = view.caches.get(threads[0].cpu, ())
    return [cache for cache in caches[::-1] if cache.level < 3 and cache.cpus - own]


def _core(view: _View, threads: Sequence[topology.Cpu]) -> box_layout.Box:
    first = threads[0]
    return box_layout.Box(
        kind="core",
        label=(
            f"core {topology_words.name(first.core)}",
            *_speed(view, first),
            *_private(view, threads),
        ),
        strips=tuple((_cell(view, thread),) for thread in threads),
        columns=4,
    )


def _private(view: _View, threads: Sequence[topology.Cpu]) -> Iterator[str]:
    """The caches of this core alone, largest first."""
    own = topology_words.cpus(threads)
    count: dict[str, int] = {}
    instances = {
        (c.level, c.type, c.cpus.bits): c for t in threads for c in view.caches.get(t.cpu, ())
    }
    for instance in sorted(instances.values(), key=lambda c: (-c.level, c.type)):
        if instance.level < 3 and instance.cpus <= own:
            count[_cache(instance)] = count.get(_cache(instance), 0) + 1
    for text, times in count.items():
        yield text if times == 1 else f"{times} {_TIMES} {text}"


def _cache(cache: topology.Cache) -> str:
    size = f" {topology_words.size(cache.bytes)}" if cache.bytes else ""
    return f"L{cache.level}{_SHORT.get(cache.type, '')}{size}"


def _speed(view: _View, cpu: topology.Cpu) -> Iterator[str]:
    return topology_words.speed(cpu) if view.uneven else iter(())


def _kinds(
    view: _View, sharing: Sequence[topology.Cpu]
) -> dict[tuple[str, ...], list[list[topology.Cpu]]]:
    """Cores of one kind together: as many threads, the same speed and caches."""
    kinds: dict[tuple[str, ...], list[list[topology.Cpu]]] = {}
    for threads in topology_words.cores(sharing):
        cores = f"cores {_TIMES} {len(threads)}" if len(threads) > 1 else "cores"
        caches = " ".join((*_private(view, threads),))
        key = (cores, *_speed(view, threads[0]), caches)
        kinds.setdefault(key, []).append(threads)
    return kinds


def _folded(
    view: _View, kind: tuple[str, ...], cores: Sequence[Sequence[topology.Cpu]]
) -> box_layout.Box:
    cpus = cpuset.union(topology_words.cpus(core) for core in cores)
    alone = len(cores) == 1
    head = f"1 {kind[0].replace('cores', 'core')}" if alone else f"{len(cores)} {kind[0]}"
    strips = [[cpu] for cpu in cores[0]] if alone else cores
    return box_layout.Box(
        kind="core",
        label=(
            head,
            *(word for word in kind[1:] if word),
            f"CPUs {topology_words.compact(cpus, _WIDTH)}",
        ),
        strips=tuple(tuple(_cell(view, core) for core in strip) for strip in strips),
        small=True,
        columns=min(len(strips), 32),
    )


# CPUs, devices ----------------------------------------------------------------------------------


def _cell(view: _View, cpu: topology.Cpu) -> box_layout.Cell:
    columns = ("core", "socket", "node", "l3") if cpu.online else ()
    places = [f"{column} {topology_words.name(getattr(cpu, column))}" for column in columns]
    marks = [name for name in ("isolated", "nohz_full") if cpu.cpu in getattr(view.machine, name)]
    marks += [] if cpu.online else ["offline"]
    classes = " ".join(word for word in ("cpu", view.classes.get(cpu.cpu), *marks) if word)
    title = ", ".join((f"CPU {cpu.cpu}", *places, *marks))
    return box_layout.Cell(text=str(cpu.cpu), classes=classes, title=title)


def _offline(view: _View) -> Iterator[box_layout.Box]:
    cpus = [cpu for cpu in view.machine.cpus if not cpu.online]
    if not cpus:
        return
    text = topology_words.compact(topology_words.cpus(cpus), 60)
    yield box_layout.Box(
        kind="off",
        label=(f"{topology_words.many(len(cpus), 'CPU')} offline: {text}",),
        strips=tuple((_cell(view, cpu),) for cpu in cpus),
        small=view.small,
        columns=64 if view.small else 16,
    )


def _devices(attached: Iterable[topology.Device]) -> Iterator[box_layout.Box]:
    """Each device, or, where there are many, as many as there are of each kind."""
    devices = list(attached)
    if len(devices) <= _EACH_DEVICE_UP_TO:
        for device in devices:
            name = f" {device.name}" if device.name else ""
            driver = f", {device.driver}" if device.driver else ""
            where = "" if device.node is not None else ", node unknown"
            yield box_layout.Box(
                kind="device",
                label=(f"{device.kind or 'device'}{name}", f"{device.address}{driver}"),
                title=f"{device.kind or 'device'}{name}, PCI {device.address}{driver}{where}",
            )
        return
    for kind, alike in topology_words.devices(devices):
        addresses = f"{alike[0].address} … {alike[-1].address}"
        label = (f"{len(alike)} {_TIMES} {kind}", addresses if len(alike) > 1 else alike[0].address)
        yield box_layout.Box(kind="device", label=label)
