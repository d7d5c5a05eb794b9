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
4. What grows is exported as it grows (``total``), so that a scraper computes rates over windows of
   its own and misses nothing between two scrapes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from koordlet.model import meter
from koordlet.report import families, measured, scopes

#: Units of which a part is nothing.
_WHOLE = frozenset({"bytes", "bytes/s", "tasks", "inodes"})


def _row(
    table: str,
    what: meter.Meter | None,
    key: str,
    *series: measured.Series,
    value: str = "",
    **more: Any,
) -> measured.Quantity:
    """A quantity with its families, and its value of their label where they have one more."""
    return measured.Quantity(table, what, key, series, (value,) if value else (), **more)


#: A total, and a rate that was exported before it.
_total = functools.partial(measured.per, total=True)
_old = functools.partial(measured.per, group=families.DEPRECATED)


def _pressures(
    table: str,
    stalled: measured.Series,
    ratio: measured.Series,
    averages: measured.Series | None = None,
) -> Iterator[measured.Quantity]:
    """The stalled time by resource and degree; of the node also the kernel's averages."""
    for pressure in meter.PRESSURES:
        for degree, meters in (("some", pressure.some), ("full", pressure.full)):
            values = (pressure.resource, degree)
            yield measured.Quantity(
                table,
                meters[3],
                f"pressure.{'.'.join(values)}",
                (stalled, ratio),
                values,
                late=True,
            )
            for seconds, average in zip(meter.AVERAGES, meters, strict=False):
                if averages is not None:
                    yield measured.Quantity(
                        table, average, "", (averages,), (*values, str(seconds))
                    )


# What is used by a cgroup -------------------------------------------------------------------------

