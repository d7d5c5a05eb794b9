"""Counters of groups: read in turns, from kept descriptors; what goes wrong costs one value."""

from __future__ import annotations

import math

import pytest

from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import groups
from koordlet.host.fs import root
from koordlet.model import counters as readings
from koordlet.model import meter
from tests.kit import counting
from tests.kit.kernel.machine import Cgroup

CPU = {"v1": "/sys/fs/cgroup/cpu,cpuacct/{}/cpuacct.usage", "v2": "/sys/fs/cgroup/{}/cpu.stat"}


def reader(host: root.HostRoot, handles: int = 1000) -> groups.GroupReader:
    """A reader that follows all groups of the machine."""
    made = groups.GroupReader(host, hierarchies.discover(host), handles=handles)
    made.follow(counting.found(host))
    return made


def values(reading: readings.Reading, what: meter.Meter) -> dict[str, float]:
    """What was read of a meter, by group."""
    by_path: dict[str, float] = {}
    for batch in reading.batches:
        if batch.meter is what:
            by_slot = dict(zip(range(batch.start, reading.width, batch.step), batch.values))  # noqa: B905 -- as many as there are
            by_path |= {
                path: by_slot[slot] for path, slot in reading.slots.items() if slot in by_slot
            }
    return {path: value for path, value in by_path.items() if not math.isnan(value)}


