"""The list of measured quantities: each is declared once, and every surface is written from it.

Covers: where a quantity is read from, its meter (which has the unit), its JSON key, its field in
the feed, its resource in NodeMetric, its metric families with help, labels and bounds.
Does not cover: whose series a family has (``scopes``), the writers (``usage_families``,
``peer_families``, ``node_json``, ``rpc.encode_usage``, ``objects.metric_object``), measuring
(``host.counters``, ``history``).

Rules:
1. A new quantity is one row here, and a field in ``feed.proto`` where schedulers shall know it.
2. The unit of the meter says how a number is spelled: nobody counts half a byte.
3. Families have the order of the rows, scope by scope. So have JSON keys, but for those that are
   ``late``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from koordlet.model import counters, meter
from koordlet.model.record import dataclass
from koordlet.report import families, scopes, view

#: Units of which a part is nothing.
_WHOLE = frozenset({"bytes", "bytes/s", "tasks", "inodes"})


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A metric family of one quantity, or of several that differ in a label."""

    scope: scopes.Scope
    #: Behind the stem of the scope.
    name: str
    help: str
    labels: scopes.Labels = ()
    #: Instead of those of the scope.
    bound: str = ""
    most: int = 0
    #: Instead of the values of the table.
    rows: Callable[[view.ReportView], families.Rows] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """A number that is measured of each subject of one table."""

    #: The table of ``counters.Usage``; the history calls it the same.
    table: str
    #: ``None``: memory, with a meter for each NUMA node.
    what: meter.Meter | None
    #: Dots lead into objects. Empty: in no document.
    key: str = ""
    series: tuple[Series, ...] = ()
    #: Values of the further labels of the series.
    values: scopes.Labels = ()
    late: bool = False
    #: Quantities of one key are a list.
    several: bool = False
    #: Of the feed's message about a subject of the table.
    field: str = ""
    #: In NodeMetric, and under Koordinator's metric names.
    resource: str = ""

    def meters(self, used: counters.Usage) -> Iterator[tuple[scopes.Labels, meter.Meter]]:
        """Label values and meter; with one NUMA node its memory is what is shown anyway."""
        if self.what is not None:
            yield self.values, self.what
        elif len(used.numa.slots) > 1:
            for node in used.numa.slots:
                yield (node,), meter.numa_memory(int(node))


def _row(
    table: str, what: meter.Meter | None, key: str, *series: Series, value: str = "", **more: Any
) -> Quantity:
    """A quantity with its families, and its value of their label where they have one more."""
    return Quantity(table, what, key, series, (value,) if value else (), **more)


def _per(name: str, text: str, *several: scopes.Scope) -> Iterator[Series]:
    """The same family for several scopes."""
    return (Series(scope, name, f"Per {scope.word}: {text}") for scope in several)


def _pressures(table: str, ratio: Series, averages: Series | None = None) -> Iterator[Quantity]:
    """The stalled share of time by resource and degree; of the node also the kernel's averages."""
    for pressure in meter.PRESSURES:
        for degree, meters in (("some", pressure.some), ("full", pressure.full)):
            values = (pressure.resource, degree)
            yield Quantity(
                table, meters[3], f"pressure.{'.'.join(values)}", (ratio,), values, late=True
            )
            for seconds, average in zip(meter.AVERAGES, meters, strict=False):
                if averages is not None:
                    yield Quantity(table, average, "", (averages,), (*values, str(seconds)))


# What is used by a cgroup -------------------------------------------------------------------------

