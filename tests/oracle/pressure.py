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
    found = [
        Limit(signal, text, 0, reclaim.get(signal, ""))
        for signal, text in texts["hard"].items()
        if text not in ("0%", "100%")
    ]
    for signal, text in texts.get("soft", {}).items():
        spelled = texts["grace"][signal]
        grace = int(spelled[:-1]) * _SECONDS[spelled[-1]]
        found.append(Limit(signal, text, grace, reclaim.get(signal, "")))
    found += [
        Limit("allocatableMemory.available", one.text, 0, one.reclaim)
        for one in found
        if one.signal == "memory.available" and not one.grace
    ]
    found = [one for one in found if not one.signal.startswith("containerfs")]
    source = "imagefs." if layout == "dedicated" else "nodefs."
    return found + [
        Limit(f"containerfs.{one.signal[len(source) :]}", one.text, one.grace, one.reclaim)
        for one in found
        if one.signal.startswith(source)
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

        def is_met(one: Limit, *, reclaim: bool) -> bool:
            if one.signal not in seen:
                return False
            available, capacity, _ = seen[one.signal]
            return one.quantity(capacity, reclaim=reclaim) > available

        met = [one for one in self.limits if is_met(one, reclaim=False)]
        met += [one for one in self.stored if one not in met and is_met(one, reclaim=True)]
        self.first = {one: self.first.get(one, now) for one in met}
        self.last_seen |= {one.condition: now for one in met}
        conditions = {kind for kind, at in self.last_seen.items() if now - at < self.transition}
        waited = [one for one in met if now - self.first[one] >= one.grace]
        self.stored = waited
        due = [
            one
            for one in waited
            if one.signal not in self.before or seen[one.signal][2] > self.before[one.signal]
        ]
        self.before = {signal: at for signal, (_, _, at) in seen.items()}
        said: Body = {"conditions": conditions, "victim": None, "ranking": [], "signals": set()}
        said["offenders"] = offenders(pods, stats, self.layout)
        if said["offenders"] or not due:
            return said
        memory = [one for one in due if "emory." in one.signal]
        # Which of several that are not memory is dealt with is left to chance.
        said["signals"] = {one.signal for one in memory or due}
        # Of two of one signal the hard one, which was listed first.
        said["by"] = {one.signal: self._chosen(one, pods, stats) for one in reversed(memory or due)}
        return said

    def _chosen(self, one: Limit, pods: list[Body], stats: Stats) -> Body:
        ranked = rank(one.signal, self.layout, pods, stats)
        victim = next((pod for pod in ranked if not critical(pod)), None)
        if victim is None:
            return {"victim": None, "ranking": [uid(pod) for pod in ranked]}
        own = victim["spec"].get("terminationGracePeriodSeconds", self.most_grace)
        return {
            "ranking": [uid(pod) for pod in ranked],
            "victim": uid(victim),
            "grace": max(1, min(self.most_grace, own)) if one.grace else 1,
            "exceeding": _exceeding(one.signal, victim, stats.get(uid(victim))),
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
    found: Body = box.get("resources", {}).get("limits", {})
    return found


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
    names = [one["name"] for one in pod["spec"].get("volumes", []) if _local(one)]
    volumes: Body = {}
    for one in stats.get("volume", []):
        volumes.setdefault(one["name"], one)
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
        def key(one: Body, two: Body) -> int:
            there = uid(one) in stats, uid(two) in stats
            if not all(there):
                return int(there[0]) - int(there[1])
            return compare(one, two)

        return key

    def used(pod: Body) -> int:
        return _used(signal, layout, pod, stats[uid(pod)])

    asked = "memory" if "emory" in disk else "ephemeral-storage"

    def exceeds(pod: Body) -> bool:
        return used(pod) > (0 if inodes else request(pod, asked))

    def over(pod: Body) -> int:
        return used(pod) - request(pod, asked)

    exceeding = with_stats(lambda one, two: int(exceeds(two)) - int(exceeds(one)))
    more = with_stats(lambda one, two: over(two) - over(one))
    number = with_stats(lambda one, two: used(two) - used(one))

    def priority(one: Body, two: Body) -> int:
        return int(one["spec"].get("priority", 0)) - int(two["spec"].get("priority", 0))

    def name(one: Body, two: Body) -> int:
        return (uid(one) > uid(two)) - (uid(one) < uid(two))

    keys = (priority, number, name) if disk == "pid" else (exceeding, priority, more, name)

    def compare(one: Body, two: Body) -> int:
        return next((found for key in keys if (found := key(one, two))), 0)

    return sorted(pods, key=functools.cmp_to_key(compare))


def _exceeding(signal: str, pod: Body, stats: Body | None) -> list[str]:
    """Containers that the message names."""
    if stats is None or not signal.endswith(("emory.available", "fs.available")):
        return []
    name = "memory" if "emory" in signal else "ephemeral-storage"
    spec = pod["spec"]
    boxes = {box["name"]: box for box in (*spec["containers"], *spec.get("initContainers", []))}
    found = []
    for one in stats.get("containers", []):
        if one["name"] not in boxes:
            continue
        if name == "memory":
            used = one.get("memory", {}).get("workingSetBytes")
        else:
            both = one.get("rootfs", {}).get("usedBytes"), one.get("logs", {}).get("usedBytes")
            used = None if None in both else sum(both)
        asked = _requests(boxes[one["name"]]).get(name, "0")
        if used is not None and used > size(asked):
            found.append(one["name"])
    return found


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
    for one in stats.get("volume", []):
        volumes.setdefault(one["name"], one)
    for one in spec.get("volumes", []):
        most = size(one.get("emptyDir", {}).get("sizeLimit", "0"))
        if most and volumes.get(one["name"], {}).get("usedBytes", 0) > most:
            return True
    boxes = {box["name"]: box for box in stats.get("containers", [])}
    everybody = (*spec["containers"], *spec.get("initContainers", []))
    limited = any("ephemeral-storage" in _limits(box) for box in everybody)
    total = stats.get("ephemeral-storage", {}).get("usedBytes")
    if limited and total is not None and total > request(pod, "ephemeral-storage", _limits):
        return True
    for box in spec["containers"]:
        most = size(_limits(box).get("ephemeral-storage", "0"))
        one = boxes.get(box["name"], {})
        used = one.get("logs", {}).get("usedBytes", 0)
        if layout != "dedicated":
            used += one.get("rootfs", {}).get("usedBytes", 0)
        if most and used > most:
            return True
    return False
