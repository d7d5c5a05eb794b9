"""Eviction order of pods under node pressure, as the kubelet's. Pure.

Covers: the keys for memory, file systems, inodes and processes, who is passed over.
Does not cover: when anybody must go (``node_pressure``), the order of the co-location peers
(``candidates``).

The keys, compared in this order:
* memory, and what of ours stands for it: uses more than it asked for; priority; how much more
* bytes and inodes: uses more than it asked for; priority; how much more
* processes: priority; how many

A pod of which nobody knows what it uses comes before the others wherever use is compared. The
class of a pod is no key. Inodes cannot be asked for, so every pod that has a file uses more than it
asked for; and from its inodes the *bytes* that it asked for are taken, as the kubelet does.

What the kubelet leaves to chance is decided here: equal pods go by UID.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from koordlet.model import eviction, pressure, resources, thresholds
from koordlet.model import pod as pods
from koordlet.policy.eviction import pod_use

#: Layout and file system to the parts of a pod that lie on it; images are nobody's.
_ALL = (pod_use.ROOT, pod_use.LOGS, pod_use.VOLUMES)
_PARTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    pressure.SINGLE: {"nodefs": _ALL, "imagefs": _ALL, "containerfs": _ALL},
    pressure.DEDICATED: {
        "nodefs": (pod_use.LOGS, pod_use.VOLUMES),
        "imagefs": (pod_use.ROOT,),
        "containerfs": (pod_use.ROOT,),
    },
    pressure.SPLIT: {"nodefs": _ALL, "imagefs": (), "containerfs": _ALL},
}


class Ranked(NamedTuple):
    """One ranked pod."""

    #: What it is compared by, its UID last; the smallest goes first.
    order: tuple[int | str, ...]
    pod: pods.Pod
    use: pod_use.Use | None

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Name of each key to its value, for people."""
        unknown = self.use is None
        if len(self.order) == _LENGTH_OF_PROCESSES:
            priority, _, fewer, _ = self.order
            count = "unknown" if unknown else str(-int(fewer))
            return ("priority", str(priority)), ("processes", count)
        _, within, priority, short, _ = self.order
        return (
            ("exceedsRequest", "unknown" if unknown else str(not within).lower()),
            ("priority", str(priority)),
            ("overRequest", "unknown" if unknown else str(-int(short))),
        )

    @property
    def candidate(self) -> eviction.Candidate:
        """For the explanation."""
        return eviction.Candidate(pod=self.pod.key, keys=self.keys, spared=spared(self.pod))


_LENGTH_OF_PROCESSES = 4
_Order = Callable[[pods.Pod, pod_use.Use | None], tuple[int | str, ...]]


def spared(pod: pods.Pod) -> str:
    """The reason that a pod is never evicted; empty where it may be."""
    if pod.static:
        return "static or mirror pod"
    if pod.critical:
        return "critical priority"
    return ""


def rank(
    signal: str, layout: str, pods: Iterable[tuple[pods.Pod, pod_use.Use | None]]
) -> list[Ranked]:
    """Rank pods in eviction order."""
    order = _order(signal, layout)
    ranked = (Ranked(order(pod, use), pod, use) for pod, use in pods)
    return sorted(ranked, key=operator.itemgetter(0))


def _order(signal: str, layout: str) -> _Order:
    """The sort key for a signal."""
    if signal == thresholds.PIDS:
        return _by_processes
    if thresholds.RESOURCE[signal] == resources.MEMORY:
        return _by_memory
    name, _, kind = signal.partition(".")
    parts = _PARTS[layout][name]
    return functools.partial(_by_disk, parts=parts, inodes=kind == "inodesFree")


def _by_processes(pod: pods.Pod, use: pod_use.Use | None) -> tuple[int | str, ...]:
    count = 0 if use is None else use.processes or 0
    return pod.priority or 0, use is not None, -count, pod.uid


def _by_memory(pod: pods.Pod, use: pod_use.Use | None) -> tuple[int | str, ...]:
    if use is None:
        return 0, 0, pod.priority or 0, 0, pod.uid
    used, asked = use.memory or 0, pod.requests.get(resources.MEMORY, 0)
    return 1, used <= asked, pod.priority or 0, asked - used, pod.uid


def _by_disk(
    pod: pods.Pod, use: pod_use.Use | None, *, parts: Iterable[str], inodes: bool
) -> tuple[int | str, ...]:
    if use is None:
        return 0, 0, pod.priority or 0, 0, pod.uid
    counted = use.inodes if inodes else use.disk
    used = sum(counted.get(part, 0) for part in parts)
    asked = pod.requests.get(resources.EPHEMERAL_STORAGE, 0)
    return 1, used <= (0 if inodes else asked), pod.priority or 0, asked - used, pod.uid
