"""Counters of the node: each file for itself, subjects that come and go."""

from __future__ import annotations

import errno
from dataclasses import replace

from koordlet.history import series
from koordlet.host import machine
from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import node, usage
from koordlet.host.fs import root
from koordlet.host.topology import discovery
from koordlet.model import meter, topology
from tests.kit import counting, machines


def stat(*cpus: tuple[int, int]) -> str:
    """``/proc/stat`` with seconds of user time by CPU."""
    lines = [f"cpu{cpu} {100 * used} 0 0 0 0 0 0 0 0 0\n" for cpu, used in cpus]
    total = sum(used for _, used in cpus)
    return f"cpu {100 * total} 0 0 0 0 0 0 0 0 0\n" + "".join(lines)


def test_rates_of_the_node_and_its_cpus() -> None:
    """A second of user time in a second is a core."""
    host, past = counting.machine("v2"), series.History()
    look = node.NodeReader(host)
    look.configure(discovery.discover(host))
    for at, used in ((0, 10), (1, 11)):
        host.texts["/proc/stat"] = stat((0, used), (1, 7))
        past.take(look.read(at))

    assert past.node.last("", meter.CPU) == 1
    assert (past.cpus.last("0", meter.CPU), past.cpus.last("1", meter.CPU)) == (1, 0)
    assert past.numa.last("0", meter.CPU) == 1


def test_a_cpu_that_comes_back() -> None:
    """The time of its former life is no rate of its NUMA node."""
    host, past = counting.machine("v2"), series.History()
    look = node.NodeReader(host)
    look.configure(discovery.discover(host))
    for at, cpus in enumerate(
        [((0, 1), (1, 5000)), ((0, 2),), ((0, 3), (1, 5000)), ((0, 4), (1, 5000))]
    ):
        host.texts["/proc/stat"] = stat(*cpus)
        past.take(look.read(at))
        rate = past.numa.last("0", meter.CPU)
        assert rate is None or 0 <= rate <= 2

    assert past.numa.last("0", meter.CPU) == 1


def test_each_file_for_itself() -> None:
    """A damaged file costs its values, a missing one is said; the others are read."""
    host, past = counting.machine("v2"), series.History()
    look = node.NodeReader(host)
    host.texts["/proc/stat"] = "nonsense"
    host.tree.directory("/proc/pressure").drop("io")

    def off() -> str:
        raise root.fail(errno.EOPNOTSUPP, "/proc/pressure/cpu")

    host.tree.computed("/proc/pressure/cpu", off)
    past.take(look.read(0))

    assert past.node.last("", meter.MEMORY_TOTAL) is not None
    assert look.counts["damaged"] == 1
    gaps = {gap.feature: gap.why for gap in look.unsupported}
    assert gaps["pressure.cpu"] == (
        "/proc/pressure/cpu: Operation not supported"
        " (pressure stall information is off: boot with psi=1)"
    )
    assert gaps["pressure.io"] == (
        "/proc/pressure/io: No such file or directory (pressure stall information is off or not"
        " built in: boot with psi=1, and where that does not help with a kernel that has"
        " CONFIG_PSI)"
    )


def test_interfaces_with_a_device_before_others() -> None:
    """Where there is a real interface, those of containers are left out."""
    host, past = counting.machine("v2"), series.History()
    line = "{}: 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n"
    host.texts["/proc/net/dev"] = "x\ny\n" + "".join(map(line.format, ("veth1", "eth0", "veth2")))
    host.tree.text("/sys/class/net/eth0/device", "")
    past.take(node.NodeReader(host).read(0))

    assert list(past.links.subjects) == ["eth0"]


def test_a_second_look_at_once_reads_nothing() -> None:
    """A pass that follows another one closely leaves the rates alone."""
    host = counting.machine("v2", "a")
    look = usage.UsageReader(host)
    first = look.read(machine.Now(at=1.0, wall=0.0), {})

    assert {"groups", "node"} <= first.keys()
    assert look.read(machine.Now(at=1.2, wall=0.0), {}) == {}
    assert look.read(machine.Now(at=2.0, wall=0.0), {}) != {}


def test_memory_of_a_node_that_comes_later_is_counted() -> None:
    """Memory behind CXL comes online after the boot: groups have some of it from then on."""
    host, past = counting.machine("v2", "a"), series.History()
    look = usage.UsageReader(host)
    look.read_everything()
    layout, shape = hierarchies.discover(host), discovery.discover(host)
    host.texts[f"{counting.TOP}/a/memory.numa_stat"] = "anon N0=4096 N1=8192\n"
    later = replace(shape, nodes=tuple(topology.Node(node=node) for node in (0, 1)))
    for at, seen in enumerate((shape, later)):
        look.configure(layout, seen)
        past.take(look.read(machine.Now(at=float(at), wall=0.0), counting.found(host)))

    assert past.groups.last("a", meter.numa_memory(1)) == 8192


def test_counters_are_a_source_with_an_age() -> None:
    """What is wrong with them is said with the file's name; the time of the last good look stays.

    They are of this machine: having them makes no node a part of a cluster.
    """
    host = counting.machine("v2")
    look = usage.UsageReader(host)
    assert (look.source.ok, look.source.last_good) == (False, None)

    look.read(machine.Now(at=1.0, wall=0.0), {})
    assert (look.source.ok, look.source.last_good, look.source.problem) == (True, 1.0, "")

    host.texts["/proc/stat"], host.texts["/proc/meminfo"] = "nonsense", None
    look.read(machine.Now(at=2.0, wall=0.0), {})
    assert (look.source.ok, look.source.last_good) == (False, 1.0)
    assert "/proc/stat" in look.source.problem
    assert "/proc/meminfo" in look.source.problem
    assert look.source.local

    host.texts.clear()
    look.read(machine.Now(at=3.0, wall=0.0), {})
    assert (look.source.ok, look.source.last_good) == (True, 3.0)


def test_a_host_name_with_capitals_names_a_node_in_lower_case() -> None:
    """A kubelet registers it so: by another spelling no pod of the node would be ours."""
    host = machines.to_host({"proc/sys/kernel/hostname": "Web-1\n"})
    assert machine.hostname(host) == "web-1"
