"""Memory, processes, stalls and file systems of a whole node, from the files of both versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import pressure
from koordlet.host.recording import roots
from koordlet.model import pressure as model
from tests.kit import counting

_KIB = 1024
_COMMON = {
    "proc/meminfo": "MemTotal: 1000 kB\nMemFree: 10 kB\nSwapTotal: 8 kB\nSwapFree: 2 kB\n",
    "proc/loadavg": "0.1 0.2 0.3 2/3518 4000\n",
    "proc/sys/kernel/pid_max": "32768\n",
    "proc/sys/kernel/threads-max": "20000\n",
    "proc/pressure/memory": "some avg10=1.50 avg60=0.10 avg300=0.00 total=5\n"
    "full avg10=0.50 avg60=0.10 avg300=0.00 total=5\n",
}
V2 = {
    **_COMMON,
    "proc/self/mountinfo": "32 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    "sys/fs/cgroup/memory.stat": "anon 300000\nfile 200000\ninactive_file 50000\n",
    "sys/fs/cgroup/kubepods.slice/memory.current": "4000\n",
    "sys/fs/cgroup/kubepods.slice/memory.stat": "anon 1\nfile 2\ninactive_file 1000\n",
    "sys/fs/cgroup/kubepods.slice/memory.max": "10000\n",
}
_V1 = "sys/fs/cgroup/memory"
V1 = {
    **_COMMON,
    "proc/self/mountinfo": "33 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    f"{_V1}/memory.usage_in_bytes": "500000\n",
    f"{_V1}/memory.stat": "inactive_file 1\ntotal_inactive_file 50000\n",
    f"{_V1}/kubepods/memory.usage_in_bytes": "4000\n",
    f"{_V1}/kubepods/memory.stat": "total_inactive_file 1000\n",
    f"{_V1}/kubepods/memory.limit_in_bytes": "10000\n",
}


def read(top: Path, files: dict[str, str], **places: Any) -> model.Reading:
    """The reading of a machine of these files."""
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    host = roots.open_root(str(top))
    reader = pressure.PressureReader(host)
    reader.configure(hierarchies.discover(host, ""), pressure.PressurePaths(**places))
    return reader.read(5.0, {}, None)


@pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
def test_numbers(tmp_path: Path, files: dict[str, str]) -> None:
    """The same machine says the same on both versions."""
    reading = read(tmp_path, files)

    assert reading.root == model.Memory(usage=500_000, inactive_file=50_000, limit=1000 * _KIB)
    assert reading.root.available == 1000 * _KIB - 450_000
    assert reading.pods == model.Memory(usage=4000, inactive_file=1000, limit=10_000)
    assert (reading.max_pids, reading.processes) == (20_000, 3518)
    assert (reading.swap_total, reading.swap_free) == (8 * _KIB, 2 * _KIB)
    assert reading.stalls["memory.some.avg10"] == 1.5
    assert "cpu.some.avg10" not in reading.stalls


@pytest.mark.parametrize("text", ["max\n", f"{(1 << 63) - 4096}\n"])
def test_no_limit_is_no_observation(tmp_path: Path, text: str) -> None:
    """A group without a limit has nothing available, and nothing used up."""
    reading = read(tmp_path, {**V2, "sys/fs/cgroup/kubepods.slice/memory.max": text})

    assert reading.pods is not None
    assert reading.pods.available is None


def test_more_in_use_than_there_is(tmp_path: Path) -> None:
    """Nothing is available then, and never less."""
    reading = read(
        tmp_path,
        {**V2, "sys/fs/cgroup/memory.stat": "anon 9000000\nfile 0\ninactive_file 9999999999\n"},
    )
    assert reading.root is not None
    assert (reading.root.working_set, reading.root.available) == (0, 1000 * _KIB)
    lots = {**V2, "sys/fs/cgroup/memory.stat": "anon 9000000\nfile 0\ninactive_file 0\n"}
    full = read(tmp_path, lots).root
    assert full is not None
    assert full.available == 0


def test_each_file_costs_its_own_number(tmp_path: Path) -> None:
    """Damage and absence are told by name, and everything else is there."""
    files = {**V2, "proc/loadavg": "garbage\n", "sys/fs/cgroup/memory.stat": "anon x\n"}
    del files["proc/sys/kernel/pid_max"]
    reading = read(tmp_path, files)

    assert reading.root is None
    assert reading.processes is None
    assert reading.max_pids == 20_000
    assert reading.pods is not None
    assert {"memory", "processes", "pid_max"} <= reading.problems.keys()


def test_a_group_may_stand_for_the_node(tmp_path: Path) -> None:
    """Its own limit counts where that is less than the machine's memory."""
    reading = read(tmp_path, V2, memory="kubepods.slice")

    assert reading.root == model.Memory(usage=4000, inactive_file=1000, limit=10_000)


