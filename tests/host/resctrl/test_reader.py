"""One look at all of resctrl: when threads are looked for again."""

from __future__ import annotations

from pathlib import Path

from koordlet.host.resctrl import reader
from koordlet.model import resctrl
from tests.kit import agents, moments
from tests.kit import resctrl as kit


class Told:
    """What the kernel has told of processes that began."""

    def __init__(self) -> None:
        self.pids: frozenset[int] | None = frozenset()

    def hear(self) -> frozenset[int] | None:
        """All of it."""
        return self.pids

    def close(self) -> None:
        """Nothing to give back."""


def test_a_process_that_entered_from_outside(ram: Path) -> None:
    """It is seen at the next look where the kernel told of it, or lost count; else not yet."""
    host = kit.machine()
    line = agents.Site(host, state=ram).line()
    layout, topology = line.observer.layout, line.observer.topology
    look, events = reader.ResctrlReader(host), Told()
    look.refresh(topology)
    pods = (moments.workload("batch"),)

    def homes() -> set[int]:
        seen = look.look(1.0, layout, groups, pods, full=False)
        assert isinstance(seen, resctrl.Resctrl)
        return {pid for threads in seen.homes["batch"].values() for pid in threads}

    groups = ("batch",)
    before = homes()
    first = host.spawn("/sys/fs/cgroup/cpuset/batch")
    assert before == homes()
    look._events = events  # type: ignore[assignment]
    assert before == homes()
    events.pids = frozenset({first})
    assert before | {first} == homes()
    second = host.spawn("/sys/fs/cgroup/cpuset/batch")
    events.pids = frozenset({1 << 20})
    assert before | {first} == homes()
    events.pids = None
    assert before | {first, second} == homes()
    look.close()
    assert look._events is None
