"""Meters: the quantities of counters, history, policies and reports.

Covers: each quantity, its unit, whether it grows, how long it is remembered.
Does not cover: the files that say it (``host.counters.files``), values (``model.counters``).

A counter is read as a growing total; what everybody sees of it is its rate per second, so the unit
of CPU time in seconds is cores, and that of a stall time in seconds is the share of time.
"""

from __future__ import annotations

import functools

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Meter:
    """One measured quantity, compared by identity."""

    name: str
    #: The unit of what is shown.
    unit: str
    #: A growing total, which is shown as a rate.
    counter: bool = False
    #: Samples that are remembered one by one; none where only the newest counts.
    samples: int = 0
    #: Seconds between two of them.
    period: int = 1
    #: Whether half an hour is remembered in steps of 15 seconds, too.
    coarse: bool = False


#: Five minutes, by the seconds between two samples.
_FIVE_MINUTES = {period: 300 // period for period in (1, 2, 5, 10)}

_HALF_AN_HOUR = 1800
_half_hourly = functools.partial(Meter, samples=_HALF_AN_HOUR // 30, period=30)

CPU = Meter(name="cpu", unit="cores", counter=True, samples=_FIVE_MINUTES[1], coarse=True)
CPU_USER = Meter(name="cpu.user", unit="cores", counter=True)
CPU_SYSTEM = Meter(name="cpu.system", unit="cores", counter=True)
#: Enforcement periods of the CPU limit, those that ran into it, and the time spent waiting then.
PERIODS = Meter(name="cpu.periods", unit="1/s", counter=True)
THROTTLED_PERIODS = Meter(name="cpu.throttled_periods", unit="1/s", counter=True)
THROTTLED_TIME = Meter(name="cpu.throttled_time", unit="s/s", counter=True)
#: Throttled periods of all periods in between: what the peer calls the throttled ratio.
THROTTLED = Meter(name="cpu.throttled", unit="ratio", samples=_FIVE_MINUTES[5], period=5)

#: With the page cache. Seldom wished for over a while, so few samples are kept.
MEMORY = Meter(name="memory", unit="bytes", samples=_FIVE_MINUTES[10], period=10)
#: What cannot be had back without cost: use without the inactive page cache. Of each group it is
#: read at every other tick.
WORKING_SET = Meter(
    name="memory.working_set", unit="bytes", samples=_FIVE_MINUTES[2], period=2, coarse=True
)
#: Anonymous and unevictable memory: use without any page cache, as the node's own is counted.
MEMORY_ANON = Meter(
    name="memory.anon", unit="bytes", samples=_FIVE_MINUTES[5], period=5, coarse=True
)
MEMORY_CACHE = Meter(name="memory.cache", unit="bytes", samples=_FIVE_MINUTES[5], period=5)
MEMORY_INACTIVE_FILE = Meter(name="memory.inactive_file", unit="bytes")
#: What was not touched for five minutes, where the kernel keeps count (kidled, DAMON).
MEMORY_COLD = _half_hourly(name="memory.cold", unit="bytes")
OOM_KILLS = Meter(name="memory.oom_kills", unit="1/s", counter=True)

#: What a class of workloads, or the system, uses of the node.
CPU_SHARE = Meter(name="share.cpu", unit="cores", samples=_FIVE_MINUTES[1], coarse=True)
MEMORY_SHARE = Meter(name="share.memory", unit="bytes", samples=_FIVE_MINUTES[1], coarse=True)

#: Of a class of workloads: throttled of all periods, tasks, I/O, and the most stalled workload's
#: share of time in which some task waited.
THROTTLED_SHARE = Meter(name="share.cpu.throttled", unit="ratio")
PIDS_SHARE = Meter(name="share.pids", unit="tasks")
IO_READ_SHARE = Meter(name="share.io.read", unit="bytes/s")
IO_WRITE_SHARE = Meter(name="share.io.write", unit="bytes/s")
RECEIVED_SHARE = _half_hourly(name="share.network.received", unit="bytes/s")
SENT_SHARE = _half_hourly(name="share.network.sent", unit="bytes/s")

PIDS = Meter(name="pids", unit="tasks")
IO_READ = Meter(name="io.read", unit="bytes/s", counter=True)
IO_WRITE = Meter(name="io.write", unit="bytes/s", counter=True)

#: Through the network of a workload that has one of its own.
POD_RECEIVED = _half_hourly(name="network.pod.received", unit="bytes/s", counter=True)
POD_SENT = _half_hourly(name="network.pod.sent", unit="bytes/s", counter=True)

#: What a group did in its newest window of counting, and cycles per instruction.
CYCLES = Meter(name="work.cycles", unit="cycles")
INSTRUCTIONS = Meter(name="work.instructions", unit="instructions")
CPI = Meter(name="work.cpi", unit="cycles/instruction", samples=_HALF_AN_HOUR // 60, period=60)
WORK = (CYCLES, INSTRUCTIONS, CPI)

# Of the node alone --------------------------------------------------------------------------------

MEMORY_TOTAL = Meter(name="memory.total", unit="bytes")
MEMORY_FREE = Meter(name="memory.free", unit="bytes")
MEMORY_AVAILABLE = Meter(name="memory.available", unit="bytes")
SWAP_TOTAL = Meter(name="swap.total", unit="bytes")
SWAP_FREE = Meter(name="swap.free", unit="bytes")
LOAD_1 = Meter(name="load.1", unit="tasks on average")
LOAD_5 = Meter(name="load.5", unit="tasks on average")
LOAD_15 = Meter(name="load.15", unit="tasks on average")
#: Time that runnable tasks waited for a CPU, summed over CPUs: latency before anybody complains.
RUN_DELAY = Meter(
    name="cpu.run_delay", unit="s/s", counter=True, samples=_FIVE_MINUTES[5], period=5
)
MAJOR_FAULTS = Meter(name="memory.major_faults", unit="1/s", counter=True)
SWAPPED_IN = Meter(name="swap.in", unit="pages/s", counter=True)
SWAPPED_OUT = Meter(name="swap.out", unit="pages/s", counter=True)
RECEIVED = Meter(name="network.received", unit="bytes/s", counter=True)
SENT = Meter(name="network.sent", unit="bytes/s", counter=True)
SPACE_TOTAL = Meter(name="disk.total", unit="bytes")
SPACE_AVAILABLE = Meter(name="disk.available", unit="bytes")
INODES_TOTAL = Meter(name="disk.inodes", unit="inodes")
INODES_FREE = Meter(name="disk.inodes_free", unit="inodes")


@dataclass(frozen=True, slots=True, eq=False)
class Pressure:
    """The meters of one pressure file: for some and for all tasks, averages and the stall time."""

    resource: str
    some: tuple[Meter, Meter, Meter, Meter]
    full: tuple[Meter, Meter, Meter, Meter]

    @property
    def meters(self) -> tuple[Meter, ...]:
        """The meters in the order of the numbers in the file."""
        return (*self.some, *self.full)


#: The averages of a pressure file, in seconds.
AVERAGES = (10, 60, 300)


def _pressure(resource: str) -> Pressure:
    def half(degree: str) -> tuple[Meter, Meter, Meter, Meter]:
        stem = f"pressure.{resource}.{degree}"
        ten, sixty, long = (Meter(name=f"{stem}.avg{n}", unit="percent") for n in AVERAGES)
        stalled = Meter(
            name=f"{stem}.stalled", unit="ratio", counter=True, samples=_FIVE_MINUTES[10], period=10
        )
        return ten, sixty, long, stalled

    return Pressure(resource, half("some"), half("full"))


PRESSURE_CPU = _pressure("cpu")
PRESSURE_MEMORY = _pressure("memory")
PRESSURE_IO = _pressure("io")
PRESSURES = (PRESSURE_CPU, PRESSURE_MEMORY, PRESSURE_IO)

#: In the order of ``PRESSURES``.
STALLED_SHARES = tuple(
    Meter(name=f"share.pressure.{pressure.resource}", unit="ratio") for pressure in PRESSURES
)

_numa: list[Meter] = []


def numa_memory(node: int) -> Meter:
    """Memory of a group on one NUMA node."""
    while len(_numa) <= node:
        _numa.append(Meter(name=f"memory.numa.{len(_numa)}", unit="bytes"))
    return _numa[node]
