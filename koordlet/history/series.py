"""History of use: one space for each kind of subject.

Covers: which spaces there are. Does not cover: what they do (``history.space``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from koordlet.history import expectation, shares, space
from koordlet.model import cgroup, counters, cpuset, meter, prediction, qos, resources, snapshot
from koordlet.model import pod as pods

#: The node's own samples are few, so half an hour of them is kept one by one.
_NODE_DEPTH = 6

_SPACES = (
    *("groups", "node", "cpus", "numa", "links", "disks", "shares"),
    *("work", "traffic"),
)
#: Ticks in which every workload is sampled once, for what is expected of it.
_TURNS = 60
#: Seconds of use that one sample stands for.
_MINUTE = 60.0

_Pair = tuple[meter.Meter, meter.Meter]
#: Memory without page cache, as the peer learns it.
_USED: _Pair = (meter.CPU, meter.MEMORY_ANON)
_SHARED: _Pair = (meter.CPU_SHARE, meter.MEMORY_SHARE)


class History:
    """All spaces of history."""

    def __init__(self) -> None:
        #: By cgroup path.
        self.groups = space.Space()
        #: One subject, the empty name.
        self.node = space.Space(depth=_NODE_DEPTH)
        #: By CPU number, as text; so the others.
        self.cpus = space.Space()
        self.numa = space.Space(depth=_NODE_DEPTH)
        self.links = space.Space()
        self.disks = space.Space()
        #: Cycles and instructions by cgroup path, where they are counted.
        self.work = space.Space()
        #: By cgroup path of workloads that have a network of their own.
        self.traffic = space.Space()
        #: By class of workloads, and the system: ``shares.SUBJECTS``.
        self.shares = space.Space(depth=_NODE_DEPTH)
        self._shares = shares.Shares()
        #: What was learned, and what is expected of prod workloads; empty while not known.
        self.expectation = expectation.Expectation()
        self.predicted = prediction.Prediction()
        self._tick = 0
        #: When something was learned last, suspend counted.
        self._learned = -math.inf
        #: Whether the last reading was of everything at once: what is missing then is not there.
        self.complete = True

    def spaces(self) -> Mapping[str, space.Space]:
        """All of them, by the name that readings have."""
        return {name: getattr(self, name) for name in _SPACES}

    def take(
        self, readings: Mapping[str, counters.Reading], *, complete: bool | None = None
    ) -> None:
        """Take the readings of one tick; ``complete``: whether everything was read."""
        for name, known in self.spaces().items():
            if name in readings:
                known.take(readings[name])
        if readings and complete is not None:
            self.complete = complete

    def share(self, now: counters.Reading, pods: Sequence[pods.Pod]) -> None:
        """Share out what was read just now."""
        self.shares.take(self._shares.reading(now, pods, self.groups, self.node, self.traffic))

    def cpus_now(self, cpus: cpuset.CPUSet, at: float, seconds: float) -> float:
        """The use of these CPUs, in cores; what was read before the last seconds does not count."""
        uses = (self.cpus.recent(str(cpu), meter.CPU, at, seconds) for cpu in cpus)
        return sum(filter(None, uses))

    def cpus_average(self, cpus: cpuset.CPUSet, at: float, seconds: float) -> float:
        """The same over a window."""
        windows = (self.cpus.window(str(cpu), meter.CPU, at, seconds) for cpu in cpus)
        return sum(known.average for known in windows if known is not None)

    def learn(self, now: counters.Reading, seen: snapshot.Snapshot) -> None:
        """Train the models of those whose turn it is; once in all turns, predict."""
        pods = seen.pods
        self._tick += 1
        clock = now.at + now.suspended
        if clock - self._learned > expectation.EXPIRY_SECONDS:
            self.expectation.wake(clock)
        self._learned = clock
        for pod in pods[self._tick % _TURNS :: _TURNS]:
            self._learn(pod.uid, self._minute(self.groups, pod.group or "", now.at), clock)
        # At once where models were taken back: an offer is not to lose what they say for a minute.
        if self._tick % _TURNS and not (self._tick == 1 and len(self.expectation)):
            return
        system = self._minute(self.shares, shares.SYSTEM, now.at, _SHARED)
        if system is not None:
            # What runs outside of the tree is no part of the system that pods share CPUs with.
            elsewhere = self.cpus_average(seen.outside, now.at, _MINUTE)
            system = max(system[0] - elsewhere, 0.0), system[1]
        self._learn(expectation.SYSTEM, system, clock)
        prod = [self._minute(self.groups, pod.group or "", now.at) for pod in _prod(pods)]
        known = [pod for pod in prod if pod is not None]
        if known or not prod:
            # Where nobody's use is known that is no class that uses nothing.
            together = sum(use[0] for use in known), sum(use[1] for use in known)
            self._learn(expectation.PROD, together, clock)
        self.expectation.forget(clock)
        self.predicted = self.expectation.predict(pods, self._room(seen), clock)

    def _room(self, seen: snapshot.Snapshot) -> Mapping[str, float]:
        """Capacity for pods: the machine's inside of the tree, or less by the Node object."""
        declared = {**seen.node.allocatable, **seen.node.raw_allocatable}
        memory = self.node.last("", meter.MEMORY_TOTAL)
        room = {"cpu": float(len(seen.allowed))}
        room |= {} if memory is None else {"memory": memory}
        for name, scale in ((resources.CPU, 1000), (resources.MEMORY, 1)):
            if name in room and name in declared:
                room[name] = min(room[name], declared[name] / scale)
        return room

    def _learn(self, who: str, used: tuple[float, float] | None, clock: float) -> None:
        if used is not None:
            self.expectation.train(who, *used, clock)

    @staticmethod
    def _minute(
        where: space.Space, subject: str, at: float, meters: _Pair = _USED
    ) -> tuple[float, float] | None:
        """CPU and memory over a minute; ``None`` while less than half of it is known."""
        cpu, memory = (where.window(subject, meter, at, _MINUTE) for meter in meters)
        return None if cpu is None or memory is None else (cpu.average, memory.average)

    def usage(self) -> counters.Usage:
        """The newest values of everything."""
        return counters.Usage(**{name: space.table() for name, space in self.spaces().items()})


def _prod(pods: Sequence[pods.Pod]) -> list[pods.Pod]:
    """Prod pods whose use counts: not SYSTEM, and none inside another (``history.shares``)."""
    by_group = {
        pod.group: pod
        for pod in pods
        if pod.group is not None and pod.qos is not qos.Qos.SYSTEM and expectation.is_prod(pod)
    }
    return [
        table
        for group, table in by_group.items()
        if by_group.keys().isdisjoint(cgroup.ancestors(group))
    ]
