"""The simulated law of the recorded demo: who gets what, and who waits."""

from __future__ import annotations

import pytest

from koordlet.demo import groups, kernel, recorded, story
from koordlet.host import machine
from koordlet.model import cpuset


class Clock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> machine.Now:
        """Now."""
        return machine.Now(at=self.at, wall=1.7e9)


def placed(host: kernel.Machine, *names: str) -> None:
    """Each process in its group."""
    host.mkdir(host.at(f"{kernel.TOP}/{groups.GROUP}"))
    for name in names:
        group = host.at(f"{kernel.TOP}/{groups.GROUP}/{name}")
        host.mkdir(group)
        host.write(host.below(group, "cgroup.procs"), str(story.PIDS[name]).encode())


def told(*names: str, quota: str = "") -> tuple[str, str]:
    """Counters of the service after some seconds: what it used, how long it waited."""
    machine_ = recorded.Recorded()
    clock = Clock()
    tale = story.Story(machine_.host, cpuset.CPUSet.parse("0-7"), 1 << 34, clock)
    placed(machine_.host, *names)
    if quota:
        limit = machine_.host.at(f"{kernel.TOP}/{groups.GROUP}/be/cpu.max")
        machine_.host.write(limit, quota.encode())
    for _ in range(20):
        clock.at += 0.5
        tale.clock()
    top = f"{kernel.TOP}/{groups.GROUP}/ls"
    found = tuple(
        machine_.host.text(machine_.host.at(f"{top}/{name}")).splitlines()[0].split()[-1]
        for name in ("cpu.stat", "cpu.pressure")
    )
    machine_.close()
    return found[0], found[1]


def test_who_is_alone_does_not_wait() -> None:
    """The service uses the same CPU time in both cases, and waits beside best-effort work only."""
    alone, beside = told("ls"), told("ls", "be")

    assert alone[0] == beside[0] != "0"
    assert alone[1] == "total=0"
    assert int(beside[1].removeprefix("total=")) > 0


def test_a_limit_is_felt() -> None:
    """Half as many CPUs for best-effort work, half the waiting: a useless limit is undone."""
    whole, half = (
        int(told("ls", "be", quota=one)[1].removeprefix("total="))
        for one in ("max 100000", "400000 100000")
    )

    assert half == pytest.approx(whole / 2, rel=0.01)
