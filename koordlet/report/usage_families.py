"""Metric families of use: node, CPUs, workloads, containers, and the reading itself.

Covers: our own names. Does not cover: the names of Koordinator's agent (``peer_families``).

Cardinality: what grows with the machine and with its workloads is cut at ``most``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from koordlet.model import counters, meter, pod
from koordlet.report import families, view

#: Labels and group of one subject that a family has a series for.
Subjects = Callable[[view.ReportView], Iterator[tuple[tuple[str, ...], str]]]

_WORKLOADS = "one per workload, at most 4096"
_CONTAINERS = "one per container, at most 8192"


def workloads(now: view.ReportView) -> Iterator[tuple[tuple[str, ...], str]]:
    """Workloads that have a cgroup."""
    for one in now.snapshot.pods:
        if one.group is not None:
            yield (one.namespace, one.name, one.qos.value), one.group


def containers(now: view.ReportView) -> Iterator[tuple[tuple[str, ...], str]]:
    """Containers that have a cgroup."""
    for one in now.snapshot.pods:
        for container in one.containers:
            if container.group is not None:
                yield (one.namespace, one.name, container.name), container.group


def _of(subjects: Subjects, what: meter.Meter) -> Callable[[view.ReportView], families.Rows]:
    """The rows of one meter of groups."""
    return lambda now: (
        (labels, now.used.groups.value(group, what)) for labels, group in subjects(now)
    )


def _killed(now: view.ReportView) -> families.Rows:
    """OOM kills of workloads; cgroup v1 counts them in the container's group only."""
    for one in now.snapshot.pods:
        if one.group is not None:
            groups = [one.group, *(box.group or "" for box in one.containers)]
            own, *each = (now.used.groups.value(group, meter.OOM_KILLS) for group in groups)
            inside = [value for value in each if value is not None]
            if inside:
                own = max(own or 0.0, sum(inside))
            yield (one.namespace, one.name, one.qos.value), own


def _pressures(subjects: Subjects) -> Callable[[view.ReportView], families.Rows]:
    """The stalled share of time by resource and degree, of groups."""

    def rows(now: view.ReportView) -> families.Rows:
        for labels, group in subjects(now):
            for one in meter.PRESSURES:
                for degree, meters in (("some", one.some), ("full", one.full)):
                    value = now.used.groups.value(group, meters[3])
                    yield (*labels, one.resource, degree), value

    return rows


def _memory_by_node(now: view.ReportView) -> families.Rows:
    """On a machine with several NUMA nodes: with one it is the memory that is shown anyway."""
    nodes = {node: meter.numa_memory(int(node)) for node in now.used.numa.slots}
    for labels, group in workloads(now) if len(nodes) > 1 else ():
        for node, what in nodes.items():
            yield (*labels, node), now.used.groups.value(group, what)


def _node_averages(now: view.ReportView) -> families.Rows:
    for one in meter.PRESSURES:
        for degree, meters in (("some", one.some), ("full", one.full)):
            for seconds, what in zip(meter.AVERAGES, meters, strict=False):
                yield (one.resource, degree, str(seconds)), now.used.node.value("", what)


def _work(subjects: Subjects) -> Callable[[view.ReportView], families.Rows]:
    """Cycles per instruction, where they were counted."""
    return lambda now: (
        (labels, now.used.work.value(group, meter.CPI)) for labels, group in subjects(now)
    )


def _traffic(now: view.ReportView) -> families.Rows:
    """Traffic of workloads with their own network namespace."""
    for labels, group in workloads(now):
        for word, what in (("received", meter.POD_RECEIVED), ("sent", meter.POD_SENT)):
            yield (*labels, word), now.used.traffic.value(group, what)


def _counted(now: view.ReportView) -> Iterator[tuple[tuple[str, ...], str]]:
    """Separately counted subjects: containers, and workloads without containers."""
    yield from containers(now)
    for one in now.snapshot.pods:
        if one.group is not None and not one.containers:
            yield (one.namespace, one.name, ""), one.group


def _node_pressures(now: view.ReportView) -> families.Rows:
    for one in meter.PRESSURES:
        for degree, meters in (("some", one.some), ("full", one.full)):
            yield (one.resource, degree), now.used.node.value("", meters[3])


def _each(
    table: Callable[[counters.Usage], counters.Table], *meters: tuple[str, meter.Meter]
) -> Callable[[view.ReportView], families.Rows]:
    """A row for each subject of a table and each named meter; one without a name has no label."""

    def rows(now: view.ReportView) -> families.Rows:
        for word, what in meters:
            for subject, value in table(now.used).values(what):
                yield ((subject, word) if word else (subject,)), value

    return rows


