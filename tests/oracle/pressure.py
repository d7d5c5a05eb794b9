"""A second reading of how the kubelet deals with a node that runs out of something.

Covers: thresholds from texts, one synchronisation after another, comparisons of pods, local limits,
the message. Written from the facts about the kubelet alone, with plain dictionaries as its API
prints them, and with nothing of ours: what both say is compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Body = dict[str, Any]
Stats = Mapping[str, Body]

_SIZES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 10**3, "M": 10**6, "": 1}
_SECONDS = {"s": 1, "m": 60}
_CONDITION = {
    "memory": "MemoryPressure",
    "allocatableMemory": "MemoryPressure",
    "pid": "PIDPressure",
}
_MEASURED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "single": dict.fromkeys(("nodefs", "imagefs", "containerfs"), ("root", "logs", "volumes")),
    "dedicated": {
        "nodefs": ("logs", "volumes"),
        "imagefs": ("root",),
        "containerfs": ("root",),
    },
    "split": {
        "nodefs": ("logs", "volumes", "root"),
        "imagefs": (),
        "containerfs": ("logs", "volumes", "root"),
    },
}


def size(text: str) -> int:
    """A quantity of whole numbers."""
    digits = text.rstrip("KMGik")
    return int(digits) * _SIZES[text[len(digits) :]]


@dataclass(frozen=True)
class Limit:
    """One threshold."""

    signal: str
    text: str
    grace: int = 0
    reclaim: str = ""

    def quantity(self, capacity: int, *, reclaim: bool = False) -> int:
        """What must be available."""
        extra = _worth(self.reclaim, capacity) if reclaim and self.reclaim else 0
        return _worth(self.text, capacity) + extra

    @property
    def condition(self) -> str:
        """What it is evidence of."""
        return _CONDITION.get(self.signal.partition(".")[0], "DiskPressure")


def _worth(text: str, capacity: int) -> int:
    if text.endswith("%"):
        part = np.float32(text[:-1]) / np.float32(100)
        return int(float(capacity) * float(part))
    return size(text)


def limits(texts: Mapping[str, Mapping[str, str]], layout: str) -> list[Limit]:
    """Hard, soft, that of all pods, then those of the containers' file system."""
    reclaim = texts.get("reclaim", {})
    thresholds = [
        Limit(signal, text, 0, reclaim.get(signal, ""))
        for signal, text in texts["hard"].items()
        if text not in ("0%", "100%")
    ]
    for signal, text in texts.get("soft", {}).items():
        spelled = texts["grace"][signal]
        grace = int(spelled[:-1]) * _SECONDS[spelled[-1]]
        thresholds.append(Limit(signal, text, grace, reclaim.get(signal, "")))
    thresholds += [
        Limit("allocatableMemory.available", limit.text, 0, limit.reclaim)
        for limit in thresholds
        if limit.signal == "memory.available" and not limit.grace
    ]
    thresholds = [limit for limit in thresholds if not limit.signal.startswith("containerfs")]
    source = "imagefs." if layout == "dedicated" else "nodefs."
    return thresholds + [
        Limit(f"containerfs.{limit.signal[len(source) :]}", limit.text, limit.grace, limit.reclaim)
        for limit in thresholds
        if limit.signal.startswith(source)
    ]