_PODS, _BOXES = scopes.WORKLOADS, scopes.CONTAINERS
_THROTTLED = "share of CFS periods that were throttled."
_TRAFFIC = Series(
    _PODS,
    "network_bytes_rate",
    "Network traffic of a workload with its own network namespace, in bytes per second.",
    ("direction",),
    "2 per workload",
    8192,
)
_WORK = Series(
    scopes.PEER_CONTAINERS,
    "cpi",
    "Cycles and instructions of a container in the last counting window.",
    ("cpi_field",),
)
_STALLED = Series(
    _PODS,
    "pressure_ratio",
    "PSI of a workload: share of time in which some or all of its tasks stalled on a resource.",
    ("resource", "degree"),
    "6 per workload",
    16384,
)
_CPI = "Cycles per instruction of a container, or of a workload without containers (empty label)."
_NUMA_MEMORY = "Memory of a workload by NUMA node, on machines with several."
_WITHOUT_CACHE = "working set, that is memory without inactive page cache."
_group, _work = functools.partial(_row, "groups"), functools.partial(_row, "work")
_OF_CGROUPS = (
    _group(
        meter.CPU,
        "cpuCores",
        Series(_PODS, "cpu_cores", "CPU use of a workload, in cores.", rows=scopes.workload_cores),
        Series(_BOXES, "cpu_cores", "CPU use of a container, in cores."),
        resource="cpu",
    ),
    _group(
        meter.THROTTLED, "throttledRatio", *_per("cpu_throttled_ratio", _THROTTLED, _PODS, _BOXES)
    ),
    _group(
        meter.WORKING_SET,
        "memoryBytes",
        *_per("memory_working_set_bytes", _WITHOUT_CACHE, _PODS, _BOXES),
    ),
    _group(
        meter.MEMORY,
        "memoryWithCacheBytes",
        *_per("memory_usage_bytes", "memory including page cache.", _PODS, _BOXES),
    ),
    _group(meter.MEMORY_ANON, "", resource="memory"),
    _group(
        meter.MEMORY_COLD,
        "memoryColdBytes",
        *_per("memory_cold_bytes", "cold memory, not accessed for five minutes.", _PODS, _BOXES),
    ),
    _group(
        None, "memoryNumaBytes", Series(scopes.WORKLOAD_NODES, "memory_numa_bytes", _NUMA_MEMORY)
    ),
    _work(
        meter.CPI, "cyclesPerInstruction", Series(scopes.COUNTED, "cycles_per_instruction", _CPI)
    ),
    _work(meter.CYCLES, "", _WORK, value="cycles"),
    _work(meter.INSTRUCTIONS, "", _WORK, value="instructions"),
    _group(
        meter.OOM_KILLS,
        "",
        Series(
            _PODS,
            "memory_oom_kills_rate",
            "Per workload: OOM kills per second.",
            rows=scopes.workload_kills,
        ),
    ),
    _group(
        meter.IO_READ,
        "readBytesPerSecond",
        *_per("io_read_bytes_rate", "bytes read from block devices per second.", _PODS),
        late=True,
    ),
    _group(
        meter.IO_WRITE,
        "writtenBytesPerSecond",
        *_per("io_write_bytes_rate", "bytes written to block devices per second.", _PODS),
        late=True,
    ),
    _group(meter.PIDS, "pids", *_per("pids", "processes and threads.", _PODS)),
    *_pressures("groups", _STALLED),
    *(
        _row("traffic", what, f"network.{word}BytesPerSecond", _TRAFFIC, value=word)
        for what, word in ((meter.POD_RECEIVED, "received"), (meter.POD_SENT, "sent"))
    ),
)

# What is used by a QoS class ----------------------------------------------------------------------

_CLASS_TRAFFIC = Series(
    scopes.CLASSES,
    "network_bytes_rate",
    "Network traffic by QoS class of workloads with their own network namespace, in bytes per"
    " second.",
    ("direction",),
    "2 per QoS class, 8",
)
_CLASS_PRESSURE = Series(
    scopes.CLASSES,
    "pressure_ratio",
    "PSI by QoS class: share of time in which some tasks of its most stalled workload stalled.",
    ("resource",),
    "3 per QoS class, 12",
)
_REST = "by QoS class; class system is everything that is not a workload."
_share = functools.partial(_row, "shares")
_OF_CLASSES = (
    _share(
        meter.CPU_SHARE,
        "cpuCores",
        Series(scopes.SHARES, "cpu_cores", f"CPU use {_REST}"),
        field="cpu_milli",
        resource="cpu",
    ),
    _share(
        meter.MEMORY_SHARE,
        "memoryBytes",
        Series(scopes.SHARES, "memory_bytes", f"Memory without page cache {_REST}"),
        field="memory_bytes",
        resource="memory",
    ),
    *(
        _share(what, key, *_per(name, text, scopes.CLASSES), late=name != "cpu_throttled_ratio")
        for name, what, key, text in (
            ("pids", meter.PIDS_SHARE, "pids", "processes and threads."),
            (
                *("io_read_bytes_rate", meter.IO_READ_SHARE),
                *("readBytesPerSecond", "bytes read per second."),
            ),
            (
                *("io_write_bytes_rate", meter.IO_WRITE_SHARE),
                *("writtenBytesPerSecond", "bytes written per second."),
            ),
            ("cpu_throttled_ratio", meter.THROTTLED_SHARE, "throttledRatio", _THROTTLED),
        )
    ),
    *(
        _share(what, f"network.{word}BytesPerSecond", _CLASS_TRAFFIC, value=word, late=True)
        for what, word in ((meter.RECEIVED_SHARE, "received"), (meter.SENT_SHARE, "sent"))
    ),
    *(
        _share(
            stalled,
            f"pressure.{pressure.resource}.some",
            _CLASS_PRESSURE,
            value=pressure.resource,
            late=True,
        )
        for pressure, stalled in zip(meter.PRESSURES, meter.STALLED_SHARES, strict=True)
    ),
)

# What is used of the node, and of its parts -------------------------------------------------------