def _node(*meters: tuple[str, meter.Meter]) -> Callable[[view.ReportView], families.Rows]:
    return lambda now: (((word,), now.used.node.value("", what)) for word, what in meters)


def is_host_application(one: pod.Pod) -> bool:
    """True if a workload is a host application (outside Kubernetes)."""
    return one.kube_qos is None and not one.containers


_GROUP = (
    ("cpu_throttled_ratio", "share of CFS periods that were throttled.", meter.THROTTLED),
    (
        "memory_working_set_bytes",
        "working set, that is memory without inactive page cache.",
        meter.WORKING_SET,
    ),
    ("memory_usage_bytes", "memory including page cache.", meter.MEMORY),
    ("memory_cold_bytes", "cold memory, not accessed for five minutes.", meter.MEMORY_COLD),
    ("memory_oom_kills_rate", "OOM kills per second.", meter.OOM_KILLS),
    ("io_read_bytes_rate", "bytes read from block devices per second.", meter.IO_READ),
    ("io_write_bytes_rate", "bytes written to block devices per second.", meter.IO_WRITE),
    ("pids", "processes and threads.", meter.PIDS),
)
#: Those of them that are counts.
_WHOLE = ("memory_working_set_bytes", "memory_usage_bytes", "memory_cold_bytes", "pids")