def test_the_disk_below_a_recording_says_nothing(tmp_path: Path) -> None:
    """A recorded machine has the file systems that are mounted inside of it, and no others."""
    (tmp_path / "var/lib/kubelet").mkdir(parents=True)
    (tmp_path / "proc").mkdir()
    host = roots.open_root(str(tmp_path))

    assert not pressure.recorded(host, pressure.PressurePaths())


@pytest.mark.parametrize(
    ("devices", "layout"), [("aaa", "single"), ("abb", "dedicated"), ("aba", "split")]
)
def test_how_file_systems_lie(tmp_path: Path, devices: str, layout: str) -> None:
    """One for all, images apart, or writable layers beside the node's files."""
    (tmp_path / "proc").mkdir()
    host = roots.open_root(str(tmp_path))
    reader = pressure.PressureReader(host)
    places = pressure.PressurePaths(nodefs=("/n",), imagefs=("/i",), containerfs=("/c",))
    reader.configure(hierarchies.discover(host, ""), places)
    disks = {
        path: model.FileSystem(device=device)
        for path, device in zip(("/n", "/i", "/c"), devices, strict=True)
    }

    assert reader.read(1.0, disks, 1.0).layout == layout


_ROOT = "/sys/fs/cgroup/memory/memory.stat"
_PODS = "/sys/fs/cgroup/memory/kubepods"


class Machine(counting.Counting):
    """A v1 machine of 1000 MiB that counts who asks its root."""

    def __init__(self) -> None:
        super().__init__(counting.machine("v1", "kubepods"))
        self.reads = 0
        for name in ("usage_in_bytes", "limit_in_bytes"):
            self.texts[f"{_PODS}/memory.{name}"] = "1000\n"
        self.texts["/sys/fs/cgroup/memory/memory.usage_in_bytes"] = "500\n"
        self.has(inactive=300_000, active=100_000)

    def has(self, *, inactive: int, active: int) -> None:
        """So many KiB of page cache, in the machine and so in the root; all of it is the pods'."""
        total = f"MemTotal: 1024000 kB\nMemFree: 10 kB\nActive(file): {active} kB\n"
        self.texts["/proc/meminfo"] = f"{total}Inactive(file): {inactive} kB\n"
        sizes = inactive * _KIB, active * _KIB
        for file in (_ROOT, f"{_PODS}/memory.stat"):
            self.texts[file] = "total_inactive_file {}\ntotal_active_file {}\n".format(*sizes)

    def _said(self, path: str) -> bytes:
        self.reads += path.endswith("/memory.stat")
        return super()._said(path)


@pytest.fixture
def machine() -> Machine:
    """One."""
    return Machine()


@pytest.fixture
def look(machine: Machine) -> pressure.PressureReader:
    """A reader that has read once, at second 0."""
    reader = pressure.PressureReader(machine)
    reader.configure(hierarchies.discover(machine, ""), pressure.PressurePaths())
    reader.read(0.0, {}, None)
    return reader


