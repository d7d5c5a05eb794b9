"""``/stats/summary``: file systems, memory and processes as the kubelet counts them."""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import objects, shapes
from koordlet.model import kubelet

PATH = "/stats/summary"

_COUNT = shapes.integer(0, 2**64 - 1)
_FIELDS = {
    "available_bytes": "availableBytes",
    "capacity_bytes": "capacityBytes",
    "used_bytes": "usedBytes",
    "inodes": "inodes",
    "inodes_free": "inodesFree",
    "inodes_used": "inodesUsed",
}
_Object = Mapping[str, object]


def decode(body: object) -> kubelet.Summary:
    """The statistics; ``ValueError`` for what is no summary."""
    whole = shapes.mapping(body)
    node = shapes.mapping(shapes.find(whole, "node"))
    problems: list[str] = []
    runtime = shapes.section(node, "runtime", problems)
    memory = shapes.section(node, "memory", problems)
    limits = shapes.section(node, "rlimit", problems)
    pods = {}
    for statistics in objects.parts(whole, "pods"):
        uid = shapes.section(statistics, "podRef", problems).get("uid")
        if isinstance(uid, str) and uid:
            pods[uid] = _pod(uid, statistics, problems)
        else:
            problems.append("pods: an entry has no podRef.uid")
    return kubelet.Summary(
        node_fs=_files(node, "fs", problems),
        image_fs=_files(runtime, "imageFs", problems),
        container_fs=_files(runtime, "containerFs", problems),
        memory_available_bytes=_count(memory, "availableBytes", problems),
        memory_working_set_bytes=_count(memory, "workingSetBytes", problems),
        max_pids=_count(limits, "maxpid", problems),
        processes=_count(limits, "curproc", problems),
        pods=pods,
        problems=tuple(f"stats: {problem}" for problem in problems),
    )


def _pod(uid: str, statistics: _Object, problems: list[str]) -> kubelet.PodStatistics:
    memory = shapes.section(statistics, "memory", problems)
    processes = shapes.section(statistics, "process_stats", problems)
    containers = {str(each.get("name")): each for each in objects.parts(statistics, "containers")}
    return kubelet.PodStatistics(
        uid=uid,
        working_set_bytes=_count(memory, "workingSetBytes", problems),
        ephemeral=_files(statistics, "ephemeral-storage", problems),
        rootfs={name: _files(each, "rootfs", problems) for name, each in containers.items()},
        logs={name: _files(each, "logs", problems) for name, each in containers.items()},
        volumes=_volumes(statistics, problems),
        processes=_count(processes, "process_count", problems),
        memory={
            name: _count(shapes.section(each, "memory", problems), "workingSetBytes", problems)
            for name, each in containers.items()
        },
    )


def _volumes(statistics: _Object, problems: list[str]) -> dict[str, kubelet.FileSystem]:
    """Volumes by name; the first of a name counts."""
    volumes: dict[str, kubelet.FileSystem] = {}
    for each in objects.parts(statistics, "volume"):
        volumes.setdefault(str(each.get("name")), _read_files(each, problems))
    return volumes


def _files(body: _Object, key: str, problems: list[str]) -> kubelet.FileSystem:
    return _read_files(shapes.section(body, key, problems), problems)


def _read_files(body: _Object, problems: list[str]) -> kubelet.FileSystem:
    return kubelet.FileSystem(
        **{name: _count(body, key, problems) for name, key in _FIELDS.items()}
    )


def _count(body: _Object, key: str, problems: list[str]) -> int | None:
    number: int | None = shapes.guarded(_COUNT, body.get(key), key, problems)
    return number