_PODS, _BOXES = scopes.WORKLOADS, scopes.CONTAINERS
_THROTTLED = "share of CFS periods that were throttled."
_TRAFFIC, _TRAFFIC_RATE = measured.both(
    _PODS,
    ("network_bytes", "network_bytes_rate"),
    "Network traffic of a workload with its own network namespace{}.",
    ("", ", in bytes per second"),
    labels=("direction",),
    bound="2 per workload",
    most=8192,
)
_WORK = measured.Series(
    scopes.PEER_CONTAINERS,
    "cpi",
    "Cycles and instructions of a container in the last counting window.",
    ("cpi_field",),
)
_STALLED, _STALLED_RATIO = measured.both(
    _PODS,
    ("pressure_stalled_seconds", "pressure_ratio"),
    "PSI of a workload: {} in which some or all tasks stalled on a resource.",
    ("time", "share of time"),
    labels=("resource", "degree"),
    bound="6 per workload",
    most=16384,
    group=families.PRESSURE,
)
_CPI = "Cycles per instruction of a container, or of a workload without containers (empty label)."
_NUMA_MEMORY = "Memory of a workload by NUMA node, on machines with several."
_WITHOUT_CACHE = "working set, that is memory without inactive page cache."
_group, _work = functools.partial(_row, "groups"), functools.partial(_row, "work")
_OF_CGROUPS = (
    _group(
        meter.CPU,
        "cpuCores",
        *_total("cpu_usage_seconds", "CPU time used.", _PODS, _BOXES),
        measured.Series(
            *(_PODS, "cpu_cores", "CPU use of a workload, in cores."),
            group=families.DEPRECATED,
            rows=scopes.workload_cores,
        ),
        *_old("cpu_cores", "CPU use, in cores.", _BOXES),
        resource="cpu",
    ),
    _group(meter.PERIODS, "", *_total("cpu_cfs_periods", "CFS periods.", _PODS, _BOXES)),
    _group(
        meter.THROTTLED_PERIODS,
        "",
        *_total("cpu_cfs_throttled_periods", "CFS periods that were throttled.", _PODS, _BOXES),
    ),
    _group(
        meter.THROTTLED, "throttledRatio", *_old("cpu_throttled_ratio", _THROTTLED, _PODS, _BOXES)
    ),
    _group(
        meter.WORKING_SET,
        "memoryBytes",
        *measured.per("memory_working_set_bytes", _WITHOUT_CACHE, _PODS, _BOXES),
    ),
    _group(
        meter.MEMORY,
        "memoryWithCacheBytes",
        *measured.per("memory_usage_bytes", "memory including page cache.", _PODS, _BOXES),
    ),
    _group(meter.MEMORY_ANON, "", resource="memory"),
    _group(
        meter.MEMORY_COLD,
        "memoryColdBytes",
        *measured.per(
            "memory_cold_bytes", "cold memory, not accessed for five minutes.", _PODS, _BOXES
        ),
    ),
    _group(
        None,
        "memoryNumaBytes",
        measured.Series(scopes.WORKLOAD_NODES, "memory_numa_bytes", _NUMA_MEMORY),
    ),
    _work(
        meter.CPI,
        "cyclesPerInstruction",
        measured.Series(scopes.COUNTED, "cycles_per_instruction", _CPI),
    ),
    _work(meter.CYCLES, "", _WORK, value="cycles"),
    _work(meter.INSTRUCTIONS, "", _WORK, value="instructions"),
    _group(
        meter.OOM_KILLS,
        "",
        measured.Series(
            *(_PODS, "memory_oom_kills", "Per workload: OOM kills."),
            total=True,
            rows=scopes.workload_kills_total,
        ),
        measured.Series(
            *(_PODS, "memory_oom_kills_rate", "Per workload: OOM kills per second."),
            group=families.DEPRECATED,
            rows=scopes.workload_kills,
        ),
    ),
    _group(
        meter.IO_READ,
        "readBytesPerSecond",
        *_total("io_read_bytes", "bytes read from block devices.", _PODS),
        *_old("io_read_bytes_rate", "bytes read from block devices per second.", _PODS),
        late=True,
    ),
    _group(
        meter.IO_WRITE,
        "writtenBytesPerSecond",
        *_total("io_written_bytes", "bytes written to block devices.", _PODS),
        *_old("io_write_bytes_rate", "bytes written to block devices per second.", _PODS),
        late=True,
    ),
    _group(meter.PIDS, "pids", *measured.per("pids", "processes and threads.", _PODS)),
    *_pressures("groups", _STALLED, _STALLED_RATIO),
    *(
        _row("traffic", what, f"network.{word}BytesPerSecond", _TRAFFIC, _TRAFFIC_RATE, value=word)
        for what, word in ((meter.POD_RECEIVED, "received"), (meter.POD_SENT, "sent"))
    ),
)

# What is used by a QoS class ----------------------------------------------------------------------

