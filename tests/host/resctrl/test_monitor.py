"""What groups used: numbers, what is no number, rates that are never made up."""

from __future__ import annotations

from pathlib import Path

from koordlet.host.recording import directory
from koordlet.host.resctrl import monitor as resctrl_monitor
from koordlet.host.resctrl import tree
from koordlet.model.resctrl import Usage
from tests.kit import resctrl as kit
from tests.kit.kernel import KernelHost


def looks(host: KernelHost) -> tuple[tree.ResctrlTreeReader, resctrl_monitor.Monitor]:
    """A reader and a monitor of one machine."""
    made = tree.ResctrlTreeReader(host)
    made.refresh("GenuineIntel", ())
    return made, resctrl_monitor.Monitor(host)


def say(host: KernelHost, file: str, text: str, group: str = "") -> None:
    """What a counter of domain 0 reads."""
    assert host.resctrl is not None
    host.resctrl.counters[group, 0, file] = text


def root_of(usages: tuple[Usage, ...]) -> Usage:
    """The root group in domain 0."""
    return next(usage for usage in usages if (usage.group, usage.domain) == ("", "0"))


def test_rates_between_two_looks() -> None:
    """Bytes per second, from the second look on."""
    host = kit.machine()
    reader, monitor = looks(host)
    say(host, "llc_occupancy", "4096")
    say(host, "mbm_total_bytes", "1000")
    now = reader.read()
    assert now is not None
    first = root_of(monitor.read(now, 10.0))
    say(host, "mbm_total_bytes", "5000")
    second = root_of(monitor.read(now, 12.0))

    assert (first.llc_bytes, first.total_bytes, first.total_rate) == (4096, 1000, None)
    assert (second.total_bytes, second.total_rate) == (5000, 2000.0)


def test_what_is_no_number_breaks_the_rate() -> None:
    """Unavailable, Error and a counter that starts anew: unknown, never zero or negative."""
    host = kit.machine()
    reader, monitor = looks(host)
    now = reader.read()
    assert now is not None
    seen = []
    for at, text in enumerate(
        ("5000", "Unavailable", "6000", "100", "Error", "18446744073709551616")
    ):
        say(host, "mbm_total_bytes", text)
        usage = root_of(monitor.read(now, float(at)))
        seen.append((usage.total_bytes, usage.total_rate))

    assert seen[:5] == [(5000, None), (None, None), (6000, None), (100, None), (None, None)]
    assert seen[5] == (1 << 64, None)


def test_a_group_made_anew_is_another_one() -> None:
    """Its counter is not compared with its namesake's."""
    host = kit.machine()
    reader, monitor = looks(host)
    place = host.at(f"{kit.PLACE}/BE")
    host.mkdir(place)
    say(host, "mbm_total_bytes", "100", "BE")
    first = reader.read()
    assert first is not None
    monitor.read(first, 1.0)
    host.rmdir(place)
    host.mkdir(place)
    say(host, "mbm_total_bytes", "200", "BE")
    second = reader.read()
    assert second is not None
    (usage,) = [u for u in monitor.read(second, 2.0) if (u.group, u.domain) == ("BE", "0")]

    assert usage.total_rate is None


def test_without_monitoring_nothing_is_read() -> None:
    """And nothing is made up."""
    host = kit.machine("intel,nomon")
    reader, monitor = looks(host)
    now = reader.read()
    assert now is not None

    assert monitor.read(now, 1.0) == ()


def test_a_package_is_no_cache(tmp_path: Path) -> None:
    """Linux 7.0 counts whole packages beside the caches: they are neither domains nor values.

    A group needs an id of both kinds, so the lesser number of them counts.
    """
    files = {
        "proc/self/mountinfo": "30 1 0:30 / /sys/fs/resctrl rw - resctrl resctrl rw\n",
        "sys/fs/resctrl/tasks": "1\n",
        "sys/fs/resctrl/schemata": "L3:0=fff\n",
        "sys/fs/resctrl/info/L3_MON/num_rmids": "256\n",
        "sys/fs/resctrl/info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\n",
        "sys/fs/resctrl/info/PERF_PKG_MON/num_rmids": "64\n",
        "sys/fs/resctrl/info/PERF_PKG_MON/mon_features": "core_energy\nactivity\n",
        "sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy": "4096\n",
        "sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes": "Unassigned\n",
        "sys/fs/resctrl/mon_data/mon_PERF_PKG_00/core_energy": "94499439.510380\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    host = directory.DirHost(str(tmp_path))
    reader = tree.ResctrlTreeReader(host)
    reader.refresh("GenuineIntel", ())
    now = reader.read()
    assert now is not None
    assert now.hardware.monitoring is not None

    assert now.hardware.monitoring.num_rmids == 64
    assert [Usage(group="", domain="0", llc_bytes=4096)] == list(
        resctrl_monitor.Monitor(host).read(now, 1.0)
    )
