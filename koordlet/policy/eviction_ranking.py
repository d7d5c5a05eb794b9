"""Which pod goes first when a node runs out of something, in the kubelet's order. Pure.

Covers: the keys for memory, file systems, inodes and processes, who is passed over.
Does not cover: when anybody must go (``node_pressure``), the order of the co-location peers
(``evict_candidates``).

The keys, compared in this order:
* memory: uses more than it asked for; priority; how much more
* bytes and inodes: uses more than it asked for; priority; how much more
* processes: priority; how many

A pod of which nobody knows what it uses comes before the others wherever use is compared. The
class of a pod is no key. Inodes cannot be asked for, so every pod that has a file uses more than it
asked for; and from its inodes the *bytes* that it asked for are taken, as the kubelet does.

What the kubelet leaves to chance is decided here: equal pods go by UID.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from koordlet.model import eviction, pod, pressure, resources, thresholds
from koordlet.policy import pod_use

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One pod at its place."""

    pod: pod.Pod
    use: pod_use.Use | None
    #: Name of the key to its value, for people.
    keys: tuple[tuple[str, str], ...]

    @property
    def candidate(self) -> eviction.Candidate:
        """For the explanation."""
        return eviction.Candidate(pod=self.pod.key, keys=self.keys, spared=spared(self.pod))


def spared(one: pod.Pod) -> str:
    """Why a pod never goes; empty where it may."""
    if one.static:
        return "a static pod or the mirror of one"
    if one.critical:
        return "critical by its priority"
    return ""


def rank(
    signal: str, layout: str, pods: Iterable[tuple[pod.Pod, pod_use.Use | None]]
) -> list[Ranked]:
    """The pods, the first to go first."""
    keyed = [(_key(signal, layout, one, use), one, use) for one, use in pods]
    keyed.sort(key=lambda each: (each[0][0], each[1].uid))
    return [Ranked(pod=one, use=use, keys=shown) for (_, shown), one, use in keyed]


_Key = tuple[tuple[int, ...], tuple[tuple[str, str], ...]]


def _key(signal: str, layout: str, one: pod.Pod, use: pod_use.Use | None) -> _Key:
    """What it is compared by, and the same for people."""
    priority = one.priority or 0
    if signal == thresholds.PIDS:
        count = 0 if use is None else use.processes or 0
        shown = ("priority", str(priority)), ("processes", _shown(use, count))
        return (priority, use is not None, -count), shown
    if signal in thresholds.MEMORY_SIGNALS:
        used = 0 if use is None else use.memory or 0
        asked = exceeded = one.requests.get(resources.MEMORY, 0)
    else:
        name, _, kind = signal.partition(".")
        used = 0 if use is None else _disk(use, _PARTS[layout][name], inodes=kind == "inodesFree")
        asked = one.requests.get(resources.EPHEMERAL_STORAGE, 0)
        exceeded = 0 if kind == "inodesFree" else asked
    exceeds = use is not None and used > exceeded
    shown_all = (
        ("exceedsRequest", "unknown" if use is None else str(exceeds).lower()),
        ("priority", str(priority)),
        ("overRequest", _shown(use, used - asked)),
    )
    if use is None:
        return (0, 0, priority, 0), shown_all
    return (1, not exceeds, priority, asked - used), shown_all


def _shown(use: pod_use.Use | None, value: int) -> str:
    return "unknown" if use is None else str(value)


def _disk(use: pod_use.Use, parts: Iterable[str], *, inodes: bool) -> int:
    counted = use.inodes if inodes else use.disk
    return sum(counted.get(part, 0) for part in parts)
