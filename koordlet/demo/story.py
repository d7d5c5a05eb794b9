"""Simulated workloads of the recorded machine and their kernel counters.

Covers: who wants how much, who gets it, who waits, how long requests take, all the counters.
Does not cover: groups and limits (``kernel``), which machine it is (``recorded``).

The law, simulated and said to be: where best-effort work yields (``cpu.idle``, or the least weight)
a CPU runs what is latency-sensitive first, and best-effort work gets what is left; where it does
not, it has half of each CPU for the asking. It never has more than its quota. Who shares a CPU
with it waits a little for each second of its own, the more the fuller the CPU is: caches are cold,
and it is woken late, the later where best-effort work does not yield.

One model makes every counter, so that they add up as those of a kernel do:
1. A CPU is busy or idle. What all groups used is what all CPUs were busy with; nobody uses more
   than the CPUs of its set, nor than its quota.
2. Stalled (``some``) is the part of the time in which anybody waits, never more than all of it.
   CPUs are independent: nobody waits while nobody waits on any of them.
3. A group counts what is counted inside of it.

The latency-sensitive service is asked for as much of its CPUs as by ``load`` on a real machine.
What it cannot answer at once waits in a queue, and where that is full it is refused. How long the
rest of a request takes is a distribution, wide as that of a real service, whose median and 99th
percentile follow from the law; chance is seeded.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from koordlet.demo import groups, intervals, kernel, load
from koordlet.host import machine
from koordlet.model import cpuset
from koordlet.model.record import dataclass

PIDS: Mapping[str, int] = {"ls": 4101, "be": 4102, "db": 4103}
#: CPUs that the service's load is a part of, whatever it may use; and that the database wants.
_SERVICE, _DB = 5, 1.7
#: Memory that workloads hold.
_MEMORY = {"ls": 300 << 20, "be": 180 << 20, "db": 240 << 20}
_SYSTEM_MEMORY = 220 << 20
#: Part of the time that it waits beside best-effort work, for each second of use; and what of that
#: is left where best-effort work yields.
_BESIDE, _YIELDS = 0.25, 0.1
#: What best-effort work has of a CPU for the asking where it does not.
_HALF = 0.5
#: Less of a CPU than this is nobody, and nothing.
_TRACE = 0.01
#: Seconds of a period of ``cpu.max``.
_PERIOD = 0.1
#: Requests that a busy CPU answers in a second, and what one needs, in milliseconds.
_RATE, _WORK = 333, 3.0
#: Standard deviations from the median to the 99th percentile.
_TAIL = 2.326
#: Seconds of one step of the simulation, at least and at most.
_LEAST, _MOST = 0.02, 0.5
#: Seconds of the averages of a pressure file, and of the load.
_STALLED, _LOADED = (10, 60, 300), (60, 300, 900)


@dataclass(slots=True, kw_only=True)
class _Stalls:
    """One pressure file."""

    seconds: float = 0.0
    averages: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def add(self, part: float, seconds: float) -> None:
        """Add stalled time."""
        self.seconds += part * seconds
        self.averages = _faded(self.averages, _STALLED, part, seconds)

    def text(self) -> str:
        """Render as the kernel prints it."""
        pairs = zip(_STALLED, self.averages, strict=True)
        some = " ".join(f"avg{span}={100 * part:.2f}" for span, part in pairs)
        total = int(1e6 * self.seconds)
        return f"some {some} total={total}\n{kernel.STALLS.splitlines()[1]}\n"


@dataclass(slots=True, kw_only=True)
class _Group:
    """Counters of one workload, in seconds."""

    used: float = 0.0
    #: Periods of its quota, those in which it wanted more, and how long it got nothing then.
    periods: float = 0.0
    throttled: float = 0.0
    withheld: float = 0.0
    stalls: _Stalls = field(default_factory=_Stalls)


class Story:
    """Advances the simulated machine whenever the clock is read."""

    def __init__(
        self,
        host: kernel.DemoMachine,
        online: cpuset.CPUSet,
        memory_bytes: int,
        now: Callable[[], machine.Now],
        asked: Callable[[float], float] = load.part,
    ) -> None:
        """``asked``: part of its CPUs that the service is asked for, so long after the start."""
        self._host = host
        self._online = online
        self._memory = memory_bytes
        self._now = now
        self._asked = asked
        self._start = self._at = now().at
        self._busy: dict[int, float] = dict.fromkeys(online, 0.0)
        self._groups = {name: _Group() for name in PIDS}
        #: Of the whole machine.
        self._stalls = _Stalls()
        self._load = [0.0, 0.0, 0.0]
        self._chance = random.Random(1)  # noqa: S311 -- the same requests each time
        self._requests: list[intervals.Span] = []
        #: CPU seconds of the requests that wait for the service.
        self._queue = 0.0
        for pid in PIDS.values():
            host.run(pid)
        self._tell()

    def clock(self) -> machine.Now:
        """The time, once the machine is as it is then."""
        now = self._now()
        if now.at - self._at >= _LEAST:
            while self._at < now.at:
                # Not by addition: the last step ends at the time that is told.
                end = now.at if now.at - self._at <= _MOST else self._at + _MOST
                seconds, self._at = end - self._at, end
                self._work(seconds)
            self._tell()
        return now

    def requests(self) -> list[intervals.Span]:
        """Requests since the last call: when due and when answered."""
        requests, self._requests = self._requests, []
        return requests

    # The law -------------------------------------------------------------------------------------

    def _work(self, seconds: float) -> None:
        asked = self._asked(self._at - seconds - self._start) * seconds * _SERVICE
        work = {"ls": asked + self._queue, "db": _DB * seconds}
        wants = {
            name: min(1.0, cpu_seconds / (seconds * len(self._cpus(name)) or 1.0))
            for name, cpu_seconds in work.items()
        }
        got = self._sensitive(wants, seconds)
        taken: dict[int, float] = defaultdict(float)
        for parts in got.values():
            for cpu, part in parts.items():
                taken[cpu] += part
        free = {cpu: max(0.0, 1 - taken[cpu]) for cpu in self._cpus("be")}
        beside = self._held("be", free, seconds)
        # The part of the time in which it has quota, less where it yields.
        met = self._part() * (_YIELDS if self._yields() else 1.0)
        waiting = {
            name: [
                1.0 if part < wants[name] - _TRACE
                else min(1.0, _BESIDE * part * met * _there(beside, cpu))
                for cpu, part in parts.items()
            ]
            for name, parts in got.items()
        }  # fmt: skip
        # It wants all of its CPUs, and waits whenever one of them runs something else.
        waiting["be"] = [1 - part for part in beside.values()]
        self._count({**got, "be": beside}, waiting, seconds)
        ls = got["ls"]
        if ls:
            shared = met * sum(_there(beside, cpu) for cpu in ls) / len(ls)
            self._answer(asked, sum(ls.values()) * seconds, shared, len(ls), seconds)

    def _answer(self, asked: float, did: float, shared: float, cpus: int, seconds: float) -> None:
        """The fuller the CPUs, and the more of them have another guest, the longer it takes.

        ``asked`` and ``did`` are CPU seconds.
        """
        before = self._queue
        most = load.PATIENCE * asked / seconds
        waiting = max(0.0, before + asked - did)
        self._queue = min(waiting, most)
        refused = round((waiting - self._queue) * _RATE)
        count, part = round(asked * _RATE), did / (cpus * seconds)
        p50 = 1e-3 * _WORK * (1 + 0.2 * part + 0.6 * shared * part)
        p99 = 1e-3 * _WORK * (1.5 + 1.5 * part + 12 * shared * part)
        spread = math.log(p99 / p50) / _TAIL
        for number in range(count):
            ratio = number / count
            due = self._at - seconds * (1 - ratio)
            queue = (before * (1 - ratio) + self._queue * ratio) * seconds / did if did else 0.0
            took = queue + p50 * math.exp(spread * self._chance.gauss(0, 1))
            answered = math.inf if number >= count - refused else due + took
            self._requests.append((due, answered))

    def _sensitive(self, wants: Mapping[str, float], seconds: float) -> dict[str, dict[int, float]]:
        """CPU use of each latency-sensitive workload on each of its CPUs."""
        asked: dict[int, float] = defaultdict(float)
        for name, part in wants.items():
            for cpu in self._cpus(name):
                asked[cpu] += part
        shared = cpuset.CPUSet() if self._yields() else self._cpus("be")
        room = {cpu: 1 - _HALF * self._part() if cpu in shared else 1.0 for cpu in asked}
        got = {
            name: {cpu: part * min(1.0, room[cpu] / asked[cpu]) for cpu in self._cpus(name)}
            for name, part in wants.items()
        }
        return {name: self._held(name, parts, seconds) for name, parts in got.items()}

    def _part(self) -> float:
        """The part of the time in which best-effort work has quota."""
        cpus = len(self._cpus("be"))
        return min(1.0, self._quota("be") / cpus) if cpus else 0.0

    def _yields(self) -> bool:
        """True if best-effort work, where there is some, runs as ``SCHED_IDLE``."""
        if not self._cpus("be"):
            return True
        files = (f"{_group('be')}/{name}" for name in ("cpu.idle", "cpu.weight"))
        return any(self._host.text(self._host.at(file)).strip() == "1" for file in files)

    def _held(self, name: str, parts: dict[int, float], seconds: float) -> dict[int, float]:
        """Apply the quota of the group, and count its periods."""
        whole = sum(parts.values())
        quota = self._quota(name) if parts else math.inf
        if quota == math.inf:
            return parts
        share = min(1.0, quota / whole) if whole else 1.0
        counted = self._groups[name]
        counted.periods += seconds / _PERIOD
        counted.throttled += seconds / _PERIOD * (share < 1)
        counted.withheld += seconds * (1 - share)
        return {cpu: part * share for cpu, part in parts.items()}

    def _count(
        self,
        got: Mapping[str, Mapping[int, float]],
        waiting: Mapping[str, Iterable[float]],
        seconds: float,
    ) -> None:
        """Rules 1 and 2."""
        running = 0.0
        for name, parts in got.items():
            self._groups[name].used += sum(parts.values()) * seconds
            for cpu, part in parts.items():
                self._busy[cpu] += part * seconds
                running += part
        stalled = {name: _any(parts) for name, parts in waiting.items()}
        for name, part in stalled.items():
            self._groups[name].stalls.add(part, seconds)
        self._stalls.add(_any(stalled.values()), seconds)
        waits = sum(sum(parts) for parts in waiting.values())
        self._load = _faded(self._load, _LOADED, running + waits, seconds)

    def _quota(self, name: str) -> float:
        quota, period = self._host.text(self._host.at(f"{_group(name)}/cpu.max")).split()
        return math.inf if quota == "max" else int(quota) / int(period)

    def _cpus(self, name: str) -> cpuset.CPUSet:
        """CPUs of a workload; none before its process is in its group."""
        group = _group(name)
        return self._host.cpus(group) if self._host.pids(group) else cpuset.CPUSet()

    # The counters --------------------------------------------------------------------------------

    def _tell(self) -> None:
        passed = self._at - self._start
        each = {cpu: (_jiffies(busy), _jiffies(passed)) for cpu, busy in self._busy.items()}
        lines = [f"cpu{cpu} {_times(*two)}" for cpu, two in each.items()]
        whole = _times(*map(sum, zip(*each.values(), strict=True)))
        self._put("/proc/stat", "\n".join([f"cpu  {whole}", *lines, "btime 1", ""]))
        held = _SYSTEM_MEMORY + sum(_MEMORY.values())
        self._put("/proc/meminfo", _meminfo(self._memory, held))
        self._put(f"{kernel.TOP}/memory.stat", _anonymous(held))
        self._put(f"{kernel.TOP}/cpu.stat", _cpu_stat(sum(self._busy.values())))
        averages = " ".join(f"{average:.2f}" for average in self._load)
        self._put("/proc/loadavg", f"{averages} 1/100 1\n")
        self._put("/proc/pressure/cpu", self._stalls.text())
        self._put(f"{kernel.TOP}/cpu.pressure", self._stalls.text())
        here = [name for name, pid in PIDS.items() if pid in self._host.pids(_group(name))]
        for name in here:
            counted = self._groups[name]
            self._put(f"{_group(name)}/cpu.pressure", counted.stalls.text())
            self._tell_group(_group(name), (name,))
        top = f"{kernel.TOP}/{groups.GROUP}"
        if self._host.exists(self._host.at(top)):
            # Nobody else runs on this machine.
            self._put(f"{top}/cpu.pressure", self._stalls.text())
            self._tell_group(top, here)

    def _tell_group(self, group: str, names: Iterable[str]) -> None:
        """Rule 3; its own quota counts where it is, and nowhere else."""
        inside = [self._groups[name] for name in names]
        own = inside[0] if len(inside) == 1 and group != f"{kernel.TOP}/{groups.GROUP}" else None
        memory = sum(_MEMORY[name] for name in names)
        used = sum(counted.used for counted in inside)
        self._put(f"{group}/cpu.stat", _cpu_stat(used, own or _Group()))
        self._put(f"{group}/memory.current", f"{memory}\n")
        self._put(f"{group}/pids.current", f"{len(inside)}\n")
        self._put(f"{group}/memory.stat", _anonymous(memory))

    def _put(self, path: str, text: str) -> None:
        self._host.change(path, data=text.encode())


def _group(name: str) -> str:
    return f"{kernel.TOP}/{groups.GROUP}/{name}"


def _there(beside: Mapping[int, float], cpu: int) -> bool:
    """True if best-effort work runs on a CPU."""
    return beside.get(cpu, 0.0) > _TRACE


def _any(parts: Iterable[float]) -> float:
    """The part of the time in which at least one of them is the case, each by itself."""
    return 1 - math.prod(1 - part for part in parts)


def _faded(
    averages: Iterable[float], spans: Iterable[int], now: float, seconds: float
) -> list[float]:
    """Averages that forget exponentially, a while later."""
    kept = (
        (average, math.exp(-seconds / span)) for average, span in zip(averages, spans, strict=True)
    )
    return [average * part + now * (1 - part) for average, part in kept]


def _jiffies(seconds: float) -> int:
    return int(100 * seconds)


def _times(busy: int, passed: int) -> str:
    """A line of ``/proc/stat``: user time, and idle for the rest."""
    return f"{busy} 0 0 {max(0, passed - busy)} 0 0 0 0 0 0"


def _cpu_stat(used: float, own: _Group | None = None) -> str:
    """Text of ``cpu.stat`` of a group; the root group has no quota."""
    text = f"usage_usec {int(1e6 * used)}\nuser_usec {int(1e6 * used)}\nsystem_usec 0\n"
    if own is None:
        return text
    return (
        f"{text}nr_periods {int(own.periods)}\nnr_throttled {int(own.throttled)}\n"
        f"throttled_usec {int(1e6 * own.withheld)}\n"
    )


def _meminfo(total: int, held: int) -> str:
    free = (total - held) >> 10
    return (
        f"MemTotal: {total >> 10} kB\nMemFree: {free} kB\nMemAvailable: {free} kB\n"
        "Active(file): 0 kB\nInactive(file): 0 kB\nSReclaimable: 0 kB\n"
        "SwapTotal: 0 kB\nSwapFree: 0 kB\n"
    )


def _anonymous(held: int) -> str:
    return (
        f"anon {held}\nfile 0\ninactive_anon 0\nactive_anon {held}\ninactive_file 0\n"
        "active_file 0\nunevictable 0\n"
    )