FAMILIES = (
    *(
        families.Family(
            name=f"koordlet_workload_{name}",
            help=f"Per workload: {text}",
            labels=("namespace", "name", "qos"),
            bound=_WORKLOADS,
            most=4096,
            rows=_killed if what is meter.OOM_KILLS else _of(workloads, what),
            form="%d" if name in _WHOLE else "%.6g",
        )
        for name, text, what in _GROUP
    ),
    families.Family(
        name="koordlet_workload_pressure_ratio",
        help="PSI of a workload: share of time in which some or all of its tasks stalled on a"
        " resource.",
        labels=("namespace", "name", "qos", "resource", "degree"),
        bound="6 per workload, at most 16384",
        most=16384,
        rows=_pressures(workloads),
    ),
    families.Family(
        name="koordlet_workload_network_bytes_rate",
        help="Network traffic of a workload with its own network namespace, in bytes per second.",
        labels=("namespace", "name", "qos", "direction"),
        bound="2 per workload, at most 8192",
        most=8192,
        rows=_traffic,
    ),
    families.Family(
        name="koordlet_container_cpu_cores",
        help="CPU use of a container, in cores.",
        labels=("namespace", "pod", "container"),
        bound=_CONTAINERS,
        most=8192,
        rows=_of(containers, meter.CPU),
    ),
    *(
        families.Family(
            name=f"koordlet_container_{name}",
            help=f"Per container: {text}",
            labels=("namespace", "pod", "container"),
            bound=_CONTAINERS,
            most=8192,
            rows=_of(containers, what),
            form="%d" if name in _WHOLE else "%.6g",
        )
        for name, text, what in _GROUP[:4]
    ),
    families.Family(
        name="koordlet_container_cycles_per_instruction",
        help="Cycles per instruction of a container, or of a workload without containers (empty"
        " label).",
        labels=("namespace", "pod", "container"),
        bound=_CONTAINERS,
        most=8192,
        rows=_work(_counted),
    ),
    families.Family(
        name="koordlet_workload_memory_numa_bytes",
        help="Memory of a workload by NUMA node, on machines with several.",
        labels=("namespace", "name", "qos", "numa_node"),
        bound="one per workload and NUMA node, at most 8192",
        most=8192,
        rows=_memory_by_node,
        form="%d",
    ),
    families.Family(
        name="koordlet_share_cpu_cores",
        help="CPU use by QoS class; class system is everything that is not a workload.",
        labels=("class",),
        bound="5",
        rows=_each(lambda used: used.shares, ("", meter.CPU_SHARE)),
    ),
    families.Family(
        name="koordlet_share_memory_bytes",
        help="Memory without page cache by QoS class; class system is everything that is not a"
        " workload.",
        labels=("class",),
        bound="5",
        rows=_each(lambda used: used.shares, ("", meter.MEMORY_SHARE)),
        form="%d",
    ),
    *(
        families.Family(
            name=f"koordlet_share_{name}",
            help=f"Per QoS class: {text}",
            labels=("class",),
            bound="4",
            rows=_each(lambda used: used.shares, ("", what)),
            form=form,
        )
        for name, text, what, form in (
            ("pids", "processes and threads.", meter.PIDS_SHARE, "%d"),
            ("io_read_bytes_rate", "bytes read per second.", meter.IO_READ_SHARE, "%.6g"),
            ("io_write_bytes_rate", "bytes written per second.", meter.IO_WRITE_SHARE, "%.6g"),
            (
                "cpu_throttled_ratio",
                "share of CFS periods that were throttled.",
                meter.THROTTLED_SHARE,
                "%.6g",
            ),
        )
    ),
    families.Family(
        name="koordlet_share_network_bytes_rate",
        help="Network traffic by QoS class of workloads with their own network namespace, in"
        " bytes per second.",
        labels=("class", "direction"),
        bound="2 per QoS class, 8",
        rows=_each(
            lambda used: used.shares,
            ("received", meter.RECEIVED_SHARE),
            ("sent", meter.SENT_SHARE),
        ),
    ),
    families.Family(
        name="koordlet_share_pressure_ratio",
        help="PSI by QoS class: share of time in which some tasks of its most stalled workload"
        " stalled.",
        labels=("class", "resource"),
        bound="3 per QoS class, 12",
        rows=_each(
            lambda used: used.shares,
            *(
                (one.resource, what)
                for one, what in zip(meter.PRESSURES, meter.STALLED_SHARES, strict=True)
            ),
        ),
    ),
    families.Family(
        name="koordlet_cpu_usage_ratio",
        help="Busy share of a CPU.",
        labels=("cpu",),
        bound="one per online CPU, at most 1024",
        most=1024,
        rows=_each(lambda used: used.cpus, ("", meter.CPU)),
    ),
    families.Family(
        name="koordlet_node_memory_bytes",
        help="Memory of the node by kind.",
        labels=("kind",),
        bound="6",
        rows=_node(
            ("total", meter.MEMORY_TOTAL),
            ("available", meter.MEMORY_AVAILABLE),
            ("free", meter.MEMORY_FREE),
            ("cache", meter.MEMORY_CACHE),
            ("cold", meter.MEMORY_COLD),
            ("swap_free", meter.SWAP_FREE),
        ),
        form="%d",
    ),
    families.Family(
        name="koordlet_node_pressure_ratio",
        help="PSI of the node: share of time in which some or all tasks stalled on a resource.",
        labels=("resource", "degree"),
        bound="6",
        rows=_node_pressures,
    ),
    families.Family(
        name="koordlet_node_pressure_percent",
        help="PSI averages of the kernel in percent, by window in seconds.",
        labels=("resource", "degree", "seconds"),
        bound="18",
        rows=_node_averages,
    ),
    families.Family(
        name="koordlet_node_load",
        help="Load average by minutes.",
        labels=("minutes",),
        bound="3",
        rows=_node(("1", meter.LOAD_1), ("5", meter.LOAD_5), ("15", meter.LOAD_15)),
    ),
    families.Family(
        name="koordlet_node_run_delay_ratio",
        help="Time that runnable tasks waited for a CPU, in seconds per second, summed over all"
        " CPUs.",
        rows=lambda now: (((), now.used.node.value("", meter.RUN_DELAY)),),
    ),
    families.Family(
        name="koordlet_link_bytes_rate",
        help="Traffic of a network interface in bytes per second.",
        labels=("interface", "direction"),
        bound="2 per physical interface",
        rows=_each(lambda used: used.links, ("received", meter.RECEIVED), ("sent", meter.SENT)),
    ),
    families.Family(
        name="koordlet_disk_bytes",
        help="Space of the file system that contains a directory.",
        labels=("directory", "kind"),
        bound="2 per watched directory",
        rows=_each(
            lambda used: used.disks,
            ("total", meter.SPACE_TOTAL),
            ("available", meter.SPACE_AVAILABLE),
        ),
        form="%d",
    ),
    families.Family(
        name="koordlet_disk_inodes",
        help="Inodes of the file system that contains a directory.",
        labels=("directory", "kind"),
        bound="2 per watched directory",
        rows=_each(
            lambda used: used.disks, ("total", meter.INODES_TOTAL), ("free", meter.INODES_FREE)
        ),
        form="%d",
    ),
    families.Family(
        name="koordlet_counter_files",
        help="Counter files read, opened, gone and malformed, and mounts that did not answer.",
        type=families.COUNTER,
        labels=("event",),
        bound="5",
        rows=lambda now: (((what,), number) for what, number in now.counters.files.items()),
        form="%d",
    ),
    families.Family(
        name="koordlet_counter_descriptors",
        help="Open file descriptors of counter files; each pins a page of kernel memory.",
        rows=lambda now: (((), now.counters.descriptors),),
        form="%d",
    ),
)