@dataclass
class Manager:
    """What is remembered between two synchronisations."""

    limits: list[Limit]
    layout: str
    transition: int = 300
    most_grace: int = 0
    first: dict[Limit, float] = field(default_factory=dict)
    last_seen: dict[str, float] = field(default_factory=dict)
    stored: list[Limit] = field(default_factory=list)
    before: dict[str, float] = field(default_factory=dict)

    def synchronize(
        self, now: float, seen: Mapping[str, tuple[int, int, float]], pods: list[Body], stats: Stats
    ) -> Body:
        """One pass: conditions that hold, pods above their own limits, ranking, victim."""

        def is_met(limit: Limit, *, reclaim: bool) -> bool:
            if limit.signal not in seen:
                return False
            available, capacity, _ = seen[limit.signal]
            return limit.quantity(capacity, reclaim=reclaim) > available

        met = [limit for limit in self.limits if is_met(limit, reclaim=False)]
        met += [limit for limit in self.stored if limit not in met and is_met(limit, reclaim=True)]
        self.first = {limit: self.first.get(limit, now) for limit in met}
        self.last_seen |= {limit.condition: now for limit in met}
        conditions = {kind for kind, at in self.last_seen.items() if now - at < self.transition}
        waited = [limit for limit in met if now - self.first[limit] >= limit.grace]
        self.stored = waited
        due = [
            limit
            for limit in waited
            if limit.signal not in self.before or seen[limit.signal][2] > self.before[limit.signal]
        ]
        self.before = {signal: at for signal, (_, _, at) in seen.items()}
        outcome: Body = {"conditions": conditions, "victim": None, "ranking": [], "signals": set()}
        outcome["offenders"] = offenders(pods, stats, self.layout)
        if outcome["offenders"] or not due:
            return outcome
        memory = [limit for limit in due if "emory." in limit.signal]
        # Which of several that are not memory is dealt with is left to chance.
        outcome["signals"] = {limit.signal for limit in memory or due}
        # Of two of one signal the hard one, which was listed first.
        outcome["by"] = {
            limit.signal: self._chosen(limit, pods, stats) for limit in reversed(memory or due)
        }
        return outcome

    def _chosen(self, limit: Limit, pods: list[Body], stats: Stats) -> Body:
        ranked = rank(limit.signal, self.layout, pods, stats)
        victim = next((pod for pod in ranked if not critical(pod)), None)
        if victim is None:
            return {"victim": None, "ranking": [uid(pod) for pod in ranked]}
        own = victim["spec"].get("terminationGracePeriodSeconds", self.most_grace)
        return {
            "ranking": [uid(pod) for pod in ranked],
            "victim": uid(victim),
            "grace": max(1, min(self.most_grace, own)) if limit.grace else 1,
            "exceeding": _exceeding(limit.signal, victim, stats.get(uid(victim))),
        }


def uid(pod: Body) -> str:
    """Who it is."""
    return str(pod["metadata"]["uid"])


def critical(pod: Body) -> bool:
    """Never evicted."""
    notes = pod["metadata"].get("annotations", {})
    mirror = "kubernetes.io/config.mirror" in notes
    static = notes.get("kubernetes.io/config.source", "api") != "api"
    return mirror or static or pod["spec"].get("priority", 0) >= 2_000_000_000


def _requests(box: Body) -> Body:
    """With what an API server fills in: a limit without a request is its own request."""
    asked = box.get("resources", {})
    return {**asked.get("limits", {}), **asked.get("requests", {})}


def _limits(box: Body) -> Body:
    limits: Body = box.get("resources", {}).get("limits", {})
    return limits


def request(pod: Body, name: str, asked: Callable[[Body], Body] = _requests) -> int:
    """Of the whole pod; with ``_limits`` its limit."""
    spec = pod["spec"]

    def of(box: Body) -> int:
        return size(asked(box).get(name, "0"))

    regular = sum(of(box) for box in spec["containers"])
    beside, peak = 0, 0
    for box in spec.get("initContainers", []):
        if box.get("restartPolicy") == "Always":
            beside += of(box)
            peak = max(peak, beside)
        else:
            peak = max(peak, beside + of(box))
    return max(regular + beside, peak) + size(spec.get("overhead", {}).get(name, "0"))


def usage(pod: Body, stats: Body, what: str, parts: tuple[str, ...]) -> int:
    """Bytes or inodes of some parts of a pod's files."""
    names = [volume["name"] for volume in pod["spec"].get("volumes", []) if _local(volume)]
    volumes: Body = {}
    for volume in stats.get("volume", []):
        volumes.setdefault(volume["name"], volume)
    boxes = stats.get("containers", [])
    sums = {
        "root": sum(box.get("rootfs", {}).get(what, 0) for box in boxes),
        "logs": sum(box.get("logs", {}).get(what, 0) for box in boxes),
        "volumes": sum(volumes[name].get(what, 0) for name in names if name in volumes),
    }
    return sum(sums[part] for part in parts)


def _local(volume: Body) -> bool:
    if {"hostPath", "gitRepo", "configMap"} & volume.keys():
        return True
    return "emptyDir" in volume and not volume["emptyDir"].get("medium")


def _used(signal: str, layout: str, pod: Body, stats: Body) -> int:
    """Of what a signal is about."""
    disk, _, kind = signal.partition(".")
    if disk in ("memory", "allocatableMemory"):
        return int(stats.get("memory", {}).get("workingSetBytes", 0))
    if disk == "pid":
        return int(stats.get("process_stats", {}).get("process_count", 0))
    what = "inodesUsed" if kind == "inodesFree" else "usedBytes"
    return usage(pod, stats, what, _MEASURED[layout][disk])