_MEMORY = Series(scopes.NODE, "memory_bytes", "Memory of the node by kind.", ("kind",), "6")
_LOAD = Series(scopes.NODE, "load", "Load average by minutes.", ("minutes",), "3")
_LINK = Series(
    scopes.LINKS,
    "bytes_rate",
    "Traffic of a network interface in bytes per second.",
    ("direction",),
)
_SPACE, _INODES = (
    Series(scopes.DISKS, name, f"{what} of the file system that contains a directory.", ("kind",))
    for name, what in (("bytes", "Space"), ("inodes", "Inodes"))
)
_RATIO = Series(
    scopes.NODE,
    "pressure_ratio",
    "PSI of the node: share of time in which some or all tasks stalled on a resource.",
    ("resource", "degree"),
    "6",
)
_PERCENT = Series(
    scopes.NODE,
    "pressure_percent",
    "PSI averages of the kernel in percent, by window in seconds.",
    ("resource", "degree", "seconds"),
    "18",
)
_TAKEN = "Memory of the node that is not available, in bytes."
_DELAY = "Time that runnable tasks waited for a CPU, in seconds per second, summed over all CPUs."
_node, _disk = functools.partial(_row, "node"), functools.partial(_row, "disks")
_OF_NODE = (
    _node(
        meter.CPU,
        "cpuCores",
        Series(scopes.PEER_NODE, "used_cpu_cores", "CPU use of the node, in cores."),
        field="cpu_milli",
        resource="cpu",
    ),
    _node(
        meter.WORKING_SET,
        "memoryBytes",
        Series(scopes.PEER_NODE, "used_memory_bytes", _TAKEN),
        field="memory_bytes",
        resource="memory",
    ),
    _node(meter.MEMORY_TOTAL, "memoryTotalBytes", _MEMORY, value="total"),
    _node(meter.MEMORY_AVAILABLE, "memoryAvailableBytes", _MEMORY, value="available"),
    _node(meter.MEMORY_FREE, "", _MEMORY, value="free"),
    _node(meter.MEMORY_CACHE, "", _MEMORY, value="cache"),
    _node(meter.MEMORY_COLD, "memoryColdBytes", _MEMORY, value="cold"),
    _node(meter.SWAP_FREE, "", _MEMORY, value="swap_free"),
    *_pressures("node", _RATIO, _PERCENT),
    _node(meter.LOAD_1, "load", _LOAD, value="1", several=True),
    _node(meter.LOAD_5, "load", _LOAD, value="5", several=True),
    _node(meter.LOAD_15, "load", _LOAD, value="15", several=True),
    _node(meter.RUN_DELAY, "", Series(scopes.NODE, "run_delay_ratio", _DELAY)),
    _row("cpus", meter.CPU, "", Series(scopes.CPUS, "usage_ratio", "Busy share of a CPU.")),
    Quantity("numa", meter.CPU, "cpuCores", resource="cpu"),
    Quantity("numa", meter.WORKING_SET, "memoryBytes", resource="memory"),
    Quantity("numa", meter.MEMORY_TOTAL, "memoryTotalBytes"),
    _row("links", meter.RECEIVED, "receivedBytesPerSecond", _LINK, value="received"),
    _row("links", meter.SENT, "sentBytesPerSecond", _LINK, value="sent"),
    _disk(meter.SPACE_TOTAL, "totalBytes", _SPACE, value="total"),
    _disk(meter.SPACE_AVAILABLE, "availableBytes", _SPACE, value="available"),
    _disk(meter.INODES_TOTAL, "inodes", _INODES, value="total"),
    _disk(meter.INODES_FREE, "inodesFree", _INODES, value="free"),
)
QUANTITIES = (*_OF_CGROUPS, *_OF_CLASSES, *_OF_NODE)


@functools.cache
def keyed(*tables: str) -> tuple[tuple[Quantity, tuple[str, ...], str, bool], ...]:
    """The quantities of some tables that have a JSON key.

    With each the objects around the key, the key in there, and whether the number is whole. Equal
    objects around a key are the same tuple.
    """
    rows = [row for row in QUANTITIES if row.table in tables and row.key]
    places: dict[tuple[str, ...], tuple[str, ...]] = {}
    made = []
    for row in sorted(rows, key=lambda row: row.late):
        *folders, key = row.key.split(".")
        place = places.setdefault(tuple(folders), tuple(folders))
        made.append((row, place, key, row.what is None or row.what.unit in _WHOLE))
    return tuple(made)


@functools.cache
def recorded(table: str) -> tuple[tuple[str, meter.Meter], ...]:
    """What the agent's history keeps of the subjects of a table: JSON key and meter."""
    rows = (row for row in QUANTITIES if row.table == table and row.key and not row.several)
    return tuple((row.key, row.what) for row in rows if row.what is not None)


@functools.cache
def fields(table: str) -> tuple[tuple[str, meter.Meter], ...]:
    """What the feed says of the subjects of a table: field and meter."""
    rows = (row for row in QUANTITIES if row.table == table and row.field)
    return tuple((row.field, row.what) for row in rows if row.what is not None)


@functools.cache
def resources(table: str) -> tuple[tuple[str, meter.Meter], ...]:
    """What NodeMetric says of the subjects of a table: resource and meter."""
    rows = (row for row in QUANTITIES if row.table == table and row.resource)
    return tuple((row.resource, row.what) for row in rows if row.what is not None)
