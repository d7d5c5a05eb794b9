"""The simulated law of the recorded demo: who gets what, and who waits."""

from __future__ import annotations

import dataclasses
import re

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.demo import groups, intervals, kernel, latency, stage, story
from koordlet.host import machine
from koordlet.model import cpuset


class Clock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> machine.Now:
        """Now."""
        return machine.Now(at=self.at, wall=1.7e9)


def placed(host: kernel.DemoMachine, *names: str) -> None:
    """Each process in its group."""
    host.mkdir(host.at(f"{kernel.TOP}/{groups.GROUP}"))
    for name in names:
        group = host.at(f"{kernel.TOP}/{groups.GROUP}/{name}")
        host.mkdir(group)
        host.write(host.below(group, "cgroup.procs"), str(story.PIDS[name]).encode())


def told(*names: str, quota: str = "") -> tuple[str, str]:
    """Counters of the service after some seconds: what it used, how long it waited."""
    machine_ = stage.Recorded()
    clock = Clock()
    tale = story.Story(machine_.host, cpuset.CPUSet.parse("0-7"), 1 << 34, clock, lambda _: 0.2)
    placed(machine_.host, *names)
    if quota:
        limit = machine_.host.at(f"{kernel.TOP}/{groups.GROUP}/be/cpu.max")
        machine_.host.write(limit, quota.encode())
    for _ in range(20):
        clock.at += 0.5
        tale.clock()
    top = f"{kernel.TOP}/{groups.GROUP}/ls"
    shown = tuple(
        machine_.host.text(machine_.host.at(f"{top}/{name}")).splitlines()[0].split()[-1]
        for name in ("cpu.stat", "cpu.pressure")
    )
    machine_.close()
    return shown[0], shown[1]


def test_who_is_alone_does_not_wait() -> None:
    """The service uses the same CPU time in both cases, and waits beside best-effort work only."""
    alone, beside = told("ls"), told("ls", "be")

    assert alone[0] == beside[0] != "0"
    assert alone[1] == "total=0"
    assert int(beside[1].removeprefix("total=")) > 0


def test_a_limit_is_felt() -> None:
    """The less quota best-effort work has, the less is waited: a useless limit would be undone."""
    whole, half, little = (
        int(told("ls", "be", quota=quota)[1].removeprefix("total="))
        for quota in ("max 100000", "400000 100000", "50000 100000")
    )

    assert whole > 1.3 * half
    assert half > 3 * little > 0


def requests(*names: str, part: float, idle: bool = False) -> list[intervals.Span]:
    """Requests of ten seconds in which the service is asked for such a part of five CPUs."""
    recorded, clock = stage.Recorded(), Clock()
    host = recorded.host
    tale = story.Story(host, cpuset.CPUSet.parse("0-7"), 1 << 34, clock, lambda _: part)
    placed(host, *names)
    if idle:
        host.write(host.at(f"{kernel.TOP}/{groups.GROUP}/be/cpu.idle"), b"1")
    for _ in range(20):
        clock.at += 0.5
        tale.clock()
    recorded.close()
    return tale.requests()


def test_requests_wait_where_the_service_gets_less_than_it_is_asked_for() -> None:
    """As many as are asked for come; a full queue refuses; work that yields takes no CPU away."""
    part = 0.9
    alone, yielding, beside = (
        requests("ls", part=part),
        requests("ls", "be", part=part, idle=True),
        requests("ls", "be", part=part),
    )

    assert (
        len(alone) == len(yielding) == len(beside) == pytest.approx(part * 5 * 333 * 10, rel=0.01)
    )
    p99 = [latency.Latency.of(several, 10.0) for several in (alone, yielding, beside)]
    assert [figures is not None for figures in p99] == [True] * 3
    first, second, third = (figures for figures in p99 if figures is not None)
    assert (first.refused, second.refused) == (0, 0)
    assert third.refused > 500
    assert first.p99 < second.p99 < 0.1 * third.p99


# The counters add up ------------------------------------------------------------------------------

QUOTAS = ("max 100000", "400000 100000", "150000 100000", "5000 100000", "20000 50000")
SETS = ("0-7", "1-3,6-7", "4-5", "0", "")


