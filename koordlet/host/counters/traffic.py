"""Bytes through the network of workloads that have a network of their own.

Covers: by which process a network namespace is reached, whose turn it is, what they moved.
Does not cover: the node's interfaces (``node``), rates (``history``).

Processes of a pod share one network namespace, so one of them shows what all move:
``/proc/PID/net/dev`` is that of the namespace of PID (proc_pid_net(5)). Only a thirtieth of the
workloads is read at each tick, at four system calls each.

Kernel fact: every namespace has directory entries of its own below ``/proc/PID/net``
(fs/proc/proc_net.c), so the inode of ``dev`` tells namespaces apart. ``/proc/PID/ns/net`` says it
more plainly, to those who may trace the process only (ptrace(2), PTRACE_MODE_READ), and the agent
may not.

Rules:
1. A workload in the namespace of process 1 has no network of its own: what it moves is the node's.
2. A process is remembered together with its namespace. One that is gone, or whose number belongs to
   another process in another namespace, is looked for anew.
3. Another namespace is another subject: its totals begin anew, and no rate spans both.
4. Where the namespace of process 1 cannot be told, nothing can: that is said, and asked again at
   each round.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

from koordlet.host.counters import procstat
from koordlet.host.fs import root
from koordlet.model import absence, cgroup, counters, meter, pod
from koordlet.model.record import dataclass

#: Ticks in which everybody has had a turn.
TURNS = 30
#: Groups of one workload in which a process is looked for.
_LOOKED = 8
_METERS = (meter.POD_RECEIVED, meter.POD_SENT)


@dataclass(slots=True)
class _Subject:
    """One workload."""

    slot: int
    groups: tuple[str, ...]
    pid: str = ""
    namespace: int = 0


class TrafficReader:
    """Reads one machine."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._tick = -1
        self._pods: Sequence[pod.Pod] = ()
        self._subjects: dict[str, _Subject] = {}
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._renewed: list[int] = []
        self._own = 0
        self._why = ""

    @property
    def unsupported(self) -> tuple[absence.Unsupported, ...]:
        """Reason for missing values; empty if there may be some."""
        return (absence.Unsupported("network.workloads", self._why),) if self._why else ()

    def read(
        self, at: float, suspended: float, layout: cgroup.Layout, pods: Sequence[pod.Pod]
    ) -> counters.Reading:
        """Read the workloads whose turn it is."""
        self._tick += 1
        if pods is not self._pods:
            self._follow(pods)
        if self._tick % TURNS == 0:
            # Rule 4.
            self._own = self._namespace("1")
            self._why = "" if self._own else "the network namespace of process 1 cannot be read"
        width = len(self._subjects) + len(self._free)
        turn = self._tick % TURNS
        length = len(range(turn, width, TURNS))
        columns = {what: array("d", [counters.NAN]) * length for what in _METERS}
        for subject in self._subjects.values() if self._own else ():
            if subject.slot % TURNS == turn:
                for what, total in zip(_METERS, self._look(subject, layout), strict=True):
                    columns[what][subject.slot // TURNS] = total
        renewed, self._renewed = self._renewed, []
        return counters.Reading.of(
            *(at, suspended, self._slots, columns),
            width=width,
            renewed=renewed,
            start=turn,
            step=TURNS,
        )

    def _follow(self, pods: Sequence[pod.Pod]) -> None:
        self._pods = pods
        wanted = {
            workload.group: _groups(workload) for workload in pods if workload.group is not None
        }
        for gone in self._subjects.keys() - wanted.keys():
            self._free.append(self._subjects.pop(gone).slot)
        self._free.sort(reverse=True)
        for name, groups in wanted.items():
            known = self._subjects.get(name)
            if known is not None:
                known.groups = groups
                continue
            slot = self._free.pop() if self._free else len(self._subjects)
            self._subjects[name] = _Subject(slot, groups)
            self._renewed.append(slot)
        self._slots = {name: subject.slot for name, subject in self._subjects.items()}

    def _look(self, subject: _Subject, layout: cgroup.Layout) -> tuple[float, float]:
        """The totals of one workload; missing where it has no network of its own."""
        if not subject.pid or self._namespace(subject.pid) != subject.namespace:
            subject.pid, namespace = self._process(subject, layout)
            if namespace != subject.namespace:
                subject.namespace = namespace
                self._renewed.append(subject.slot)
        if not subject.pid or subject.namespace == self._own:
            return counters.NAN, counters.NAN
        try:
            moved = procstat.net(self._host.read(self._host.proc(subject.pid, "net", "dev")))
        except (OSError, ValueError, IndexError):
            subject.pid = ""
            return counters.NAN, counters.NAN
        received, sent = (
            float(sum(each[what] for each in moved.values()))
            for what in (meter.RECEIVED, meter.SENT)
        )
        return received, sent

    def _process(self, subject: _Subject, layout: cgroup.Layout) -> tuple[str, int]:
        """A process of a workload and its network namespace; empty and 0 for none."""
        for pid in self._processes(subject.groups, layout):
            namespace = self._namespace(pid)
            if namespace:
                return pid, namespace
        return "", 0

    def _processes(self, groups: Sequence[str], layout: cgroup.Layout) -> Iterator[str]:
        """The first process of each group; a process of another PID namespace is called 0."""
        if not layout.hierarchies:
            return
        holder = layout.holder("cpuacct") or layout.holder("cpu") or layout.hierarchies[0]
        for group in groups:
            try:
                listed = self._host.read(self._host.at(f"{holder.directory(group)}/cgroup.procs"))
            except OSError:
                continue
            first, _, _ = listed.partition(b"\n")
            if first.isdigit() and first != b"0":
                yield first.decode()

    def _namespace(self, pid: str) -> int:
        """The number of a process's network namespace; 0 where it is gone."""
        try:
            return self._host.stat(self._host.proc(pid, "net", "dev")).inode
        except OSError:
            return 0


def _groups(workload: pod.Pod) -> tuple[str, ...]:
    """Cgroups of a workload's processes, likeliest first."""
    inside = [box.group for box in workload.containers if box.group is not None]
    # crun gives a container's processes a group of their own.
    nested = [f"{group}/container" for group in inside]
    own = [workload.group] if workload.group is not None else []
    return tuple([*inside[: _LOOKED // 2], *own, *nested][:_LOOKED])
