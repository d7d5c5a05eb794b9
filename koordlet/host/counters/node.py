"""Reads what the machine as a whole uses: node, CPUs, NUMA nodes, network interfaces.

Covers: which files are read at which tick, subjects that come and go, damage and absence.
Does not cover: what the texts mean (``procstat``), space on disks (``host.fs.space``).

Processor time and memory are read at every tick, the rest at every fifth. A file that is not there
or says something else costs its own values: they are missing, and it is counted.
"""

from __future__ import annotations

import errno
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from koordlet.host.counters import cold_memory, procstat
from koordlet.host.fs import descriptors, root
from koordlet.model import absence, cgroup, counters, meter, topology

#: Ticks between two reads of what is not urgent.
_EVERY = 5
#: ... and of what the kernel itself finds out in minutes.
_SELDOM = 30
#: Why a kernel accounts no pressure. Some have files that answer nothing before they are told to;
#: without the files nobody can tell that from one that was built without (kernel/sched/psi.c).
_NO_PRESSURE = {
    errno.EOPNOTSUPP: "pressure stall information is off: boot with psi=1",
    errno.ENOENT: "pressure stall information is off or not built in: boot with psi=1, and where"
    " that does not help with a kernel that has CONFIG_PSI",
}
#: Interfaces without a device are those of containers; where there are no others, so many count.
_MOST_VIRTUAL = 16

Values = Mapping[str, Mapping[meter.Meter, float]]

_T = TypeVar("_T")


