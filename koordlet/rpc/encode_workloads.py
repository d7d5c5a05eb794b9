"""Workload messages: built once; later only usage is rewritten.

Covers: the section ``workloads``. Does not cover: the other sections (``encode``).

The use of all workloads changes with every tick, hardly ever anything else of them: the observer
hands out the same pods and the same groups while nothing happened. Copying a message and setting
one number of each workload costs a quarter of making them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from koordlet.model import cgroup, pod
from koordlet.report import view
from koordlet.rpc import encode
from koordlet.rpc.gen import feed_pb2


class Workloads:
    """Makes the section, with what it needs to know of the last one."""

    def __init__(self) -> None:
        self._pods: Sequence[pod.Pod] | None = None
        self._groups: Mapping[str, cgroup.Group] | None = None
        self._keys: list[str] = []
        self._without_use = feed_pb2.Workloads()

    def made(self, now: view.ReportView) -> feed_pb2.Workloads:
        """Workload section of this view; the section is immutable afterwards."""
        seen = now.snapshot
        if seen.pods is not self._pods or seen.groups is not self._groups:
            self._pods, self._groups = seen.pods, seen.groups
            self._keys = [one.key for one in seen.pods]
            self._without_use = feed_pb2.Workloads(
                workloads=[encode.workload(one, seen.groups) for one in seen.pods]
            )
        found = feed_pb2.Workloads()
        found.CopyFrom(self._without_use)
        for key, one in zip(self._keys, found.workloads, strict=True):
            cores = now.usage.get(key)
            if cores is not None:
                one.usage_milli = max(0, round(cores * 1000))
        return found
