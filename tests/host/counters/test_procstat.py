"""The texts below /proc, as kernels write them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from koordlet.host.counters import procstat
from koordlet.model import meter

STAT = b"""\
cpu  100 20 30 4000 500 6 7 80 9 1
cpu0 50 10 15 2000 250 3 3 40 4 0
cpu3 50 10 15 2000 250 3 4 40 5 1
intr 12345 0 0
"""
MEMINFO = b"""\
MemTotal:        1000 kB
MemFree:          200 kB
MemAvailable:     700 kB
Active(file):     300 kB
Inactive(file):   100 kB
SReclaimable:      50 kB
SwapTotal:         10 kB
SwapFree:           5 kB
HugePages_Total:       0
"""


def test_cpu_time() -> None:
    """User, nice, system and interrupts; not idle, iowait, steal, nor guests once more."""
    node, cpus = procstat.stat(STAT)

    assert pytest.approx(node[meter.CPU]) == 1.63
    assert pytest.approx((node[meter.CPU_USER], node[meter.CPU_SYSTEM])) == (1.2, 0.43)
    assert pytest.approx(cpus) == {"0": 0.81, "3": 0.82}


def test_memory() -> None:
    """What is not available is in use; without the cache counted out, what is not free."""
    values = procstat.meminfo(MEMINFO)

    assert (values[meter.MEMORY], values[meter.WORKING_SET]) == (800 << 10, 300 << 10)
    assert values[meter.MEMORY_CACHE] == 400 << 10


def test_memory_of_an_old_kernel() -> None:
    """Without MemAvailable the working set is not known; the rest is."""
    values = procstat.meminfo(MEMINFO.replace(b"MemAvailable", b"MemAvail"))

    assert math.isnan(values[meter.WORKING_SET])
    assert values[meter.MEMORY] == 800 << 10


def test_memory_of_a_node() -> None:
    """The lines carry the node; what can be had back is not in use."""
    text = b"".join(b"Node 3 " + line + b"\n" for line in MEMINFO.splitlines())
    values = procstat.node_meminfo(text)

    assert (values[meter.MEMORY], values[meter.WORKING_SET]) == (800 << 10, 350 << 10)


def test_the_small_files() -> None:
    """Load, waiting for CPUs, faults."""
    assert list(procstat.loadavg(b"1.50 2.00 0.25 1/100 7\n").values()) == [1.5, 2.0, 0.25]
    lines = b"version 15\ncpu0 0 0 0 0 0 0 9 2000000000 5\ncpu1 0 0 0 0 0 0 9 500000000 5\n"
    assert procstat.schedstat(lines) == {meter.RUN_DELAY: 2.5}
    assert procstat.vmstat(b"nr_free_pages 9\npswpin 3\noom_kill 1\n") == {
        meter.SWAPPED_IN: 3,
        meter.OOM_KILLS: 1,
    }


def test_interfaces() -> None:
    """Bytes received and sent; a name may have a colon; the loopback says nothing."""
    numbers = "1000 1 0 0 0 0 0 0 2000 2 0 0 0 0 0 0"
    text = f"Inter-| x\n face | y\n    lo: {numbers}\n  eth0:{numbers}\neth0:1: {numbers}\n"
    interfaces = procstat.net(text.encode())

    assert list(interfaces) == ["eth0", "eth0:1"]
    assert interfaces["eth0"] == {meter.RECEIVED: 1000, meter.SENT: 2000}


@pytest.mark.parametrize("text", [b"", b"cpu x\n", b"cpu 1 2\n", b"intr 5\n", b"\0"])
@pytest.mark.parametrize(
    "understand",
    [procstat.stat, procstat.meminfo, procstat.node_meminfo, procstat.loadavg, procstat.schedstat],
)
def test_damage(understand: Callable[[bytes], object], text: bytes) -> None:
    """What no kernel writes is refused by the errors that the reader knows."""
    with pytest.raises((ValueError, IndexError)):
        understand(text)
