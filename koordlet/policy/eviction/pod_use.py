"""Resource use of each pod: memory, processes, file systems. Pure.

Covers: the one place that says whose number counts. Does not cover: ranking by it.

The kubelet's statistics count where they are; else what our own counters say of the pod's group;
else what somebody else reported of it (a NodeMetric, in ``plan``). A pod of which nobody says
anything has no use at all, which is not the same as none.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import field

from koordlet.history import series
from koordlet.model import meter, resources, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    from koordlet.model import kubelet

#: Parts of a pod's files: writable layers, logs, volumes on the node's disk.
ROOT, LOGS, VOLUMES = "root", "logs", "volumes"
INODES = "inodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Use of one pod. ``None`` is unknown and counts as nothing."""

    memory: int | None = None
    processes: int | None = None
    #: Part of its files to bytes, and to inodes.
    disk: Mapping[str, int] = field(default_factory=dict)
    inodes: Mapping[str, int] = field(default_factory=dict)
    #: Container to working set, to bytes of its layer and logs; in the order of the statistics.
    container_memory: Mapping[str, int] = field(default_factory=dict)
    container_disk: Mapping[str, int] = field(default_factory=dict)


def of(pod: pods.Pod, now: snapshot.Snapshot, past: series.History) -> Use | None:
    """Use of a pod; ``None`` where no source reports it."""
    summary = now.kubelet.summary if now.kubelet is not None else None
    statistics = summary.pods.get(pod.uid) if summary is not None else None
    counted = _counted(pod, past)
    if statistics is not None:
        return _from_statistics(pod, statistics, counted)
    if counted is not None:
        return counted
    amounts = now.metric.pods.get(pod.key) if now.metric is not None else None
    return None if amounts is None else _reported(amounts)


def _counted(pod: pods.Pod, past: series.History) -> Use | None:
    memory = None if pod.group is None else _memory(pod.group, past)
    tasks = None if pod.group is None else past.groups.last(pod.group, meter.PIDS)
    if memory is None and tasks is None:
        return None
    boxes = {box.name: _memory(box.group, past) for box in pod.containers if box.group is not None}
    return Use(
        memory=None if memory is None else int(memory),
        processes=None if tasks is None else int(tasks),
        container_memory={box: int(used) for box, used in boxes.items() if used is not None},
    )


def _memory(group: str, past: series.History) -> float | None:
    """The working set of a cgroup; all of its memory until its page cache was read."""
    last = past.groups.last(group, meter.WORKING_SET)
    return past.groups.last(group, meter.MEMORY) if last is None else last


def _reported(amounts: resources.Amounts) -> Use:
    disk, inodes = amounts.get(resources.EPHEMERAL_STORAGE), amounts.get(INODES)
    return Use(
        memory=amounts.get(resources.MEMORY),
        processes=amounts.get("pids"),
        disk={} if disk is None else {ROOT: disk},
        inodes={} if inodes is None else {ROOT: inodes},
    )


def _from_statistics(pod: pods.Pod, statistics: kubelet.PodStatistics, counted: Use | None) -> Use:
    local = {each.name for each in pod.volumes if each.local}
    parts = {
        ROOT: statistics.rootfs.values(),
        LOGS: statistics.logs.values(),
        VOLUMES: [files for name, files in statistics.volumes.items() if name in local],
    }
    memory = statistics.working_set_bytes
    layers = {
        name: files.used_bytes + logs.used_bytes
        for name, files in statistics.rootfs.items()
        if files.used_bytes is not None
        and (logs := statistics.logs.get(name)) is not None
        and logs.used_bytes is not None
    }
    return Use(
        # Ours is a second old at most, theirs ten.
        memory=counted.memory if counted is not None and counted.memory is not None else memory,
        processes=statistics.processes
        if statistics.processes is not None or counted is None
        else counted.processes,
        disk={part: sum(f.used_bytes or 0 for f in files) for part, files in parts.items()},
        inodes={part: sum(f.inodes_used or 0 for f in files) for part, files in parts.items()},
        container_memory={
            **{name: used for name, used in statistics.memory.items() if used is not None},
            **(counted.container_memory if counted is not None else {}),
        },
        container_disk=layers,
    )
