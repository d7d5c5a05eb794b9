"""Machines for the clock rather than the eye: hundreds of CPUs, as many as are wanted.

Covers: large regular machines. Does not cover: odd ones (``tests.kit.machines``).
"""

from __future__ import annotations

from tests.kit import machines

CPU = "sys/devices/system/cpu"
GIB = 1 << 20  # in kB
INTEL = (
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel name\t: Example CPU\n"
    "flags\t\t: fpu lm ht cat_l3 mba\n\n"
)


def large(cpus: int = 256, per_socket: int = 128) -> machines.Tree:
    """Sockets of many two-thread cores with an L3 per eight cores: for the clock, not the eye."""
    made = machines.Builder()
    text = f"0-{cpus - 1}"
    made.lists(possible=text, present=text, online=text, offline="", isolated="")
    half = cpus // 2
    for core in range(half):
        socket = core // (per_socket // 2)
        first = socket * (per_socket // 2)
        half_socket = range(first, first + per_socket // 2)
        members = [*half_socket, *(cpu + half for cpu in half_socket)]
        for cpu in (core, core + half):
            base = f"{CPU}/cpu{cpu}/topology"
            made.files[f"{base}/core_cpus_list"] = f"{core},{core + half}\n"
            made.files[f"{base}/package_cpus_list"] = machines.ranges(members) + "\n"
            for name, number in (("core_id", core), ("physical_package_id", socket), ("die_id", 0)):
                made.files[f"{base}/{name}"] = f"{number}\n"
    for first in range(0, half, 8):
        block = range(first, first + 8)
        sharing = [*block, *(cpu + half for cpu in block)]
        made.cache(3, 3, "Unified", sharing, id=first // 8, size="32768K")
    made.private_caches((core, core + half) for core in range(half))
    return made.files


def full(cpus: int = 256) -> machines.Tree:
    """``large`` as two sockets with all that a kernel of today shows: nothing is missing."""
    made = machines.Builder(files=large(cpus, cpus // 2))
    half, quarter = cpus // 2, cpus // 4
    made.lists(isolated="")
    made.files[f"{CPU}/nohz_full"] = "(null)\n"
    made.files[f"{CPU}/smt/control"] = "on\n"
    for socket, row in enumerate(("10 21", "21 10")):
        own = range(socket * quarter, (socket + 1) * quarter)
        made.node(socket, [*own, *(cpu + half for cpu in own)], 256 * GIB, row)
    made.nodes_online("0-1", "0-1")
    for cpu in range(cpus):
        made.files[f"{CPU}/cpu{cpu}/topology/cluster_id"] = "65535\n"
        made.files[f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq"] = "3700000\n"
        made.files[f"{CPU}/cpu{cpu}/cpufreq/scaling_governor"] = "schedutil\n"
    made.cpuinfo(INTEL)
    return made.files
