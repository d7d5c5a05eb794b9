"""What latency-sensitive work feels, of threads and of pressure files."""

from __future__ import annotations

import pytest

from koordlet.host.cgroup import hierarchies, tree
from koordlet.host.counters import strain
from koordlet.host.fs import root
from koordlet.model import strain as model
from tests.kit import counting

CPUACCT = "/sys/fs/cgroup/cpuacct"
TREE = "/sys/fs/cgroup"


def reader(host: counting.Counting) -> strain.StrainReader:
    """One that follows a web server and a job."""
    layout = hierarchies.discover(host)
    look = strain.StrainReader(host, tree.CgroupReader(host, layout).children)
    look.follow(layout, plus=["web"], minus=[], watched=["web"])
    return look


def of_groups(host: counting.Counting, web: float, job: float) -> None:
    """CPU seconds of both."""
    for name, seconds in (("web", web), ("job", job)):
        host.texts[f"{CPUACCT}/{name}/cpuacct.usage"] = f"{int(seconds * 1e9)}\n"
        host.texts[f"{TREE}/{name}/cpu.stat"] = f"usage_usec {int(seconds * 1e6)}\nuser_usec 1\n"


def looked(*moments: tuple[float, float, float, str]) -> tuple[model.Strain | None, ...]:
    """Looks on v2: time, CPU seconds of both, the web server's pressure file."""
    host = counting.machine("v2", "web", "job")
    look, strains = reader(host), []
    for at, web, job, pressure in moments:
        of_groups(host, web, job)
        host.texts[f"{TREE}/web/cpu.pressure"] = pressure
        strains.append(look.look(at))
    return tuple(strains)


def stalled(usec: int) -> str:
    """A pressure file."""
    return f"some avg10=0.00 avg60=0.00 avg300=0.00 total={usec}\n"


def test_pressure_for_each_second_of_use() -> None:
    """Half a second of stall while using a second of CPU; nothing before the second look."""
    first, second = looked((0.0, 5, 7, stalled(0)), (1.0, 6, 8.5, stalled(500_000)))

    assert first is None
    assert second is not None
    assert (second.ls_lately, second.waiting, second.signal) == (1.0, 0.5, "pressure")


def test_use_is_of_the_last_look_and_waiting_since_the_last_pass() -> None:
    """A spike of use is not diluted by the quiet second before it."""
    last = looked(
        (0.0, 0, 0, stalled(0)), (0.9, 0.09, 0, stalled(0)), (1.0, 0.19, 0, stalled(90_000))
    )[-1]

    assert last is not None
    assert last.ls_lately == pytest.approx(1.0)
    assert last.waiting == pytest.approx(0.09 / 0.19)


@pytest.mark.parametrize("damage", ["", "x", "some avg10=1\n"])
def test_what_is_no_pressure_file_tells_nothing(damage: str) -> None:
    """Use is known all the same."""
    last = looked((0.0, 0, 0, damage), (1.0, 1, 1, damage))[-1]

    assert last is not None
    assert (last.ls_lately, last.waiting, last.signal) == (1.0, None, "")


def test_a_counter_that_falls_is_no_use() -> None:
    """A group that was made anew begins at zero."""
    last = looked((0.0, 50, 7, stalled(0)), (1.0, 1, 8, stalled(0)))[-1]

    assert last is not None
    assert last.ls_lately == 0.0


def test_two_looks_at_once_are_one() -> None:
    """Less than a twentieth of a second is no interval."""
    made = looked((0.0, 0, 0, stalled(0)), (1.0, 1, 1, stalled(0)), (1.01, 9, 9, stalled(0)))

    assert made[1] is made[2]


def test_threads_on_v1() -> None:
    """Without pressure files the threads themselves say it; one that ends is left out."""
    host = counting.machine("v1", "web", "job")
    pids = [host.spawn(f"{CPUACCT}/web"), host.spawn(f"{CPUACCT}/web")]
    look = reader(host)
    for at in (0, 1):
        of_groups(host, at, at)
        for pid in pids:
            host.texts[f"/proc/{pid}/schedstat"] = f"{at * 400_000_000} {at * 100_000_000} 7\n"
        if at:
            host.exit(pids[1])
        look.look(float(at))

    assert look.latest is not None
    assert look.latest.signal == "threads"
    assert look.latest.waiting == pytest.approx(0.25)


