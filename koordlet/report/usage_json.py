"""Usage as parts of ``v1`` documents. Pure.

Covers: the node's ``usage``, a workload's, a container's. Unknown values are ``null``.
Does not cover: the documents around them (``node_json``).
"""

from __future__ import annotations

from koordlet.history import shares
from koordlet.model import counters, meter, pod
from koordlet.report import view


def node(now: view.ReportView) -> dict[str, object]:
    """The node: what is used, by whom, and where it is tight."""
    used = now.used
    return {
        "cpuCores": _rounded(used.node.value("", meter.CPU)),
        "memoryBytes": _whole(used.node.value("", meter.WORKING_SET)),
        "memoryTotalBytes": _whole(used.node.value("", meter.MEMORY_TOTAL)),
        "memoryAvailableBytes": _whole(used.node.value("", meter.MEMORY_AVAILABLE)),
        "memoryColdBytes": _whole(used.node.value("", meter.MEMORY_COLD)),
        "load": [used.node.value("", what) for what in (meter.LOAD_1, meter.LOAD_5, meter.LOAD_15)],
        "pressure": pressure(used.node, ""),
        "shares": {name: _share(used.shares, name) for name in shares.SUBJECTS},
        "cpus": {cpu: _rounded(value) for cpu, value in used.cpus.values(meter.CPU)},
        "numa": {
            node: {
                "cpuCores": _rounded(used.numa.value(node, meter.CPU)),
                "memoryBytes": _whole(used.numa.value(node, meter.WORKING_SET)),
                "memoryTotalBytes": _whole(used.numa.value(node, meter.MEMORY_TOTAL)),
            }
            for node in used.numa.slots
        },
        "links": {
            name: {
                "receivedBytesPerSecond": _whole(used.links.value(name, meter.RECEIVED)),
                "sentBytesPerSecond": _whole(used.links.value(name, meter.SENT)),
            }
            for name in used.links.slots
        },
        "disks": {
            name: {
                "totalBytes": _whole(used.disks.value(name, meter.SPACE_TOTAL)),
                "availableBytes": _whole(used.disks.value(name, meter.SPACE_AVAILABLE)),
                "inodes": _whole(used.disks.value(name, meter.INODES_TOTAL)),
                "inodesFree": _whole(used.disks.value(name, meter.INODES_FREE)),
            }
            for name in used.disks.slots
        },
        "predicted": {
            "reclaimable": dict(now.predicted.reclaimable),
            "peak": dict(now.predicted.peak),
        },
    }


def _share(table: counters.Table, name: str) -> dict[str, object]:
    """Total usage of a QoS class."""
    return {
        "cpuCores": _rounded(table.value(name, meter.CPU_SHARE)),
        "memoryBytes": _whole(table.value(name, meter.MEMORY_SHARE)),
        "throttledRatio": _rounded(table.value(name, meter.THROTTLED_SHARE)),
        "pids": _whole(table.value(name, meter.PIDS_SHARE)),
        "readBytesPerSecond": _whole(table.value(name, meter.IO_READ_SHARE)),
        "writtenBytesPerSecond": _whole(table.value(name, meter.IO_WRITE_SHARE)),
        "network": {
            "receivedBytesPerSecond": _whole(table.value(name, meter.RECEIVED_SHARE)),
            "sentBytesPerSecond": _whole(table.value(name, meter.SENT_SHARE)),
        },
    }


def workload(now: view.ReportView, one: pod.Pod) -> dict[str, object]:
    """One workload and its containers."""
    return {
        **_group(now.used, one.group),
        "network": {
            "receivedBytesPerSecond": _whole(
                now.used.traffic.value(one.group or "", meter.POD_RECEIVED)
            ),
            "sentBytesPerSecond": _whole(now.used.traffic.value(one.group or "", meter.POD_SENT)),
        },
        "containers": [
            {"name": part.name, "id": part.id, **_group(now.used, part.group)}
            for part in one.containers
        ],
    }


def _group(used: counters.Usage, group: str | None) -> dict[str, object]:
    table, path = used.groups, group or ""
    by_node = [table.value(path, meter.numa_memory(int(node))) for node in used.numa.slots]
    return {
        "cpuCores": _rounded(table.value(path, meter.CPU)),
        "throttledRatio": _rounded(table.value(path, meter.THROTTLED)),
        "memoryBytes": _whole(table.value(path, meter.WORKING_SET)),
        "memoryWithCacheBytes": _whole(table.value(path, meter.MEMORY)),
        "memoryColdBytes": _whole(table.value(path, meter.MEMORY_COLD)),
        "memoryNumaBytes": [_whole(one) for one in by_node] if len(by_node) > 1 else [],
        "cyclesPerInstruction": _rounded(used.work.value(path, meter.CPI)),
        "pids": _whole(table.value(path, meter.PIDS)),
        "readBytesPerSecond": _whole(table.value(path, meter.IO_READ)),
        "writtenBytesPerSecond": _whole(table.value(path, meter.IO_WRITE)),
        "pressure": pressure(table, path),
    }


def pressure(table: counters.Table, subject: str) -> dict[str, dict[str, float | None]]:
    """PSI by resource: share of time in which some and all tasks stalled."""
    return {
        one.resource: {
            "some": _rounded(table.value(subject, one.some[3])),
            "full": _rounded(table.value(subject, one.full[3])),
        }
        for one in meter.PRESSURES
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
