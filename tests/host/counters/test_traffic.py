"""Bytes of workloads by a process of each: namespaces, turns, processes that come and go."""

from __future__ import annotations

import dataclasses
import errno
from collections.abc import Sequence

from koordlet.history import series
from koordlet.host import machine
from koordlet.host.counters import traffic, usage
from koordlet.host.fs import live_host, root
from koordlet.model import cgroup, meter, pod
from tests.kit import counting, views

_HEAD = "Inter-|   Receive\n face |bytes\n"
LAYOUT = cgroup.Layout(
    hierarchies=(
        cgroup.Hierarchy(mount="/sys/fs/cgroup", unified=True, controllers=frozenset({"cpu"})),
    )
)


class Machine(counting.Counting):
    """Processes with namespaces, and what those have moved; counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(counting.machine("v2"))
        #: Group to its process.
        self.first: dict[str, str] = {}
        #: Process to its namespace.
        self.spaces = {"1": 1}
        #: Namespace to bytes received and sent.
        self.moved: dict[int, tuple[int, int]] = {}
        self.asked = 0

    def stat(self, path: root.HostPath, *, follow: bool = True) -> root.Stat:
        """The namespace of a process."""
        del follow
        self.asked += 1
        _, _, pid, *rest = path.split("/")
        assert rest == ["net", "dev"]
        if pid not in self.spaces:
            raise root.fail(errno.ENOENT, path)
        return dataclasses.replace(super().stat(self.at("/proc")), inode=self.spaces[pid])

    def read(self, path: str) -> bytes:
        """The processes of a group, or what a namespace moved."""
        self.asked += 1
        if path.endswith("/cgroup.procs"):
            group = path.removeprefix("/sys/fs/cgroup/").removesuffix("/cgroup.procs")
            if group not in self.first:
                raise root.fail(errno.ENOENT, path)
            return f"{self.first[group]}\n".encode()
        got, sent = self.moved[self.spaces[path.split("/")[2]]]
        rest = " 0 0 0 0 0 0 0 "
        return f"{_HEAD}    lo: 99{rest}99{rest}\n  eth0: {got}{rest}{sent}{rest}\n".encode()


class World:
    """A reader, and the history behind it."""

    def __init__(self, *names: str) -> None:
        self.machine, self.past, self.at = Machine(), series.History(), 1000.0
        self.reader = traffic.TrafficReader(self.machine)
        self.pods: Sequence[pod.Pod] = tuple(views.workload(name) for name in names)
        for number, name in enumerate(names, start=10):
            self.start(name, str(number), number)

    def start(self, name: str, pid: str, space: int) -> None:
        """A process in the group of a workload."""
        self.machine.first[f"shop/{name}"] = pid
        self.machine.spaces[pid] = space
        self.machine.moved.setdefault(space, (1000, 100))

    def round(self, *, received: int = 3000) -> None:
        """Everybody's turn, after everybody has received so much."""
        for space, (got, sent) in self.machine.moved.items():
            self.machine.moved[space] = got + received, sent + received // 10
        for _ in range(traffic.TURNS):
            self.past.take({"traffic": self.reader.read(self.at, 0.0, LAYOUT, self.pods)})
            self.at += 1

    def rate(self, name: str, what: meter.Meter = meter.POD_RECEIVED) -> float | None:
        """What is known of a workload."""
        return self.past.usage().traffic.value(f"shop/{name}", what)


def test_rates_of_workloads() -> None:
    """After two rounds every workload has its rates, the loopback left out, and a history."""
    world = World(*(f"w{n}" for n in range(47)))
    for _ in range(2):
        world.round()

    for n in range(47):
        assert (world.rate(f"w{n}"), world.rate(f"w{n}", meter.POD_SENT)) == (100.0, 10.0)
    for _ in range(40):
        world.round()
    window = world.past.traffic.window("shop/w3", meter.POD_RECEIVED, world.at, 1200.0)
    assert window is not None
    assert round(window.average) == 100.0


def test_a_round_costs_two_calls_a_workload() -> None:
    """The namespace is compared and the totals are read; a pass has the turn of a thirtieth."""
    world = World(*(f"w{n}" for n in range(60)))
    world.round()
    world.machine.asked = 0
    world.round()

    assert world.machine.asked == 2 * 60 + 1


def test_the_hosts_network_is_nobodys() -> None:
    """A workload in the namespace of process 1 has no rate."""
    world = World("own", "host")
    world.start("host", "11", 1)
    for _ in range(3):
        world.round()

    assert world.rate("own") == 100.0
    assert world.rate("host") is None


def test_a_process_that_went_is_replaced() -> None:
    """The next process of the same namespace goes on with the totals."""
    world = World("web")
    world.round()
    del world.machine.spaces["10"]
    world.start("web", "77", 10)
    world.round()

    assert world.rate("web") == 100.0


def test_another_namespace_begins_anew() -> None:
    """A sandbox made anew, or a number given to another process, makes no rate of two lives."""
    world = World("web")
    world.round()
    world.machine.spaces["10"] = 666
    world.machine.moved[666] = (10**12, 10**12)
    world.start("web", "12", 12)
    world.round()
    assert world.rate("web") is None
    world.round()
    assert world.rate("web") == 100.0


def test_workloads_come_and_go() -> None:
    """A slot that is used again knows nothing of its last owner; who stays keeps his rate."""
    world = World("a", "b")
    for _ in range(2):
        world.round()
    world.pods = (views.workload("b"), views.workload("c"))
    world.start("c", "99", 99)
    world.round()

    assert (world.rate("a"), world.rate("b"), world.rate("c")) == (None, 100.0, None)
    world.round()
    assert world.rate("c") == 100.0


def test_an_idle_workload_is_no_failure() -> None:
    """Without processes, without a group, damaged: that workload has no rate, the others have."""
    world = World("gone", "empty", "damaged", "fine")
    del world.machine.first["shop/gone"]
    world.machine.first["shop/empty"] = ""
    read = world.machine.read

    def damaged(path: str) -> bytes:
        return b"a\nb\nc: 1 2\n" if path.startswith("/proc/12/") else read(path)

    world.machine.read = damaged  # type: ignore[method-assign] # one file says nonsense
    for _ in range(2):
        world.round()

    rates = [world.rate(name) for name in ("gone", "empty", "damaged", "fine")]
    assert rates == [None, None, None, 100.0]


def test_containers_are_looked_at_first() -> None:
    """A pod's own group has no processes; those of its containers, nested ones too, have."""
    world = World("pod")
    del world.machine.first["shop/pod"]
    box = pod.Container(name="c", group="shop/pod/c")
    world.pods = (dataclasses.replace(world.pods[0], containers=(box,)),)
    world.machine.first["shop/pod/c/container"] = "10"
    for _ in range(2):
        world.round()

    assert world.rate("pod") == 100.0


def test_a_process_1_that_hides() -> None:
    """Without its namespace nobody's can be told apart: it is said, and nothing is shown."""
    world = World("web")
    del world.machine.spaces["1"]
    world.round()

    assert [gap.feature for gap in world.reader.unsupported] == ["network.workloads"]
    assert world.rate("web") is None


def test_it_is_read_once_the_agent_watches() -> None:
    """Not in the first pass, which has more urgent things to do; then at every one."""
    reader = usage.UsageReader(live_host.LiveHost())
    try:
        assert "traffic" not in reader.read(machine.Now(at=1.0, wall=1.0), {})
        reader.watch(())
        assert "traffic" in reader.read(machine.Now(at=2.0, wall=2.0), {})
    finally:
        reader.close()
