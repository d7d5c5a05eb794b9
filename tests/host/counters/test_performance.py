"""Windows in which groups are counted: who, when, and what is made of it."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

import pytest

from koordlet.history import series
from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import performance
from koordlet.host.fs import root
from koordlet.host.process import perf_events
from koordlet.model import counters, meter, pod, qos
from tests.kit import counting


class Processor(perf_events.PerfEvents):
    """Counters that count what a test says; every pair has two handles."""

    def __init__(self) -> None:
        #: Group to what each of its pairs counts, or the error with which it is refused.
        self.work: dict[str, perf_events.Counted | int] = {}
        self.usual: perf_events.Counted | int = perf_events.Counted(10, 10, 300, 100)
        self.opened: dict[int, str] = {}
        self.seen: list[str] = []
        self._next = 0

    def open(self, group: str, cpu: int) -> tuple[int, ...]:
        """A pair."""
        del cpu
        name = group.rpartition("/")[2]
        counted = self.work.get(name, self.usual)
        if isinstance(counted, int):
            raise root.fail(counted, group)
        self.seen.append(name)
        self._next += 2
        self.opened |= {self._next: name, self._next + 1: name}
        return self._next, self._next + 1

    def read(self, handle: int) -> perf_events.Counted:
        """What the test says."""
        counted = self.work.get(self.opened[handle], self.usual)
        if isinstance(counted, int):
            raise root.fail(counted, "read")
        return counted

    def close(self, handles: Sequence[int]) -> None:
        """Each handle once."""
        for handle in handles:
            del self.opened[handle]


class Host(counting.Counting):
    """A machine with such a processor."""

    def __init__(self) -> None:
        made = counting.machine("v2")
        super().__init__(made)
        self.processor = Processor()

    def performance(self) -> perf_events.PerfEvents:
        """The processor's."""
        return self.processor


def workload(name: str, group: str | None, *inside: str | None) -> pod.Pod:
    """One in that group, with containers in those."""
    boxes = tuple(pod.Container(name=str(n), group=path) for n, path in enumerate(inside))
    return pod.Pod(
        uid=name,
        namespace="n",
        name=name,
        qos=qos.Qos.LS,
        source="test",
        group=group,
        containers=boxes,
    )


def running(*groups: str) -> list[pod.Pod]:
    """Workloads without containers."""
    return [workload(name, name) for name in groups]


class World:
    """A reader, its past, and a clock."""

    def __init__(self, **settings: Any) -> None:
        self.host = Host()
        self.layout = hierarchies.discover(self.host)
        self.reader = performance.PerformanceReader(
            self.host,
            performance.PerformanceSettings(**settings),
        )
        self.past = series.History()
        self.at = 0.0

    def run(self, seconds: int, *groups: str) -> list[counters.Reading]:
        """So many ticks; the readings that came of them."""
        taken = []
        for _ in range(seconds):
            reading = self.reader.read(self.at, 0.0, self.layout, (0, 1), running(*groups))
            if reading is not None:
                taken.append(reading)
                self.past.take({"work": reading})
            self.at += 1.0
        return taken


def test_a_window_a_minute() -> None:
    """Cycles and instructions of ten seconds, summed over CPUs; nothing is held open after it."""
    world = World()

    assert len(world.run(60, "a")) == 1
    assert world.past.work.last("a", meter.CYCLES) == 600
    assert world.past.work.last("a", meter.INSTRUCTIONS) == 200
    assert world.past.work.last("a", meter.CPI) == 3
    assert world.host.processor.opened == {}
    assert len(world.run(60, "a")) == 1


def test_turns_where_not_all_fit() -> None:
    """Two of three at a time, those first that waited longest, one window after the other."""
    world = World(descriptors=8)
    world.run(11, "a", "b", "c")
    assert set(world.past.work.subjects) == {"a", "b"}
    world.run(11, "a", "b", "c")
    assert set(world.past.work.subjects) == {"a", "b", "c"}

    opened = [name for name in world.host.processor.seen if name in ("a", "b", "c")]
    assert opened == ["a", "a", "b", "b", "c", "c", "a", "a"]


def test_a_pair_that_had_no_room() -> None:
    """It is scaled by the time in which it counted; one that never counted adds nothing."""
    world = World()
    world.host.processor.work["a"] = perf_events.Counted(100, 25, 100, 50)
    world.host.processor.work["b"] = perf_events.Counted(100, 0, 0, 0)
    world.run(11, "a", "b")

    assert tuple(
        world.past.work.last("a", metric) for metric in (meter.CYCLES, meter.INSTRUCTIONS)
    ) == (
        800,
        400,
    )
    assert world.past.work.last("b", meter.CPI) is None


def test_a_group_that_is_gone_costs_itself() -> None:
    """One that cannot be opened has no value; the others have; its slot is given on."""
    world = World(interval=10.0)
    world.host.processor.work["gone"] = errno.ENOENT
    world.run(11, "gone", "a", "b")
    assert set(world.past.work.subjects) == {"a", "b"}

    world.host.processor.work["c"] = perf_events.Counted(10, 10, 5, 5)
    world.run(11, "b", "c")
    assert set(world.past.work.subjects) == {"b", "c"}
    assert world.past.work.last("c", meter.CPI) == 1
    assert world.past.work.last("b", meter.CPI) == 3


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOENT, "virtual machines"),
        (errno.EACCES, "CAP_PERFMON"),
        (errno.EINVAL, "CONFIG_CGROUP_PERF"),
        (errno.ENOSYS, "no perf_event_open"),
        (errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_why_nothing_is_counted(number: int, words: str) -> None:
    """It is a value that people see; the machine is asked again after ten minutes."""
    world = World()
    world.host.processor.usual = number
    assert world.run(20, "a") == []
    (gap,) = world.reader.unsupported
    assert gap.feature == "cpi"
    assert words in gap.why

    world.host.processor.usual = perf_events.Counted(1, 1, 1, 1)
    assert world.run(500, "a") == []
    assert len(world.run(100, "a")) == 1
    assert world.reader.unsupported == ()


def test_a_machine_that_is_only_recorded() -> None:
    """There is nothing to count on."""
    host = counting.machine("v2")
    reader = performance.PerformanceReader(host, performance.PerformanceSettings())

    assert reader.read(0.0, 0.0, hierarchies.discover(host), (0,), running("a")) is None
    assert "no perf_event_open" in reader.unsupported[0].why


def test_closing_gives_everything_back() -> None:
    """Also in the middle of a window."""
    world = World()
    world.run(3, "a")
    assert world.host.processor.opened
    world.reader.close()
    assert world.host.processor.opened == {}


def test_who_is_counted() -> None:
    """Containers; a workload without any is counted itself; one that does not run is not."""
    make = workload
    pods = [
        make("a", "p/a", "p/a/1", None),
        make("b", "b"),
        make("c", None),
        make("d", "p/d", None),
    ]

    assert performance.groups(pods) == ["p/a/1", "b"]