def numbers(text: str) -> dict[str, int]:
    """Names and their numbers, one in a line."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2}


@dataclasses.dataclass
class Counted:
    """All counters of one moment."""

    #: By CPU, and under ``cpu`` of all: jiffies that it ran, and all of them.
    times: dict[str, tuple[int, int]]
    #: By group, the empty name is the machine: seconds used, and stalled at all.
    used: dict[str, float]
    stalled: dict[str, float]
    memory: dict[str, int]


def read(host: kernel.DemoMachine) -> Counted:
    """What the kernel says now; no share of a time may be more than all of it."""
    counted = Counted(times={}, used={}, stalled={}, memory={})
    for line in host.text(host.at("/proc/stat")).splitlines():
        name, *figures = line.split()
        if name.startswith("cpu"):
            counted.times[name] = int(figures[0]), sum(map(int, figures))
    for name in ("", groups.GROUP, *(f"{groups.GROUP}/{process}" for process in story.PIDS)):
        top = f"{kernel.TOP}/{name}".rstrip("/")
        counted.used[name] = 1e-6 * numbers(host.text(host.at(f"{top}/cpu.stat")))["usage_usec"]
        pressure = host.text(host.at(f"{top}/cpu.pressure"))
        shares = [float(share) for share in re.findall(r"avg\d+=([\d.]+)", pressure)]
        assert len(shares) == 6
        assert all(0 <= share <= 100 for share in shares), pressure
        counted.stalled[name] = 1e-6 * int(re.findall(r"total=(\d+)", pressure)[0])
        if name:
            counted.memory[name] = int(host.text(host.at(f"{top}/memory.current")))
    whole = host.text(host.at("/proc/pressure/cpu"))
    assert whole == host.text(host.at(f"{kernel.TOP}/cpu.pressure"))
    return counted


def adds_up(host: kernel.DemoMachine, before: Counted, after: Counted, seconds: float) -> None:
    """The difference of two moments, between which nothing was written."""
    each = [name for name in after.times if name != "cpu"]
    for name in each:
        ran, whole = (after.times[name][n] - before.times[name][n] for n in (0, 1))
        assert abs(whole - 100 * seconds) < 1.001, name
        assert 0 <= ran <= whole + 1, name
    for n in (0, 1):
        assert after.times["cpu"][n] == sum(after.times[name][n] for name in each)
    used = {name: after.used[name] - before.used[name] for name in after.used}
    busy = (after.times["cpu"][0] - before.times["cpu"][0]) / 100
    inside = [f"{groups.GROUP}/{process}" for process in story.PIDS]
    assert used[""] == pytest.approx(busy, abs=0.01 * len(each) + 1e-3)
    assert used[""] == pytest.approx(used[groups.GROUP], abs=1e-4)
    assert used[groups.GROUP] == pytest.approx(sum(used[group] for group in inside), abs=1e-4)
    assert after.memory[groups.GROUP] == sum(after.memory[group] for group in inside)
    for name in inside:
        top = f"{kernel.TOP}/{name}"
        quota, period = host.text(host.at(f"{top}/cpu.max")).split()
        most = float(len(host.cpus(top))) * seconds
        if quota != "max":
            most = min(most, int(quota) / int(period) * seconds)
        assert -1e-6 <= used[name] <= most + 1e-4, name
    for name in after.stalled:
        assert -1e-6 <= after.stalled[name] - before.stalled[name] <= seconds + 1e-3, name
        assert after.stalled[""] >= after.stalled[name] - 1e-4, name


@hypothesis.settings(max_examples=25)
@hypothesis.given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(sorted(story.PIDS)),
            st.sampled_from(QUOTAS),
            st.sampled_from(SETS),
            st.floats(0.05, 7.0),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_the_counters_add_up(steps: list[tuple[str, str, str, float]]) -> None:
    """Whatever is written: time is run or idle, use is what CPUs ran and within sets and quotas.

    And nobody waits for more than all of the time.
    """
    played = stage.Recorded()
    clock = Clock()
    tale = story.Story(played.host, cpuset.CPUSet.parse("0-7"), 1 << 34, clock)
    placed(played.host, *story.PIDS)
    clock.at += 0.5
    tale.clock()
    for name, quota, cpus, seconds in steps:
        top = f"{kernel.TOP}/{groups.GROUP}/{name}"
        played.host.write(played.host.at(f"{top}/cpu.max"), quota.encode())
        played.host.write(played.host.at(f"{top}/cpuset.cpus"), cpus.encode())
        before = read(played.host)
        clock.at += seconds
        tale.clock()
        adds_up(played.host, before, read(played.host), seconds)
    played.close()
