"""What runs on the recorded machine, and what its kernel counts of it.

Covers: who wants how much, who gets it, who waits, how long requests take, all the counters.
Does not cover: groups and limits (``kernel``), which machine it is (``recorded``).

The law, simulated and said to be: a CPU runs what is latency-sensitive first, best-effort work gets
what is left of the CPUs and of the quota that it may use. Who shares a CPU with it waits a little
for each second of its own, the more the fuller the CPU is, and the more of its CPUs the quota would
let best-effort work have: caches are cold, and it is woken late.

For five of each twenty seconds the latency-sensitive service is asked for most of what its CPUs can
do, as by ``load`` on a real machine.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping

from koordlet.demo import groups, kernel, latency, load
from koordlet.host import machine
from koordlet.model import cpuset

PIDS: Mapping[str, int] = {"ls": 4101, "be": 4102, "db": 4103}
#: Part of each of its CPUs that a workload wants, and memory that it holds.
_CALM, _BUSY, _DB = 0.12, 0.7, 0.45
_MEMORY = {"ls": 300 << 20, "be": 180 << 20, "db": 240 << 20}
_SYSTEM_MEMORY = 220 << 20
#: Seconds of waiting for each second of use, times how full the CPU is, beside best-effort work.
_BESIDE = 2.0
#: Less of a CPU than this is nobody.
_TRACE = 0.01
#: Seconds of a period of ``cpu.max``.
_PERIOD = 0.1
#: Requests that a busy CPU answers in a second, and what one needs, in milliseconds.
_RATE, _WORK = 333, 3.0
_LEAST = 0.02
_MOST = 2.0


class Story:
    """Moves the machine on whenever somebody asks for the time."""

    def __init__(
        self,
        host: kernel.Machine,
        online: cpuset.CPUSet,
        memory_bytes: int,
        now: Callable[[], machine.Now],
    ) -> None:
        self._host = host
        self._online = online
        self._memory = memory_bytes
        self._now = now
        self._start = self._at = now().at
        #: Seconds: by CPU, used by group, waited by group; stalls of the last ten seconds.
        self._busy: dict[int, float] = dict.fromkeys(online, 0.0)
        self._used: dict[str, float] = defaultdict(float)
        self._waited: dict[str, float] = defaultdict(float)
        self._stall: dict[str, float] = defaultdict(float)
        #: Periods of the quota of best-effort work, and those in which it wanted more.
        self._periods = self._throttled = 0.0
        #: In what part of the time best-effort work has quota left, so that it is met.
        self._met = 1.0
        self._latency: latency.Latency | None = None
        for pid in PIDS.values():
            host.run(pid)
        self._tell()

    def clock(self) -> machine.Now:
        """The time, once the machine is as it is then."""
        now = self._now()
        passed = min(_MOST, now.at - self._at)
        if passed >= _LEAST:
            self._at = now.at
            self._work(passed)
            self._tell()
        return now

    def latency(self) -> latency.Latency | None:
        """What requests take now; ``None`` while the service has no group."""
        return self._latency

    # The law -------------------------------------------------------------------------------------

    def _work(self, seconds: float) -> None:
        busy = load.busy(self._at - self._start)
        wants = {"ls": _BUSY if busy else _CALM, "db": _DB}
        full = dict.fromkeys(self._online, 0.0)
        for name, part in wants.items():
            for cpu in self._cpus(name):
                full[cpu] += part
        beside = self._best_effort(full, seconds)
        ls = self._cpus("ls")
        for name, part in wants.items():
            mine = self._cpus(name)
            self._used[name] += part * len(mine) * seconds
            there = sum(_there(beside, cpu) for cpu in mine)
            waiting = _BESIDE * part * part * self._met * there
            self._waited[name] += waiting * seconds
            self._stalls(name, waiting, seconds)
        for cpu, part in full.items():
            self._busy[cpu] += (min(1.0, part) + beside.get(cpu, 0.0)) * seconds
        if ls:
            shared = self._met * sum(_there(beside, cpu) for cpu in ls) / len(ls)
            self._latency = _requests(wants["ls"], shared, len(ls))

    def _best_effort(self, full: Mapping[int, float], seconds: float) -> dict[int, float]:
        """What best-effort work gets of each CPU."""
        free = {cpu: max(0.0, 1 - full[cpu]) for cpu in self._cpus("be")}
        whole = sum(free.values())
        quota = self._quota() if whole else math.inf
        part = min(1.0, quota / whole) if whole else 0.0
        self._met = min(1.0, quota / len(free)) if free else 0.0
        if quota < math.inf:
            self._periods += seconds / _PERIOD
            self._throttled += seconds / _PERIOD * (part < 1)
        self._used["be"] += whole * part * seconds
        return {cpu: one * part for cpu, one in free.items()}

    def _quota(self) -> float:
        quota, period = self._host.text(self._host.at(f"{_group('be')}/cpu.max")).split()
        return math.inf if quota == "max" else int(quota) / int(period)

    def _cpus(self, name: str) -> cpuset.CPUSet:
        """Where it runs: nowhere before its process is in its group."""
        group = _group(name)
        return self._host.cpus(group) if self._host.pids(group) else cpuset.CPUSet()

    def _stalls(self, name: str, part: float, seconds: float) -> None:
        faded = math.exp(-seconds / 10)
        self._stall[name] = self._stall[name] * faded + min(1.0, part) * (1 - faded)

    # The counters --------------------------------------------------------------------------------

    def _tell(self) -> None:
        lines = [f"cpu{cpu} {_jiffies(busy)}" for cpu, busy in self._busy.items()]
        whole = _jiffies(sum(self._busy.values()))
        self._put("/proc/stat", "\n".join([f"cpu  {whole}", *lines, "btime 1", ""]))
        held = _SYSTEM_MEMORY + sum(_MEMORY.values())
        self._put("/proc/meminfo", _meminfo(self._memory, held))
        self._put(f"{kernel.TOP}/memory.stat", _anonymous(held))
        average = sum(self._busy.values()) / max(0.1, self._at - self._start + 0.1)
        self._put("/proc/loadavg", f"{average:.2f} {average:.2f} {average:.2f} 1/100 1\n")
        self._put("/proc/pressure/cpu", _pressure(max(self._stall.values(), default=0.0), 0.0))
        for name, pid in PIDS.items():
            if pid in self._host.pids(_group(name)):
                self._tell_group(_group(name), (name,))
        if self._host.exists(self._host.at(f"{kernel.TOP}/{groups.GROUP}")):
            self._tell_group(f"{kernel.TOP}/{groups.GROUP}", tuple(PIDS))

    def _tell_group(self, group: str, names: tuple[str, ...]) -> None:
        used = int(1e6 * sum(self._used[one] for one in names))
        memory = sum(_MEMORY[one] for one in names)
        waited = sum(self._waited[one] for one in names)
        stall = max(self._stall[one] for one in names)
        periods, throttled = (self._periods, self._throttled) if names == ("be",) else (0, 0)
        self._put(
            f"{group}/cpu.stat",
            f"usage_usec {used}\nuser_usec {used}\nsystem_usec 0\n"
            f"nr_periods {int(periods)}\nnr_throttled {int(throttled)}\nthrottled_usec 0\n",
        )
        self._put(f"{group}/cpu.pressure", _pressure(stall, waited))
        self._put(f"{group}/memory.current", f"{memory}\n")
        self._put(f"{group}/pids.current", f"{len(names)}\n")
        self._put(f"{group}/memory.stat", _anonymous(memory))

    def _put(self, path: str, text: str) -> None:
        self._host.change(path, data=text.encode())


def _group(name: str) -> str:
    return f"{kernel.TOP}/{groups.GROUP}/{name}"


def _there(beside: Mapping[int, float], cpu: int) -> bool:
    """Whether best-effort work runs on a CPU."""
    return beside.get(cpu, 0.0) > _TRACE


def _requests(part: float, shared: float, cpus: int) -> latency.Latency:
    """The fuller the CPUs, and the more of them have another guest, the longer it takes."""
    return latency.Latency(
        answered=round(part * cpus * _RATE),
        p50=_WORK * (1 + 0.2 * part + 0.6 * shared * part),
        p99=_WORK * (1.5 + 1.5 * part + 12 * shared * part),
    )


def _jiffies(seconds: float) -> str:
    return f"{int(100 * seconds)} 0 0 0 0 0 0 0 0 0"


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


def _pressure(part: float, seconds: float) -> str:
    some = f"avg10={100 * part:.2f} avg60={100 * part:.2f} avg300=0.00 total={int(1e6 * seconds)}"
    return f"some {some}\n{kernel.STALLS.splitlines()[1]}\n"
