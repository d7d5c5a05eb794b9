"""Cold memory, from the two interfaces that know it."""

from __future__ import annotations

import pytest

from koordlet.history import series
from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import cold_memory, node
from koordlet.host.topology import discovery
from koordlet.model import absence, meter
from tests.kit import counting

#: As the kernel prints it: two kinds of page cache, anonymous pages, and what is no number.
KIDLED = b"""\
# version: 1.0
# page_scans: 24
# scan_period_in_seconds: 5
# use_hierarchy: 1
# buckets: 1,2,5,15,30,60,120,240
#   _-----=> clean/dirty
  cfei             1       2       4       8      16      32      64     128
  dfei             0       0       0       0       0       1       0       0
  cfui             0       0       0       0       0       0       2       0
  dfui             0       0       0       0       0       0       0       4
  dsei         10000   10000   10000   10000   10000   10000   10000   10000
"""
PERCENTILES = ",".join(str(age) for age in (-500, *[0] * 60, *[299_999] * 10, *[300_000] * 30))
COLDER = b",".join([b"-500", *[b"0"] * 40, *[b"300000"] * 60])
MIB = 1 << 20
#: 960 MiB, of which 590 are on the lists for reclaim; the rest is free, or the kernel's own.
MEMINFO = b"""\
MemTotal:         983040 kB
MemFree:          204800 kB
MemAvailable:     614400 kB
Active:           204800 kB
Inactive:         389120 kB
Active(anon):     102400 kB
Inactive(anon):   307200 kB
Unevictable:       10240 kB
"""
#: 1 GiB with a hole of another behind it, and a little more.
IOMEM = b"""\
00000000-00000fff : Reserved
00001000-0009fbff : System RAM
000a0000-000bffff : PCI Bus 0000:00
00100000-3fffffff : System RAM
  01000000-020010af : Kernel code
40000000-7fffffff : PCI Bus 0000:00
80000000-80000fff : System RAM
"""


def test_kidled_counts_page_cache_idle_for_sixty_scans() -> None:
    """The last three columns of the four kinds; slab and younger pages are not cold cache."""
    assert cold_memory.idle(KIDLED) == 32 + 64 + 128 + 1 + 2 + 4


def test_damon_says_a_share() -> None:
    """Thirty of a hundred parts were idle for five minutes."""
    assert cold_memory.share(PERCENTILES.encode()) == 0.3


def test_what_is_free_is_not_cold() -> None:
    """DAMON never sees free memory and the kernel's own in use: cold is what else there is.

    Of the addresses that it watches, two fifths were in use; the rest of what can be is cold.
    """
    nothing = MEMINFO.replace(b"204800 kB\nInactive", b"     0 kB\nInactive")

    assert pytest.approx(cold_memory.untouched(COLDER, MEMINFO, b"")) == (590 - 0.4 * 960) * MIB
    assert pytest.approx(cold_memory.untouched(COLDER, nothing, b"")) == (390 - 0.4 * 960) * MIB
    assert cold_memory.untouched(PERCENTILES.encode(), nothing, b"") == 0


def test_holes_between_addresses_are_watched_too() -> None:
    """The share is one of all addresses from the first to the last memory."""
    used = (1 << 31) * 0.2

    assert cold_memory.span(IOMEM) == (1 << 31)
    few = b",".join([b"-500", *[b"0"] * 20, *[b"300000"] * 80])
    assert 590 * MIB - used == pytest.approx(cold_memory.untouched(few, MEMINFO, IOMEM), rel=1e-4)


def test_addresses_that_are_hidden() -> None:
    """Whoever is not root sees zeros: then memory counts for the addresses."""
    hidden = b"00000000-00000000 : System RAM\n"

    assert cold_memory.untouched(COLDER, MEMINFO, b"") == cold_memory.untouched(
        COLDER, MEMINFO, hidden
    )


def test_a_meminfo_without_lists() -> None:
    """It is refused, not counted as nothing."""
    with pytest.raises(ValueError, match="Inactive"):
        cold_memory.untouched(COLDER, b"MemTotal: 1 kB\nActive: 1 kB\nUnevictable: 0 kB\n", b"")


@pytest.mark.parametrize("text", [b"", b"cfex 1 2", b"# only\n# remarks\n", b"cfei 1 2 3 4 5 x"])
def test_what_is_no_text_of_kidled(text: bytes) -> None:
    """It is refused, not counted as nothing."""
    with pytest.raises(ValueError, match=r"idle pages|invalid literal"):
        cold_memory.idle(text)


@pytest.mark.parametrize("text", [b"", b"1,2,3", b"x," * 100 + b"x"])
def test_what_are_no_percentiles(text: bytes) -> None:
    """It is refused, not counted as nothing."""
    with pytest.raises(ValueError, match=r"percentiles|invalid literal"):
        cold_memory.share(text)


def test_of_the_node() -> None:
    """Kidled's own count before DAMON's estimate; without either it is said why."""
    host = counting.machine("v1")
    layout = hierarchies.discover(host)
    parameters = "/sys/module/damon_stat/parameters"

    assert absence.Unsupported(
        "memory.cold", "this kernel has neither kidled nor DAMON_STAT"
    ) == cold_memory.node(host, layout)

    host.tree.text(f"{parameters}/enabled", "N\n")
    gap = cold_memory.node(host, layout)
    assert isinstance(gap, absence.Unsupported)
    assert "not enabled" in gap.why

    host.tree.text(f"{parameters}/enabled", "Y\n")
    host.tree.text(f"{parameters}/memory_idle_ms_percentiles", PERCENTILES + "\n")
    host.tree.text("/proc/meminfo", MEMINFO.decode())
    assert (590 - 0.7 * 960) * MIB < 0 == cold_memory.node(host, layout)
    host.tree.text(f"{parameters}/memory_idle_ms_percentiles", COLDER.decode())
    assert pytest.approx(cold_memory.node(host, layout)) == (590 - 0.4 * 960) * MIB

    host.tree.text("/sys/fs/cgroup/memory/memory.idle_page_stats", KIDLED.decode())
    assert cold_memory.idle(KIDLED) == cold_memory.node(host, layout)


def test_it_is_remembered() -> None:
    """The node's cold memory is a value of its history; a damaged text costs that value only."""
    host, past = counting.machine("v1"), series.History()
    look = node.NodeReader(host)
    look.configure(discovery.discover(host), hierarchies.discover(host))
    host.tree.text("/sys/fs/cgroup/memory/memory.idle_page_stats", KIDLED.decode())
    past.take(look.read(0))

    assert cold_memory.idle(KIDLED) == past.node.last("", meter.MEMORY_COLD)
    assert "memory.cold" not in [gap.feature for gap in look.unsupported]

    host.tree.text("/sys/fs/cgroup/memory/memory.idle_page_stats", "nonsense")
    for at in range(1, 40):
        past.take(look.read(at))
    assert look.counts["damaged"] == 1
    assert past.node.last("", meter.MEMORY_TOTAL) is not None
