"""The table of counter files: what each says, on either version."""

from __future__ import annotations

import math

import pytest

from koordlet.host.counters import files
from koordlet.model import meter

STAT = """\
cache 30
rss 5
inactive_file 3
total_cache 300
total_inactive_anon 10
total_active_anon 20
total_inactive_file 100
total_active_file 200
total_unevictable 5
"""
PSI = (
    "some avg10=1.50 avg60=2.00 avg300=3.25 total=4000000\n"
    "full avg10=0.50 avg60=0.25 avg300=0.00 total=1000000\n"
)
SOME = [1.5, 2.0, 3.25, 4.0]


def one(name: str, *texts: str, unified: bool) -> dict[meter.Meter, list[float]]:
    """The columns of a file."""
    row = next(row for row in files.table() if (row.name, row.unified) == (name, unified))
    columns = row.columns([text.encode() for text in texts])
    return {what: list(column) for what, column in zip(row.meters, columns, strict=True)}


def test_cpu_time_of_v1() -> None:
    """Nanoseconds, and ticks of USER_HZ."""
    assert one("cpuacct.usage", "2500000000\n", unified=False) == {meter.CPU: [2.5]}
    split = one("cpuacct.stat", "user 250\nsystem 50\n", unified=False)
    assert [split[meter.CPU_USER][0], split[meter.CPU_SYSTEM][0]] == [2.5, 0.5]


def test_throttling_of_v1() -> None:
    """Periods, throttled ones, and nanoseconds; other lines do not matter."""
    text = "nr_periods 10\nnr_throttled 4\nthrottled_time 1500000000\nnr_bursts 0\n"
    columns = one("cpu.stat", text, unified=False)

    assert [column[0] for column in columns.values()] == [10, 4, 1.5]


def test_cpu_of_v2_with_and_without_the_controller() -> None:
    """Without the controller there is no throttling: those values are missing, the others there."""
    short = "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n"
    long = f"{short}nr_periods 5\nnr_throttled 2\nthrottled_usec 500000\n"
    columns = one("cpu.stat", short, long, short, unified=True)

    assert columns[meter.CPU] == [3.0, 3.0, 3.0]
    assert columns[meter.THROTTLED_PERIODS][1] == 2
    assert [math.isnan(n) for n in columns[meter.PERIODS]] == [True, False, True]


def test_memory_of_v1_counts_what_is_below() -> None:
    """The sums of the hierarchy are taken, not those of the group alone."""
    columns = one("memory.stat", STAT, unified=False)

    assert [column[0] for column in columns.values()] == [100, 300, 35]


def test_keys_that_move() -> None:
    """Another kernel's order of keys is learned, also where the number of keys is the same."""
    first = "inactive_anon 1\nactive_anon 2\nunevictable 3\ninactive_file 4\nactive_file 5\n"
    second = "active_file 50\ninactive_file 40\nunevictable 30\nactive_anon 20\ninactive_anon 10\n"
    columns = one("memory.stat", first, second, first, unified=True)

    assert columns[meter.MEMORY_INACTIVE_FILE] == [4, 40, 4]
    assert columns[meter.MEMORY_ANON] == [6, 60, 6]


@pytest.mark.parametrize(
    ("name", "unified", "text", "values"),
    [
        ("io.stat", True, "", [0, 0]),
        ("io.stat", True, "8:0 rbytes=7 wbytes=5 rios=1\n8:16 rbytes=1 wbytes=0\n", [8, 5]),
        ("io.stat", True, "253:0 rbytes=7 wbytes=5 dbytes=9\n", [7, 5]),
        ("io.stat", True, "8:0 \n8:16 \n", [0, 0]),
        ("io.stat", True, "8:0 \n8:16 rbytes=1 wbytes=2\n", [1, 2]),
        ("blkio.throttle.io_service_bytes_recursive", False, "Total 0\n", [0, 0]),
        (
            "blkio.throttle.io_service_bytes_recursive",
            False,
            "8:0 Read 7\n8:0 Write 5\n8:0 Sync 9\n8:0 Total 12\nTotal 12\n",
            [7, 5],
        ),
        ("cpu.pressure", True, PSI, [*SOME, 0.5, 0.25, 0.0, 1.0]),
        ("memory.events", True, "low 0\noom 2\noom_kill 1\n", [1]),
        ("memory.oom_control", False, "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", [3]),
        (
            "memory.idle_page_stats",
            False,
            "# version: 1.0\ncsei 9 9 9 9 9 9 9\ncfei 1 1 1 1 1 4 8\ndfui 1 1 1 1 1 16 32\n",
            [60],
        ),
    ],
)
def test_files(name: str, unified: bool, text: str, values: list[float]) -> None:
    """Each file as its kernel writes it."""
    assert values == [column[0] for column in one(name, text, unified=unified).values()]


def test_pressure_without_full() -> None:
    """Before 5.13 the CPU's file had one line."""
    columns = one("cpu.pressure", PSI.partition("\n")[0] + "\n", unified=True)

    assert [column[0] for column in list(columns.values())[:4]] == SOME
    assert all(math.isnan(column[0]) for column in list(columns.values())[4:])


@pytest.mark.parametrize("unified", [False, True])
def test_memory_by_node(unified: bool) -> None:
    """Pages of v1 are bytes here; on v2 anonymous memory, files and slabs are added up."""
    v1 = "total=7 N0=3 N1=4\nfile=9 N0=9 N1=0\nhierarchical_total=30 N0=10 N1=20\n"
    v2 = "anon N0=4096 N1=0\nfile N0=4096 N1=8192\nshmem N0=1 N1=1\n"
    row = files.numa((0, 1), unified=unified)
    columns = row.columns([(v2 if unified else v1).encode()])

    assert ([8192, 8192] if unified else [40960, 81920]) == [column[0] for column in columns]
    assert (meter.numa_memory(0), meter.numa_memory(1)) == row.meters


@pytest.mark.parametrize("unified", [False, True])
def test_files_of_disks_are_long(unified: bool) -> None:
    """They have lines for each disk, so more than a page is asked for; of no other file."""
    long = {row.name for row in files.table() if row.size > 4096 and row.unified is unified}

    assert {"io.stat" if unified else "blkio.throttle.io_service_bytes_recursive"} == long


@pytest.mark.parametrize("unified", [False, True])
def test_memory_by_node_with_gaps(unified: bool) -> None:
    """Numbers of nodes may have gaps, the first may have no memory, and one may come later."""
    v1 = "total=7 N8=3 N250=4\nhierarchical_total=30 N8=10 N9=5 N250=20\n"
    v2 = "anon N8=4096 N9=7 N250=0\nfile N8=4096 N9=7 N250=8192\n"
    row = files.numa((0, 8, 250), unified=unified)
    columns = row.columns([(v2 if unified else v1).encode()])

    expected = [0, 8192, 8192] if unified else [0, 40960, 81920]
    assert [column[0] for column in columns] == expected
    assert tuple(map(meter.numa_memory, (0, 8, 250))) == row.meters


@pytest.mark.parametrize("text", ["x", "a b c\n", "\0", "some avg10=x", "-"])
@pytest.mark.parametrize("row", files.table(), ids=lambda row: f"{row.name}-{row.unified}")
def test_damage(row: files.File, text: str) -> None:
    """What no kernel writes is refused by the errors that the reader knows."""
    with pytest.raises((ValueError, IndexError)):
        row.columns([text.encode()])