_Key = Callable[[Body, Body], int]


def rank(signal: str, layout: str, pods: list[Body], stats: Stats) -> list[Body]:
    """The order, by one comparison after another."""
    disk = signal.partition(".")[0]
    inodes = signal.endswith("inodesFree")

    def with_stats(compare: _Key) -> _Key:
        def key(left: Body, right: Body) -> int:
            there = uid(left) in stats, uid(right) in stats
            if not all(there):
                return int(there[0]) - int(there[1])
            return compare(left, right)

        return key

    def used(pod: Body) -> int:
        return _used(signal, layout, pod, stats[uid(pod)])

    asked = "memory" if "emory" in disk else "ephemeral-storage"

    def exceeds(pod: Body) -> bool:
        return used(pod) > (0 if inodes else request(pod, asked))

    def over(pod: Body) -> int:
        return used(pod) - request(pod, asked)

    exceeding = with_stats(lambda left, right: int(exceeds(right)) - int(exceeds(left)))
    more = with_stats(lambda left, right: over(right) - over(left))
    number = with_stats(lambda left, right: used(right) - used(left))

    def priority(left: Body, right: Body) -> int:
        return int(left["spec"].get("priority", 0)) - int(right["spec"].get("priority", 0))

    def name(left: Body, right: Body) -> int:
        return (uid(left) > uid(right)) - (uid(left) < uid(right))

    keys = (priority, number, name) if disk == "pid" else (exceeding, priority, more, name)

    def compare(left: Body, right: Body) -> int:
        return next((difference for key in keys if (difference := key(left, right))), 0)

    return sorted(pods, key=functools.cmp_to_key(compare))


def _exceeding(signal: str, pod: Body, stats: Body | None) -> list[str]:
    """Containers that the message names."""
    if stats is None or not signal.endswith(("emory.available", "fs.available")):
        return []
    name = "memory" if "emory" in signal else "ephemeral-storage"
    spec = pod["spec"]
    boxes = {box["name"]: box for box in (*spec["containers"], *spec.get("initContainers", []))}
    names = []
    for box_stats in stats.get("containers", []):
        if box_stats["name"] not in boxes:
            continue
        if name == "memory":
            used = box_stats.get("memory", {}).get("workingSetBytes")
        else:
            both = (
                box_stats.get("rootfs", {}).get("usedBytes"),
                box_stats.get("logs", {}).get("usedBytes"),
            )
            used = None if None in both else sum(both)
        asked = _requests(boxes[box_stats["name"]]).get(name, "0")
        if used is not None and used > size(asked):
            names.append(box_stats["name"])
    return names


def offenders(pods: list[Body], stats: Stats, layout: str) -> set[str]:
    """Pods above their own limits of local storage that may go."""
    return {
        uid(pod)
        for pod in pods
        if uid(pod) in stats and not critical(pod) and _offends(pod, stats[uid(pod)], layout)
    }


def _offends(pod: Body, stats: Body, layout: str) -> bool:
    spec = pod["spec"]
    volumes: Body = {}
    for volume_stats in stats.get("volume", []):
        volumes.setdefault(volume_stats["name"], volume_stats)
    for volume in spec.get("volumes", []):
        most = size(volume.get("emptyDir", {}).get("sizeLimit", "0"))
        if most and volumes.get(volume["name"], {}).get("usedBytes", 0) > most:
            return True
    boxes = {box["name"]: box for box in stats.get("containers", [])}
    everybody = (*spec["containers"], *spec.get("initContainers", []))
    limited = any("ephemeral-storage" in _limits(box) for box in everybody)
    total = stats.get("ephemeral-storage", {}).get("usedBytes")
    if limited and total is not None and total > request(pod, "ephemeral-storage", _limits):
        return True
    for box in spec["containers"]:
        most = size(_limits(box).get("ephemeral-storage", "0"))
        box_stats = boxes.get(box["name"], {})
        used = box_stats.get("logs", {}).get("usedBytes", 0)
        if layout != "dedicated":
            used += box_stats.get("rootfs", {}).get("usedBytes", 0)
        if most and used > most:
            return True
    return False