_CLASS_TRAFFIC = measured.Series(
    scopes.CLASSES,
    "network_bytes_rate",
    "Network traffic by QoS class of workloads with their own network namespace, in bytes per"
    " second.",
    ("direction",),
    "2 per QoS class, 8",
)
_CLASS_PRESSURE = measured.Series(
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
        measured.Series(scopes.SHARES, "cpu_cores", f"CPU use {_REST}"),
        field="cpu_milli",
        resource="cpu",
    ),
    _share(
        meter.MEMORY_SHARE,
        "memoryBytes",
        measured.Series(scopes.SHARES, "memory_bytes", f"Memory without page cache {_REST}"),
        field="memory_bytes",
        resource="memory",
    ),
    *(
        _share(
            what, key, *measured.per(name, text, scopes.CLASSES), late=name != "cpu_throttled_ratio"
        )
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

_MEMORY = measured.Series(
    scopes.NODE, "memory_bytes", "Memory of the node by kind.", ("kind",), "6"
)
_LOAD = measured.Series(scopes.NODE, "load", "Load average by minutes.", ("minutes",), "3")
_LINK, _LINK_RATE = measured.both(
    scopes.LINKS,
    ("bytes", "bytes_rate"),
    "Traffic of a network interface{}.",
    ("", " in bytes per second"),
    labels=("direction",),
)
_SPACE, _INODES = (
    measured.Series(
        scopes.DISKS, name, f"{what} of the file system that contains a directory.", ("kind",)
    )
    for name, what in (("bytes", "Space"), ("inodes", "Inodes"))
)
_STALLS, _RATIO = measured.both(
    scopes.NODE,
    ("pressure_stalled_seconds", "pressure_ratio"),
    "PSI of the node: {} in which some or all tasks stalled on a resource.",
    ("time", "share of time"),
    labels=("resource", "degree"),
    bound="6",
)
_PERCENT = measured.Series(
    scopes.NODE,
    "pressure_percent",
    "PSI averages of the kernel in percent, by window in seconds.",
    ("resource", "degree", "seconds"),
    "18",
)
_TAKEN = "Memory of the node that is not available, in bytes."
_DELAY = "Time that runnable tasks waited for a CPU, {}summed over all CPUs."
_DELAYS = "", "in seconds per second, "
_node, _disk = functools.partial(_row, "node"), functools.partial(_row, "disks")
_OF_NODE = (
    _node(
        meter.CPU,
        "cpuCores",
        *_total("cpu_usage_seconds", "CPU time used.", scopes.NODE),
        measured.Series(scopes.PEER_NODE, "used_cpu_cores", "CPU use of the node, in cores."),
        field="cpu_milli",
        resource="cpu",
    ),
    _node(
        meter.WORKING_SET,
        "memoryBytes",
        measured.Series(scopes.PEER_NODE, "used_memory_bytes", _TAKEN),
        field="memory_bytes",
        resource="memory",
    ),
    _node(meter.MEMORY_TOTAL, "memoryTotalBytes", _MEMORY, value="total"),
    _node(meter.MEMORY_AVAILABLE, "memoryAvailableBytes", _MEMORY, value="available"),
    _node(meter.MEMORY_FREE, "", _MEMORY, value="free"),
    _node(meter.MEMORY_CACHE, "", _MEMORY, value="cache"),
    _node(meter.MEMORY_COLD, "memoryColdBytes", _MEMORY, value="cold"),
    _node(meter.SWAP_FREE, "", _MEMORY, value="swap_free"),
    *_pressures("node", _STALLS, _RATIO, _PERCENT),
    _node(meter.LOAD_1, "load", _LOAD, value="1", several=True),
    _node(meter.LOAD_5, "load", _LOAD, value="5", several=True),
    _node(meter.LOAD_15, "load", _LOAD, value="15", several=True),
    _node(
        meter.RUN_DELAY,
        "",
        *measured.both(scopes.NODE, ("run_delay_seconds", "run_delay_ratio"), _DELAY, _DELAYS),
    ),
    _row(
        "cpus",
        meter.CPU,
        "",
        *measured.both(
            scopes.CPUS,
            ("usage_seconds", "usage_ratio"),
            "{} of a CPU.",
            ("Busy time", "Busy share"),
        ),
    ),
    measured.Quantity("numa", meter.CPU, "cpuCores", resource="cpu"),
    measured.Quantity("numa", meter.WORKING_SET, "memoryBytes", resource="memory"),
    measured.Quantity("numa", meter.MEMORY_TOTAL, "memoryTotalBytes"),
    _row("links", meter.RECEIVED, "receivedBytesPerSecond", _LINK, _LINK_RATE, value="received"),
    _row("links", meter.SENT, "sentBytesPerSecond", _LINK, _LINK_RATE, value="sent"),
    _disk(meter.SPACE_TOTAL, "totalBytes", _SPACE, value="total"),
    _disk(meter.SPACE_AVAILABLE, "availableBytes", _SPACE, value="available"),
    _disk(meter.INODES_TOTAL, "inodes", _INODES, value="total"),
    _disk(meter.INODES_FREE, "inodesFree", _INODES, value="free"),
)
QUANTITIES = (*_OF_CGROUPS, *_OF_CLASSES, *_OF_NODE)


@functools.cache
def keyed(*tables: str) -> tuple[tuple[measured.Quantity, tuple[str, ...], str, bool], ...]:
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