class NodeReader:
    """Reads one machine."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._files = descriptors.KeptFiles(host)
        self._tick = -1
        self._subjects = {name: _Subjects() for name in ("node", "cpus", "numa", "links")}
        self._node_of: dict[str, str] = {}
        self._nodes: tuple[str, ...] = ()
        self._layout = cgroup.Layout()
        #: Interface to whether it has a device.
        self._devices: dict[str, bool] = {}
        #: Feature to why it is not there.
        self._missing: dict[str, str] = {}
        #: What was wrong with files at this tick.
        self._problems: list[str] = []
        self.counts: Counter[str] = Counter(read=0, damaged=0)
        #: When processor time and memory were read well last, and why they were not since then.
        self.good_at: float | None = None
        self.problem = "not read yet"

    @property
    def unsupported(self) -> tuple[absence.Unsupported, ...]:
        """Counters that this kernel lacks."""
        return tuple(absence.Unsupported(name, why) for name, why in sorted(self._missing.items()))

    def configure(self, machine: topology.Topology, layout: cgroup.Layout | None = None) -> None:
        """Take the shape of the machine: which CPU is on which NUMA node, where groups are."""
        self._layout = layout or self._layout
        self._node_of = {
            str(cpu.cpu): str(cpu.node) for cpu in machine.cpus if cpu.node is not None
        }
        self._nodes = tuple(str(node.node) for node in machine.nodes)

    def read(
        self, at: float, suspended: float = 0.0, *, thorough: bool = False
    ) -> dict[str, counters.Reading]:
        """Read due counters by space; on request all but cold memory."""
        self._tick += 1
        slow = thorough or self._tick % _EVERY == 0
        self._problems = []
        times, cpus = self._proc("stat", procstat.stat, kept=True) or ({}, {})
        node = {**times, **(self._proc("meminfo", procstat.meminfo, kept=True) or {})}
        self.problem = "; ".join(self._problems)
        if not self.problem:
            self.good_at = at
        if slow:
            self._slowly(node)
        if self._tick % _SELDOM == 0:
            self._cold(node)
        by_scope: dict[str, Values] = {
            "node": {"": node},
            "cpus": {cpu: {meter.CPU: seconds} for cpu, seconds in cpus.items()},
            "numa": self._numa(cpus, slow=slow),
        }
        if slow:
            by_scope["links"] = self._links()
        return {
            name: self._subjects[name].reading(values, at, suspended)
            for name, values in by_scope.items()
        }

    def close(self) -> None:
        """Give all descriptors back."""
        self._files.close()

    def _slowly(self, node: dict[meter.Meter, float]) -> None:
        for name, understand in (
            ("loadavg", procstat.loadavg),
            ("vmstat", procstat.vmstat),
            ("schedstat", procstat.schedstat),
        ):
            node.update(self._proc(name, understand) or {})
        for stall in meter.PRESSURES:
            values = self._proc(f"pressure/{stall.resource}", procstat.pressure)
            node.update(zip(stall.meters, values, strict=True) if values is not None else ())

    def _cold(self, node: dict[meter.Meter, float]) -> None:
        self._missing.pop("memory.cold", None)
        try:
            cold = cold_memory.node(self._host, self._layout)
        except ValueError:
            self.counts["damaged"] += 1
            return
        except OSError as error:
            self._missing["memory.cold"] = f"{error.filename}: {error.strerror}"
            return
        if isinstance(cold, absence.Unsupported):
            self._missing[cold.feature] = cold.why
        else:
            node[meter.MEMORY_COLD] = cold

    def _proc(
        self, name: str, understand: Callable[[bytes], _T], *, kept: bool = False
    ) -> _T | None:
        """What a file below ``/proc`` says; of one that is read at every tick, a descriptor."""
        return self._file(name, self._host.proc(*name.split("/")), understand, kept=kept)

    def _file(
        self,
        name: str,
        path: root.HostPath,
        understand: Callable[[bytes], _T],
        *,
        kept: bool = False,
    ) -> _T | None:
        """What a file says. Whatever is wrong with it costs its values only."""
        try:
            text = (self._files.read if kept else self._host.read)(path)
        except OSError as error:
            self._host.silence.met(error, gap=True)
            why = f"{path}: {error.strerror}"
            self._problems.append(why)
            off = _NO_PRESSURE.get(error.errno or 0) if name.startswith("pressure/") else None
            self._missing[name.replace("/", ".")] = f"{why} ({off})" if off else why
            return None
        self._missing.pop(name.replace("/", "."), None)
        self.counts["read"] += 1
        try:
            return understand(text)
        except (ValueError, IndexError) as error:
            self.counts["damaged"] += 1
            self._problems.append(f"{path}: {error}")
            return None

    def _numa(self, cpus: Mapping[str, float], *, slow: bool) -> Values:
        by_node: dict[str, dict[meter.Meter, float]] = {node: {} for node in self._nodes}
        for cpu, seconds in cpus.items():
            on = by_node.get(self._node_of.get(cpu, ""))
            if on is not None:
                on[meter.CPU] = on.get(meter.CPU, 0.0) + seconds
        # A CPU that comes back brings the time of its former life: that is no rate of its node.
        self._subjects["numa"].life = frozenset(cpus)
        for node in self._nodes if slow else ():
            path = self._host.sys("devices", "system", "node", f"node{node}", "meminfo")
            memory = self._file(f"node{node}.meminfo", path, procstat.node_meminfo)
            by_node[node].update(memory or {})
        return by_node

    def _links(self) -> Values:
        links = self._proc("net/dev", procstat.net) or {}
        self._devices = {
            name: self._devices[name]
            if name in self._devices
            else self._host.exists(self._host.sys("class", "net", name, "device"))
            for name in links
        }
        real = [name for name in links if self._devices[name]]
        return {name: links[name] for name in real or sorted(links)[:_MOST_VIRTUAL]}


class _Subjects:
    """Slots of subjects that have names."""

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        #: When this changes, all totals begin anew.
        self.life: object = None
        self._lived: object = None

    def reading(self, values: Values, at: float, suspended: float) -> counters.Reading:
        """The values as a reading; a subject or a meter that is not in it is missing."""
        renewed: Iterable[int] = ()
        if values.keys() != self._slots.keys():
            # Names move rarely, and then together: everything begins anew.
            self._slots = {name: slot for slot, name in enumerate(values)}
            renewed = range(len(values))
        elif self.life != self._lived:
            renewed = range(len(values))
        self._lived = self.life
        there = dict.fromkeys(what for value in values.values() for what in value)
        columns = {
            what: array("d", [values[name].get(what, counters.NAN) for name in self._slots])
            for what in there
        }
        width = len(self._slots)
        return counters.Reading.of(
            at, suspended, self._slots, columns, width=width, renewed=renewed
        )