def said(version: Cgroup, seconds: int | str) -> str:
    """A CPU time as the file of that version says it."""
    return f"{seconds}000000000\n" if version == "v1" else f"usage_usec {seconds}000000\n"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_every_group_at_every_tick(version: Cgroup) -> None:
    """CPU time of all groups is in each reading, memory in that of one tick or the next."""
    host = counting.machine(version, "a", "b")
    host.texts = {CPU[version].format(name): said(version, n) for n, name in enumerate("ab", 5)}
    look = reader(host)
    for at, memory in enumerate(("ab", "b", "a", "b")):
        reading = look.read(at)
        assert values(reading, meter.CPU) == {"a": 5.0, "b": 6.0}
        assert set(memory) == values(reading, meter.MEMORY).keys(), "all where one is new"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_rest_in_turns(version: Cgroup) -> None:
    """A file that is read every six ticks is read of a sixth of the groups at each.

    It is read when the memory of its group is: the working set is of one moment.
    """
    host = counting.machine(version, *(f"g{n}" for n in range(12)))
    keys = ("inactive_anon", "active_anon", "unevictable", "inactive_file", "active_file")
    for path in counting.found(host):
        text = "".join(f"{key} 1\ntotal_{key} 1\n" for key in keys)
        host.texts[f"/sys/fs/cgroup/memory/{path}/memory.stat"] = text
    look = reader(host)
    ticks = [look.read(at) for at in range(12)]
    seen = [values(reading, meter.MEMORY_CACHE).keys() for reading in ticks]

    assert [len(paths) for paths in seen] == [2] * 12
    assert seen[:6] == seen[6:]
    assert len(set().union(*seen[:6])) == 12
    assert all(
        paths <= values(each, meter.MEMORY).keys() for paths, each in zip(seen, ticks, strict=True)
    )


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_groups_are_compared_by_is_read_at_once(version: Cgroup) -> None:
    """Page cache and tasks of all of them; what else is read in turns still is."""
    host = counting.machine(version, *(f"g{n}" for n in range(20)))
    keys = ("inactive_anon", "active_anon", "unevictable", "inactive_file", "active_file")
    for path in counting.found(host):
        text = "".join(f"{key} 1\ntotal_{key} 1\n" for key in keys)
        host.texts[f"/sys/fs/cgroup/memory/{path}/memory.stat"] = text
    reading = reader(host).read(0, comparing=True)
    compared = [len(values(reading, what)) for what in (meter.MEMORY_INACTIVE_FILE, meter.PIDS)]

    assert compared == [20, 20]
    assert len(values(reading, meter.OOM_KILLS)) < 20


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_group_that_is_gone(version: Cgroup) -> None:
    """It costs its own values; its descriptor is given back, and the others are read."""
    host = counting.machine(version, "a", "b")
    look = reader(host)
    for at in range(30):
        look.read(at)
    for hierarchy in hierarchies.discover(host).hierarchies:
        host.rmdir(host.at(f"{hierarchy.mount}/a"))
    kept = look.handles
    reading = look.read(30)

    assert values(reading, meter.CPU).keys() == {"b"}
    assert (kept // 2, kept // 2) == (look.handles, look.counts["gone"]), "at this tick, all turns"
    look.read(31)
    assert kept // 2 == look.counts["gone"], "nobody asks for them again"
    look.follow(counting.found(host))
    assert look.read(32).slots.keys() == {"b"}
    look.close()
    assert 0 == look.handles == host.open_handles


def test_a_group_made_anew_is_another() -> None:
    """The same path with another inode gets a slot that begins anew."""
    host = counting.machine("v2", "a")
    look = reader(host)
    look.read(0)
    host.rmdir(host.at("/sys/fs/cgroup/a"))
    host.mkdir(host.at("/sys/fs/cgroup/a"))
    look.follow(counting.found(host))
    reading = look.read(1)

    assert reading.slots["a"] in reading.renewed
    assert values(reading, meter.CPU).keys() == {"a"}


def test_what_is_said_again_is_not_understood_again() -> None:
    """A reading differs from the last one where a text does; damage is damage until it is gone."""
    host = counting.machine("v2", "a", "b")
    file = CPU["v2"].format
    look = reader(host)
    seen = []
    for a, b in (("1", "1"), ("1", "1"), ("2", "1"), ("x", "1"), ("x", "3"), ("4", "3")):
        host.texts = {file(path): said("v2", number) for path, number in (("a", a), ("b", b))}
        seen.append(values(look.read(0), meter.CPU))

    both = [{"a": 1.0, "b": 1.0}] * 2 + [{"a": 2.0, "b": 1.0}]
    assert [*both, {"b": 1.0}, {"b": 3.0}, {"a": 4.0, "b": 3.0}] == seen
    assert look.counts["damaged"] == 2


def test_what_hardly_ever_says_the_same_is_not_compared() -> None:
    """It is understood each time, damage as well, and calm is noticed some reads later."""
    host = counting.machine("v1", "a", "b")
    file = CPU["v1"].format
    look = reader(host)

    def at(number: int) -> readings.Batch:
        for path in ("a", "b"):
            host.texts[file(path)] = said("v1", str(number))
        return next(batch for batch in look.read(0).batches if batch.meter is meter.CPU)

    moving = [at(number).values[0] for number in range(15)]
    calm = [at(30) for _ in range(20)]

    assert pytest.approx(range(15)) == moving
    assert pytest.approx([30] * 20) == [batch.values[0] for batch in calm]
    assert calm[0] is not calm[1]
    assert calm[-2] is calm[-1]


@pytest.mark.parametrize("text", ["", "nonsense\n", "usage_usec\n", "usage_usec x\n", "\0\0\0"])
def test_a_text_that_is_no_number(text: str) -> None:
    """It is counted and missing; the group's other files and the other groups are read."""
    host = counting.machine("v2", "a", "b")
    host.texts[CPU["v2"].format("a")] = text
    look = reader(host)
    reading = look.read(0)

    assert values(reading, meter.CPU).keys() == {"b"}
    assert values(reading, meter.MEMORY).keys() == {"a", "b"}
    assert look.counts["damaged"] == 1


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("read_meter", [meter.CPU, meter.MEMORY], ids=["cpu", "memory"])
def test_a_number_that_no_float_holds(version: Cgroup, read_meter: meter.Meter) -> None:
    """Hundreds of digits are damage as any other text, at the first look and later."""
    host = counting.machine(version, "a", "b")
    top = "/sys/fs/cgroup/"
    memory = {"v1": f"{top}memory/a/memory.usage_in_bytes", "v2": f"{top}a/memory.current"}
    look = reader(host)
    assert values(look.read(0), read_meter).keys() == {"a", "b"}
    host.texts = {CPU[version].format("a"): said(version, "9" * 400), memory[version]: "9" * 400}

    assert values(look.read(1), read_meter).keys() == {"b"}
    assert "a" not in values(look.read(2), read_meter)
    assert values(reader(host).read(0), read_meter).keys() == {"b"}
    assert look.counts["damaged"] >= 2


def test_all_texts_damaged() -> None:
    """Also where no group says anything, the reading comes, with nothing in it."""
    host = counting.machine("v2", "a", "b")
    host.texts = {CPU["v2"].format(name): "" for name in "ab"}
    reading = reader(host).read(0)

    assert values(reading, meter.CPU) == {}
    assert values(reading, meter.MEMORY).keys() == {"a", "b"}


def test_a_file_that_comes_later() -> None:
    """A file that was not there is found ten minutes after it came, without asking each tick."""
    host = counting.machine("v2", "a")
    path = "/sys/fs/cgroup/a/memory.current"
    host.texts[path] = None
    look = reader(host)
    assert values(look.read(0), meter.MEMORY) == {}
    assert "memory.current" in look.missing
    host.texts[path] = "77\n"
    for at in range(1, 600):
        assert values(look.read(at), meter.MEMORY) == {}

    assert values(look.read(600), meter.MEMORY) == {"a": 77}


@pytest.mark.parametrize("handles", [0, 1000])
def test_a_group_that_is_not_everywhere_yet(handles: int) -> None:
    """Its file comes a moment after it was seen: on v1 each hierarchy is a directory of its own."""
    host = counting.machine("v2", "a", "b")
    path = CPU["v2"].format("b")
    host.texts[path] = None
    look = reader(host, handles)
    for at in range(3):
        assert values(look.read(at), meter.CPU).keys() == {"a"}
    host.texts[path] = said("v2", 77)

    assert values(look.read(3), meter.CPU)["b"] == 77


def test_a_file_that_a_group_does_not_get() -> None:
    """It is looked for a few times, then no more."""
    host = counting.machine("v2", "a", "b")
    path = CPU["v2"].format("b")
    host.texts[path] = None
    look = reader(host)
    for at in range(8):
        assert values(look.read(at), meter.CPU).keys() == {"a"}
    host.texts[path] = said("v2", 77)

    assert values(look.read(9), meter.CPU).keys() == {"a"}


def test_a_file_that_opens_and_cannot_be_read() -> None:
    """Pressure that the kernel does not count: it is missing, and not opened at each turn."""
    host = counting.machine("v2", "a", "b")
    host.refused = (".pressure",)
    look = reader(host)
    for at in range(20):
        look.read(at)
    opened = look.counts["opened"]
    for at in range(20, 60):
        look.read(at)

    assert opened == look.counts["opened"]
    assert look.counts["gone"] == 0
    assert {"cpu.pressure", "memory.pressure", "io.pressure"} <= look.missing
    host.refused = ()
    for at in range(60, 620):
        look.read(at)
    assert look.missing.isdisjoint({"cpu.pressure", "memory.pressure", "io.pressure"})


def test_descriptors_are_bounded() -> None:
    """Beyond the bound files are opened, read and closed; the values are the same."""
    host = counting.machine("v2", *(f"g{n}" for n in range(8)))
    look = reader(host, handles=3)
    for at in range(3):
        reading = look.read(at)
        memory = 4 if at else 8
        assert (8, memory) == (len(values(reading, meter.CPU)), len(values(reading, meter.MEMORY)))
        assert look.handles == 3
    look.close()

    assert host.open_handles == 0


@pytest.mark.parametrize(
    ("name", "texts", "what", "ticks"),
    [
        ("pids.current", ("7\n", "8\n"), meter.PIDS, {1000: 10, 1: 50, 0: 10}),
        ("memory.current", ("7\n", "8\n"), meter.MEMORY, {1000: 2, 1: 2, 0: 2}),
        ("cpu.stat", (said("v2", 7), said("v2", 8)), meter.CPU, {1000: 1, 1: 1, 0: 1}),
    ],
)
def test_a_file_without_descriptor_that_says_the_same_rests(
    name: str, texts: tuple[str, str], what: meter.Meter, ticks: dict[int, int]
) -> None:
    """What moves seldom is read at each fifth turn; CPU, memory and recordings are at each."""

    def heard(handles: int, *, comparing: bool = False) -> int:
        """After how many ticks a number that was the same for long is heard to be another."""
        host = counting.machine("v2", "a", "b")
        path = f"/sys/fs/cgroup/b/{name}"
        host.texts = {path: texts[0]}
        look = reader(host, handles=handles)
        for at in range(102):
            look.read(at)
        host.texts = {path: texts[1]}
        for after in range(1, 100):
            if values(look.read(101 + after, comparing=comparing), what).get("b") == 8:
                return after
        raise AssertionError("never heard")

    assert {handles: heard(handles) for handles in ticks} == ticks
    assert heard(1, comparing=True) == 1


def test_many_groups_that_come_and_go() -> None:
    """Slots are used again: their number follows the groups that are there, not those that were."""
    host = counting.machine("v2")
    look = groups.GroupReader(host, hierarchies.discover(host), handles=1000)
    for n in range(300):
        host.mkdir(host.at(f"/sys/fs/cgroup/pod{n}"))
        if n >= 10:
            host.rmdir(host.at(f"/sys/fs/cgroup/pod{n - 10}"))
        look.follow(counting.found(host))
        look.read(n)
    reading = look.read(300)

    assert (reading.width, len(reading.slots)) == (64, 10)
    assert len(set(reading.slots.values())) == 10
    look.close()
    assert host.open_handles == 0


def test_the_same_groups_again_cost_nothing() -> None:
    """While groups neither come nor go, the mapping of slots is the same object."""
    host = counting.machine("v2", "a")
    look = reader(host)

    assert look.read(0).slots is look.read(1).slots


def test_a_group_on_many_disks() -> None:
    """A line for each of a hundred disks is more than a page: none is left out, none is cut."""
    host = counting.machine("v2", "a")
    lines = (f"8:{16 * n} rbytes=123456789 wbytes=7 rios=1 wios=1\n" for n in range(100))
    host.texts = {f"{counting.TOP}/a/io.stat": "".join(lines)}
    reading = reader(host).read(0, thorough=True)

    assert values(reading, meter.IO_READ) == {"a": 12345678900}
    assert values(reading, meter.IO_WRITE) == {"a": 700}


def test_more_disks_than_are_read() -> None:
    """What is cut is damage, not a smaller number."""
    host = counting.machine("v2", "a")
    host.texts = {f"{counting.TOP}/a/io.stat": "8:0 rbytes=123456789 wbytes=7\n" * 2000}
    look = reader(host)

    assert values(look.read(0, thorough=True), meter.IO_READ) == {}
    assert look.counts["damaged"] == 1