def test_a_fork_bomb_costs_no_more_than_a_few_threads() -> None:
    """Best-effort threads are not looked at, and of latency-sensitive ones 64."""

    class Watched(counting.Counting):
        """Remembers whose waiting was asked for."""

        asked: set[str]

        def open(self, path: root.HostPath) -> int:
            self.asked.add(str(path))
            return super().open(path)

        def read(self, path: str) -> bytes:
            self.asked.add(str(path))
            return super().read(path)

    host = Watched(counting.machine("v1", "web", "job"))
    host.asked = set()
    web = [host.spawn(f"{CPUACCT}/web") for _ in range(100)]
    jobs = {host.spawn(f"{CPUACCT}/job") for _ in range(300)}
    for pid in (*web, *jobs):
        host.texts[f"/proc/{pid}/schedstat"] = "0 0 0\n"
    look = reader(host)
    for at in (0, 1):
        of_groups(host, at, at)
        look.look(float(at))

    pids = {int(path.split("/")[2]) for path in host.asked if path.endswith("/schedstat")}
    assert 0 < len(pids) <= 64
    assert pids.isdisjoint(jobs)


class Opened(counting.Counting):
    """Remembers what was opened."""

    asked: list[str]

    def open(self, path: root.HostPath) -> int:
        self.asked.append(str(path))
        return super().open(path)

    def list(self, path: root.HostPath) -> list[str]:
        self.asked.append(str(path))
        return super().list(path)


def crowd(count: int) -> tuple[Opened, strain.StrainReader]:
    """A v2 machine with so many web servers, all of them followed."""
    names = [f"web{number}" for number in range(count)]
    host = Opened(counting.machine("v2", *names))
    host.asked = []
    for name in names:
        host.texts[f"{TREE}/{name}/cpu.pressure"] = None
        host.texts[f"{TREE}/{name}/cpu.stat"] = "usage_usec 1\nuser_usec 1\n"
    layout = hierarchies.discover(host)
    look = strain.StrainReader(host, tree.CgroupReader(host, layout).children)
    look.follow(layout, plus=names, minus=[], watched=names)
    return host, look


def test_where_nobody_has_a_pressure_file_a_few_are_asked_at_each_renewal() -> None:
    """All at the first look, four every two seconds, each in its turn; one that comes is heard."""
    host, look = crowd(12)
    counts: list[int] = []
    asked: set[str] = set()
    for at in range(8):
        host.asked.clear()
        look.look(float(at))
        pressures = [path for path in host.asked if path.endswith("cpu.pressure")]
        counts.append(len(pressures))
        asked.update(pressures if at else ())
    assert counts == [12, 0, 4, 0, 4, 0, 4, 0]
    assert len(asked) == 12

    for number in range(12):
        host.texts[f"{TREE}/web{number}/cpu.pressure"] = stalled(0)
    look.look(8.0)
    look.look(9.0)
    look.look(10.0)
    assert look.latest is not None
    assert look.latest.signal == "pressure"


def test_no_more_threads_are_listed_than_are_looked_at() -> None:
    """Of 32 groups two threads each: whoever has a hundred processes is not asked for all."""
    host, look = crowd(32)
    for _ in range(100):
        host.spawn(f"{TREE}/web0")
    look.look(0.0)

    assert len([path for path in host.asked if path.endswith("/task")]) == 2


def test_the_threads_of_a_pod_are_those_of_its_containers() -> None:
    """The groups inside are those that somebody knows; no directory is listed for them."""
    host = Opened(counting.machine("v1", "web", "web/a", "web/b", "job"))
    host.asked = []
    pid = host.spawn(f"{CPUACCT}/web/b")
    inside = {"web": ("web/a", "web/b")}
    look = strain.StrainReader(host, lambda path: inside.get(path, ()))
    layout = hierarchies.discover(host)
    look.follow(layout, plus=["web"], minus=[], watched=["web"])
    look.look(0.0)

    assert f"/proc/{pid}/schedstat" in host.asked
    assert not [path for path in host.asked if path.endswith(("/web", "/web/a", "/web/b"))]
