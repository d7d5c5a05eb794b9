"""Everything that is read about use in one tick, by kind of subject.

Covers: the readers of groups and of the node side by side, what of it this machine lacks.
Does not cover: rates and windows (``history``), which groups there are (``host.cgroup.tree``).
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence

from koordlet.host import machine
from koordlet.host.counters import groups as group_counters
from koordlet.host.counters import node
from koordlet.host.fs import descriptors, root
from koordlet.model import absence, cgroup, pod, snapshot, topology
from koordlet.model import counters as readings

if typing.TYPE_CHECKING:
    from koordlet.host.counters import performance, traffic
    from koordlet.host.fs import space

#: Where workloads write: the kubelet's and the runtimes' files, logs, and all the rest.
DIRECTORIES = (
    "/",
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/log",
)
#: A pass that follows the last one more closely finds nothing new: its rates would be noise.
_CLOSEST = 0.5


class UsageReader:
    """Reads one machine. What is slow to change is told by ``configure``."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._handles = descriptors.share(0.5, group_counters.HANDLES) if host.live else 0
        self._last = float("-inf")
        self._layout = cgroup.Layout()
        self._machine: topology.Topology | None = None
        #: Numbers of the NUMA nodes by which the memory of groups is read.
        self._nodes: tuple[int, ...] = ()
        self.groups = group_counters.GroupReader(host, self._layout)
        self.node = node.NodeReader(host)
        self._space: space.SpaceReader | None = None
        self._performance: performance.PerformanceReader | None = None
        self._traffic: traffic.TrafficReader | None = None
        #: Read everything at once: for commands that look only once.
        self.thorough = False
        #: Read at once what workloads are compared by.
        self.comparing = False

    @property
    def space(self) -> space.SpaceReader | None:
        """Reader of file system space, created on first use."""
        return self._space

    def read_everything(self) -> None:
        """From now on, read everything at once."""
        self.thorough = True

    def compare(self, *, wanted: bool) -> None:
        """Whether to read at once, from now on, what workloads are compared by."""
        self.comparing = wanted

    def watch(self, directories: Iterable[str] = DIRECTORIES) -> None:
        """Read less urgent counters too; on a live machine only.

        A child looks at the room on filesystems; networks of workloads are read through processes.
        """
        if self._host.live and self._space is None:
            # Late: the first pass needs no child, no subprocess and no network.
            from koordlet.host.counters import traffic  # noqa: PLC0415
            from koordlet.host.fs import space  # noqa: PLC0415

            self._space = space.SpaceReader(tuple(directories))
            self._traffic = traffic.TrafficReader(self._host)

    def count(self, settings: performance.PerformanceSettings | None) -> None:
        """Count cycles and instructions in this way from now on; ``None``: do not."""
        if settings == (self._performance.settings if self._performance else None):
            return
        if self._performance is not None:
            self._performance.close()
            self._performance = None
        if settings is not None:
            # Late: it is off unless the operator wants it.
            from koordlet.host.counters import performance  # noqa: PLC0415

            self._performance = performance.PerformanceReader(self._host, settings)

    def configure(self, layout: cgroup.Layout, shape: topology.Topology) -> None:
        """Take mounts and shape of the machine; the same objects again cost nothing."""
        if shape is self._machine and layout is self._layout:
            return
        self.node.configure(shape, layout)
        nodes = tuple(numa_node.node for numa_node in shape.nodes)
        if layout is not self._layout or nodes != self._nodes:
            self.groups.close()
            self.groups = group_counters.GroupReader(
                self._host, layout, nodes=nodes, handles=self._handles
            )
        self._layout, self._machine, self._nodes = layout, shape, nodes

    def read(
        self,
        now: machine.Now,
        groups: Mapping[str, cgroup.Group],
        pods: Sequence[pod.Pod] = (),
    ) -> dict[str, readings.Reading]:
        """Read due counters of cgroups and node; nothing shortly after the last read."""
        if now.at - self._last < _CLOSEST:
            return {}
        self._last = now.at
        self.groups.follow(groups)
        by_scope = {
            "groups": self.groups.read(
                now.at, now.suspended, thorough=self.thorough, comparing=self.comparing
            ),
            **self.node.read(now.at, now.suspended, thorough=self.thorough),
        }
        if self._space is not None:
            by_scope["disks"] = self._space.read(now.at, now.suspended)
        if self._traffic is not None:
            by_scope["traffic"] = self._traffic.read(now.at, now.suspended, self._layout, pods)
        if self._performance is not None and self._machine is not None:
            online = self._machine.online
            worked = self._performance.read(now.at, now.suspended, self._layout, online, pods)
            by_scope |= {} if worked is None else {"work": worked}
        return by_scope

    @property
    def counts(self) -> Mapping[str, int]:
        """Files read, opened, gone and damaged, mounts that hung, since the start."""
        counts = dict(self.groups.counts)
        for name, number in self.node.counts.items():
            counts[name] = counts.get(name, 0) + number
        counts["hung"] = 0 if self._space is None else self._space.hung
        return counts

    @property
    def unsupported(self) -> tuple[absence.Unsupported, ...]:
        """Counters that this machine lacks, known after the first read."""
        return (
            *self.node.unsupported,
            *(
                absence.Unsupported(f"counters.{name}", "no cgroup has this file")
                for name in sorted(self.groups.missing)
            ),
            *(self._traffic.unsupported if self._traffic is not None else ()),
            *(self._performance.unsupported if self._performance is not None else ()),
        )

    @property
    def source(self) -> snapshot.Source:
        """Health of the counters as a source; the history has the age of each."""
        return snapshot.Source(
            name="counters",
            ok=not self.node.problem,
            last_good=self.node.good_at,
            problem=self.node.problem,
            local=True,
        )

    def close(self) -> None:
        """Give all descriptors back, and end the child."""
        self.groups.close()
        self.node.close()
        self.count(None)
        if self._space is not None:
            self._space.close()
