"""Memory between ticks: looked at only where it is nearly short, and a crossing is seen once."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from koordlet.agent import memory_watch
from koordlet.host.cgroup import hierarchies, memory_alarms
from koordlet.host.counters import pressure
from koordlet.host.recording import roots
from koordlet.model import pressure as model
from koordlet.model import thresholds
from koordlet.policy.eviction import node_pressure

_TOTAL = 1000 * 1024
LIMITS = node_pressure.Settings(
    limits=thresholds.parse(thresholds.Texts(hard={"memory.available": "200000"}))
)


def machine(top: Path) -> pressure.PressureReader:
    """A machine of 1000 KiB on cgroup v2."""
    (top / "proc/self").mkdir(parents=True)
    (top / "sys/fs/cgroup").mkdir(parents=True)
    (top / "proc/meminfo").write_text("MemTotal: 1000 kB\nMemFree: 10 kB\n")
    line = "32 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    (top / "proc/self/mountinfo").write_text(line)
    (top / "sys/fs/cgroup/cgroup.controllers").write_text("memory\n")
    host = roots.open_root(str(top))
    reader = pressure.PressureReader(host)
    reader.configure(hierarchies.discover(host, ""), pressure.PressurePaths())
    return reader


def use(top: Path, available: int) -> None:
    """So much is left."""
    stat = f"anon {_TOTAL - available}\nfile 0\ninactive_file 0\n"
    (top / "sys/fs/cgroup/memory.stat").write_text(stat)


@pytest.mark.parametrize(
    ("before", "now", "near", "crossed"),
    [
        (900_000, 100_000, False, False),
        (250_000, 210_000, True, False),
        (250_000, 200_000, True, False),
        (250_000, 199_999, True, True),
        (150_000, 140_000, True, False),
    ],
)
def test_a_crossing_is_from_enough_to_too_little_since_the_tick(
    tmp_path: Path,
    before: int,
    now: int,
    near: bool,
    crossed: bool,
) -> None:
    """From enough to too little since the tick; what was short then is no news."""
    watch = memory_watch.MemoryWatch(machine(tmp_path))
    root = model.Memory(usage=_TOTAL - before, inactive_file=0, limit=_TOTAL)
    watch.tick(LIMITS, model.Reading(root=root))
    use(tmp_path, now)

    assert watch.near is near
    assert watch.crossed() is crossed


def test_memory_is_looked_at_when_the_kernel_tells(tmp_path: Path) -> None:
    """Then it is looked at however far away it was; telling alone is no crossing."""
    watch = memory_watch.MemoryWatch(machine(tmp_path))
    root = model.Memory(usage=100_000, inactive_file=0, limit=_TOTAL)
    watch.tick(LIMITS, model.Reading(root=root))
    use(tmp_path, 300_000)
    assert not watch.crossed(told=True)
    use(tmp_path, 100_000)

    assert not watch.crossed()
    assert watch.crossed(told=True)


@pytest.mark.parametrize(("available", "near"), [(900_000, False), (250_000, True)])
def test_near_a_threshold_the_reader_believes_nothing(
    tmp_path: Path, available: int, near: bool
) -> None:
    """Far from it, what hardly changes is read less often."""
    reader = machine(tmp_path)
    root = model.Memory(usage=_TOTAL - available, inactive_file=0, limit=_TOTAL)
    memory_watch.MemoryWatch(reader).tick(LIMITS, model.Reading(root=root))

    assert near is reader.closely


class RecordingAlarms:
    """Remembers what it was told to tell of."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}

    def set(self, levels: dict[str, int]) -> None:
        """The newest."""
        self.levels = levels


def test_what_the_kernel_shall_tell(tmp_path: Path) -> None:
    """On v1 the use at which the nearest threshold is crossed, of the node and of all pods."""
    (tmp_path / "sys/fs/cgroup/memory/kubepods").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    line = "33 23 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    (tmp_path / "proc/self/mountinfo").write_text(line)
    host = roots.open_root(str(tmp_path))
    reader = pressure.PressureReader(host)
    reader.configure(hierarchies.discover(host, ""), pressure.PressurePaths())
    reader.read(1.0, {}, None)
    texts = thresholds.Texts(
        hard={"memory.available": "200"},
        soft={"memory.available": "300"},
        soft_grace={"memory.available": "1m"},
    )
    watch, alarms = memory_watch.MemoryWatch(reader), RecordingAlarms()
    watch.alarms = cast("memory_alarms.Alarms", alarms)
    root = model.Memory(usage=500, inactive_file=50, limit=1000)
    pods = model.Memory(usage=900, inactive_file=0, limit=1000)
    settings = node_pressure.Settings(limits=thresholds.parse(texts))
    watch.tick(settings, model.Reading(root=root, pods=pods))

    # Less than 300 is available from 700 of working set on; the pods are over theirs already.
    assert alarms.levels == {"/sys/fs/cgroup/memory": 750}
    watch.tick(settings, model.Reading(root=root, pods=root))
    assert alarms.levels == {
        "/sys/fs/cgroup/memory": 750,
        "/sys/fs/cgroup/memory/kubepods": 850,
    }


def test_unknown_is_no_crossing(tmp_path: Path) -> None:
    """Without a policy, or without a number, nothing is near."""
    watch = memory_watch.MemoryWatch(machine(tmp_path))
    watch.tick(None, model.Reading(root=model.Memory(usage=1, inactive_file=0, limit=2)))
    assert not watch.near
    watch.tick(LIMITS, model.Reading())
    assert not watch.crossed()