def inactive(look: pressure.PressureReader, at: float) -> tuple[int, int]:
    """What is read now of the node and of all pods, in KiB."""
    reading = look.read(at, {}, None)
    assert reading.root is not None
    assert reading.pods is not None
    return reading.root.inactive_file // _KIB, reading.pods.inactive_file // _KIB


def test_page_cache_is_not_read_again_while_the_machine_has_what_it_had(
    machine: Machine, look: pressure.PressureReader
) -> None:
    """A thousandth of the memory may come or go, and that for five seconds."""
    machine.has(inactive=301_000, active=99_500)

    assert [inactive(look, at) for at in (1.0, 2.0, 3.0, 4.0)] == [(300_000, 300_000)] * 4
    assert machine.reads == 2
    assert inactive(look, 5.0) == (301_000, 301_000)
    assert machine.reads == 4


@pytest.mark.parametrize("which", ["inactive", "active"])
def test_page_cache_that_moves_is_read_at_once(
    machine: Machine, look: pressure.PressureReader, which: str
) -> None:
    """What becomes active is used from that moment on, and what was dropped is not there."""
    before = {"inactive": 300_000, "active": 100_000}
    machine.has(**{**before, which: before[which] + 1025})
    now = inactive(look, 1.0)

    assert machine.reads == 4
    assert ((301_025 if which == "inactive" else 300_000),) * 2 == now


def test_use_itself_is_of_this_moment(machine: Machine, look: pressure.PressureReader) -> None:
    """It is a file of its own, which costs nothing."""
    machine.texts["/sys/fs/cgroup/memory/memory.usage_in_bytes"] = "7000000\n"
    memory = look.read(1.0, {}, None).root

    assert memory is not None
    assert memory.usage == 7_000_000
    assert machine.reads == 2


@pytest.mark.parametrize("limit", [1 << 62, 100_000 * _KIB])
def test_page_cache_that_a_group_takes_from_others_is_not_its_working_set(
    machine: Machine, look: pressure.PressureReader, limit: int
) -> None:
    """The machine has as much as before: so a small group on a large one always seems, too."""
    machine.texts[f"{_PODS}/memory.limit_in_bytes"] = f"{limit}\n"
    more = min(limit, 1_024_000 * _KIB) // 100 + 1000
    machine.texts[f"{_PODS}/memory.usage_in_bytes"] = f"{1000 + more}\n"
    stat = f"total_inactive_file {300_000 * _KIB + more}\ntotal_active_file 0\n"
    machine.texts[f"{_PODS}/memory.stat"] = stat

    memory = look.read(1.0, {}, None).pods

    assert memory is not None
    assert 300_000 * _KIB + more == memory.inactive_file


def test_near_a_threshold_page_cache_is_read_each_time(
    machine: Machine, look: pressure.PressureReader
) -> None:
    """What was hardly another one before may be the difference now."""
    look.closely = True
    machine.has(inactive=300_001, active=100_000)

    assert inactive(look, 1.0) == (300_001, 300_001)


def test_what_was_looked_at_between_two_readings_is_read_again(
    machine: Machine, look: pressure.PressureReader
) -> None:
    """A crossing that was seen then is seen by the pass that follows."""
    machine.has(inactive=300_001, active=100_000)
    root, _ = look.memory()

    assert root is not None
    assert root.inactive_file == 300_001 * _KIB
    assert inactive(look, 1.0) == (300_001, 300_001)


def test_a_machine_that_names_no_page_cache_is_read_each_time(
    machine: Machine, look: pressure.PressureReader
) -> None:
    """There is nothing to compare."""
    machine.texts["/proc/meminfo"] = "MemTotal: 1024000 kB\nMemFree: 10 kB\n"

    assert [inactive(look, at) for at in (1.0, 2.0)] == [(300_000, 300_000)] * 2
    assert machine.reads == 6
