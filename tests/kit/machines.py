"""Machines that emulators cannot give, as the files that their kernels would show.

Covers: a small builder (CPUs, caches, nodes, lists) and the shapes below.
Does not cover: what discovery should say about them: ``fixtures/sysfs/NAME.json``, written by hand.

``python -m tests.kit.machines`` writes ``fixtures/sysfs/NAME.tar.gz`` for every shape; the archives
are the same byte for byte each time.
"""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from koordlet.host.fs import root
from koordlet.host.recording import archive, tarindex

#: Path below the root to content; a content that starts with ``->`` is a link.
Tree = dict[str, str]

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"
_GIB = 1 << 20  # in kB


def ranges(cpus: Iterable[int]) -> str:
    """The kernel's list form; written out here so that the tests do not test our parser with it."""
    runs: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def mask(cpus: Iterable[int], words: int = 1) -> str:
    """The kernel's bitmap form."""
    bits = sum(1 << cpu for cpu in set(cpus))
    return ",".join(f"{bits >> 32 * word & 0xFFFFFFFF:08x}" for word in reversed(range(words)))


@dataclass(slots=True)
class Builder:
    """Files as a kernel would show them; ``masks`` leaves out every list form, as old ones did."""

    masks: bool = False
    files: Tree = field(default_factory=dict)

    def lists(self, **lists: str) -> None:
        """``possible``, ``online``, ..."""
        for name, text in lists.items():
            self.files[f"{_CPU}/{name}"] = text + "\n"

    def cpu(self, cpu: int, core: Iterable[int], package: Iterable[int], **ids: int) -> None:
        """One online CPU with its siblings; ``ids`` are file names of the topology directory."""
        base = f"{_CPU}/cpu{cpu}/topology"
        for name, cpus in (("thread_siblings", core), ("core_siblings", package)):
            members = list(cpus)
            self.files[f"{base}/{name}"] = mask(members) + "\n"
            if not self.masks:
                new = {"thread_siblings": "core_cpus", "core_siblings": "package_cpus"}[name]
                self.files[f"{base}/{name}_list"] = ranges(members) + "\n"
                self.files[f"{base}/{new}_list"] = ranges(members) + "\n"
        for name, number in ids.items():
            self.files[f"{base}/{name}"] = f"{number}\n"

    def cache(
        self, index: int, level: int, kind: str, cpus: Iterable[int], **more: str | int
    ) -> None:
        """One instance, shown by each CPU that shares it; ``more`` are further files."""
        members = list(cpus)
        for cpu in members:
            base = f"{_CPU}/cpu{cpu}/cache/index{index}"
            rows = {"level": level, "type": kind, "shared_cpu_map": mask(members), **more}
            if not self.masks:
                rows["shared_cpu_list"] = ranges(members)
            self.files.update({f"{base}/{name}": f"{value}\n" for name, value in rows.items()})

    def private_caches(self, cores: Iterable[Iterable[int]]) -> None:
        """L1 and L2 of ordinary cores."""
        for number, core in enumerate(cores):
            members = list(core)
            self.cache(0, 1, "Data", members, id=number, size="32K", ways_of_associativity=8)
            self.cache(1, 1, "Instruction", members, id=number, size="32K")
            self.cache(2, 2, "Unified", members, id=number, size="1024K")

    def node(self, node: int, cpus: Iterable[int], memory_kb: int, distances: str) -> None:
        """One NUMA node."""
        members = list(cpus)
        base = f"{_NODE}/node{node}"
        self.files[f"{base}/cpumap"] = mask(members) + "\n"
        if not self.masks:
            self.files[f"{base}/cpulist"] = ranges(members) + "\n"
        self.files[f"{base}/meminfo"] = (
            f"\nNode {node} MemTotal:       {memory_kb} kB\nNode {node} MemFree:     1024 kB\n"
        )
        self.files[f"{base}/distance"] = distances + "\n"
        for cpu in members:
            self.files[f"{base}/cpu{cpu}"] = f"->../../cpu/cpu{cpu}"

    def nodes_online(self, online: str, memory: str) -> None:
        """The lists of the node directory."""
        self.files[f"{_NODE}/online"] = online + "\n"
        self.files[f"{_NODE}/has_memory"] = memory + "\n"

    def cpuinfo(self, text: str) -> None:
        """``/proc/cpuinfo``."""
        self.files["proc/cpuinfo"] = text


_INTEL = (
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel name\t: Example CPU\n"
    "flags\t\t: fpu lm ht cat_l3 mba\n\n"
)


def xeon_2s_smt2() -> Tree:
    """Two sockets of four cores, two threads each; the second threads are numbered last."""
    made = Builder()
    made.lists(possible="0-15", present="0-15", online="0-15", offline="", isolated="2,10")
    made.files[f"{_CPU}/nohz_full"] = "(null)\n"
    made.files[f"{_CPU}/smt/control"] = "on\n"
    made.files[f"{_CPU}/smt/active"] = "1\n"
    sockets = [[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]]
    for package, members in enumerate(sockets):
        for core_id, first in enumerate(members[:4]):
            for cpu in (first, first + 8):
                made.cpu(
                    cpu, (first, first + 8), members,
                    core_id=core_id, physical_package_id=package, die_id=0, cluster_id=65535,
                )  # fmt: skip
        made.cache(3, 3, "Unified", members, id=package, size="16384K", ways_of_associativity=11)
        made.node(package, members, 64 * _GIB, "10 21" if package == 0 else "21 10")
        pages = f"{_NODE}/node{package}/hugepages/hugepages-2048kB"
        made.files[f"{pages}/nr_hugepages"] = "16\n"
        made.files[f"{pages}/free_hugepages"] = f"{package}\n"
    made.private_caches((cpu, cpu + 8) for cpu in range(8))
    made.nodes_online("0-1", "0-1")
    made.cpuinfo(_INTEL)
    return made.files


def hybrid_pe() -> Tree:
    """Two performance cores with two threads, four efficiency cores that share an L2."""
    made = Builder()
    made.lists(possible="0-7", present="0-7", online="0-7", offline="", isolated="")
    made.files[f"{_CPU}/smt/control"] = "on\n"
    cores = [(0, 1), (2, 3), (4,), (5,), (6,), (7,)]
    for number, core in enumerate(cores):
        for cpu in core:
            made.cpu(
                cpu, core, range(8), core_id=4 * number if number < 2 else 6 + number,
                physical_package_id=0, die_id=0, cluster_id=8 * min(number, 2),
            )  # fmt: skip
            scale = f"{_CPU}/cpu{cpu}/cpufreq"
            made.files[f"{scale}/cpuinfo_max_freq"] = "5000000\n" if number < 2 else "3800000\n"
            made.files[f"{scale}/scaling_governor"] = "powersave\n"
        made.cache(0, 1, "Data", core, id=number, size="48K", ways_of_associativity=12)
    for number, sharing in enumerate([(0, 1), (2, 3), (4, 5, 6, 7)]):
        made.cache(2, 2, "Unified", sharing, id=number, size="2048K")
    made.cache(3, 3, "Unified", range(8), id=0, size="24576K", ways_of_associativity=12)
    made.node(0, range(8), 32 * _GIB, "10")
    made.nodes_online("0", "0")
    made.cpuinfo(_INTEL)
    return made.files


def snc_interleaved() -> Tree:
    """Two sockets, each cut into two nodes (SNC); CPUs are numbered round the nodes."""
    made = Builder()
    made.lists(possible="0-15", present="0-15", online="0-15", offline="", isolated="")
    for cpu in range(16):
        package = cpu % 2
        made.cpu(
            cpu, (cpu,), range(package, 16, 2),
            core_id=cpu // 2, physical_package_id=package, die_id=0,
        )  # fmt: skip
    for package in (0, 1):
        made.cache(3, 3, "Unified", range(package, 16, 2), id=package, size="22528K")
    for node, row in enumerate(("10 21 11 21", "21 10 21 11", "11 21 10 21", "21 11 21 10")):
        made.node(node, range(node, 16, 4), 16 * _GIB, row)
    made.nodes_online("0-3", "0-3")
    return made.files


def power_smt4() -> Tree:
    """An old POWER kernel: masks only, no package ids, nodes 0 and 8, one core half offline."""
    made = Builder(masks=True)
    made.lists(possible="0-15", present="0-15", online="0-9,12-15", offline="10-11")
    for first in (0, 4, 8, 12):
        running = [cpu for cpu in range(first, first + 4) if cpu not in (10, 11)]
        for cpu in running:
            made.cpu(cpu, running, running, core_id=first, physical_package_id=-1)
        made.cache(3, 3, "Unified", running, size="10240K", ways_of_associativity=0)
    for cpu in (10, 11):
        made.files[f"{_CPU}/cpu{cpu}/online"] = "0\n"
    made.node(0, range(8), 8 * _GIB, "10 40")
    made.node(8, (8, 9, 12, 13, 14, 15), 8 * _GIB, "40 10")
    made.cpuinfo("processor\t: 0\ncpu\t\t: POWER7 (architected), altivec supported\n")
    return made.files


def memory_only_nodes() -> Tree:
    """CXL memory without CPUs (2), a node with CPUs and no memory (1), one with neither (5)."""
    made = Builder()
    made.lists(possible="0-3", present="0-3", online="0-3", offline="", isolated="")
    for cpu in range(4):
        made.cpu(cpu, (cpu,), range(4), core_id=cpu, physical_package_id=0, die_id=0)
    made.cache(3, 3, "Unified", range(4), id=0, size="8192K", ways_of_associativity=16)
    made.node(0, (0, 1), 16 * _GIB, "10 12 14 20")
    made.node(1, (2, 3), 0, "12 10 24 20")
    made.node(2, (), 64 * _GIB, "14 24 10 20")
    made.node(5, (), 0, "20 20 20 10")
    made.nodes_online("0-2,5", "0,2")
    return made.files


def ids_with_holes() -> Tree:
    """CPUs 2-3 and 6-7 were never plugged; ids are huge and repeat; caches say no id."""
    made = Builder()
    made.lists(possible="0-9", present="0-1,4-5,8-9", online="0-1,4-5,8-9", offline="2-3,6-7")
    rows = ("10 20 20", "20 10 20", "20 20 10")
    for package, first in enumerate((0, 4, 8)):
        for cpu in (first, first + 1):
            made.cpu(
                cpu, (cpu,), (first, first + 1),
                core_id=cpu - first, physical_package_id=3180 * package + 36, die_id=-1,
            )  # fmt: skip
        made.cache(3, 3, "Unified", (first, first + 1), size="4096K")
        made.node(package * 3, (first, first + 1), _GIB, rows[package])
    made.nodes_online("0,3,6", "0,3,6")
    return made.files


def epyc_ccd() -> Tree:
    """One socket, one node, four core complexes of two cores, each with its own L3."""
    made = Builder()
    made.lists(possible="0-15", present="0-15", online="0-15", offline="", isolated="")
    made.files[f"{_CPU}/smt/control"] = "on\n"
    for core in range(8):
        for cpu in (core, core + 8):
            made.cpu(
                cpu, (core, core + 8), range(16), core_id=core, physical_package_id=0, die_id=0,
            )  # fmt: skip
    for ccd in range(4):
        sharing = (2 * ccd, 2 * ccd + 1, 2 * ccd + 8, 2 * ccd + 9)
        made.cache(3, 3, "Unified", sharing, id=ccd, size="32768K", ways_of_associativity=16)
    made.private_caches((core, core + 8) for core in range(8))
    made.node(0, range(16), 128 * _GIB, "10")
    made.nodes_online("0", "0")
    made.cpuinfo(_INTEL.replace("GenuineIntel", "AuthenticAMD"))
    return made.files


def arm_no_nodes() -> Tree:
    """Big and little clusters: core ids repeat, no package id, no node directory, no cache."""
    made = Builder()
    made.lists(possible="0-5", present="0-5", online="0-5", offline="", isolated="")
    made.files[f"{_CPU}/smt/control"] = "notsupported\n"
    for cpu in range(6):
        made.cpu(
            cpu, (cpu,), range(6),
            core_id=cpu % 4, physical_package_id=-1, die_id=-1, cluster_id=cpu // 4,
        )  # fmt: skip
        made.files[f"{_CPU}/cpu{cpu}/cpu_capacity"] = "446\n" if cpu < 4 else "1024\n"
    made.cpuinfo(
        "processor\t: 0\nBogoMIPS\t: 100.00\nFeatures\t: fp asimd atomics\n"
        "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd03\n"
    )
    return made.files


def s390_books() -> Tree:
    """Two drawers with one book each, package id -1, core ids that repeat, no caches."""
    made = Builder()
    made.lists(possible="0-15", present="0-5", online="0-5", offline="6-15")
    sockets = [(0, 1), (2, 3), (4, 5)]
    for number, members in enumerate(sockets):
        for cpu in members:
            made.cpu(
                cpu, (cpu,), members, core_id=number // 2, physical_package_id=-1,
                book_id=number // 2, drawer_id=number // 2,
            )  # fmt: skip
    made.cpuinfo(
        "vendor_id       : IBM/S390\n# processors    : 6\nfeatures\t: esan3 zarch stfle msa\n"
        "processor 0: version = 00,  identification = 000000,  machine = 2817\n"
    )
    return made.files


def power_smt8() -> Tree:
    """POWER9: threads of a core take turns in two L2 domains, ids step by four, three nodes."""
    made = Builder()
    made.lists(possible="0-31", present="0-31", online="0-15,24-31", offline="16-23", isolated="")
    made.files[f"{_CPU}/smt/control"] = "8\n"
    packages = [list(range(16)), list(range(24, 32))]
    for package, members in enumerate(packages):
        for first in members[::8]:
            core = range(first, first + 8)
            for cpu in core:
                made.cpu(
                    cpu, core, members,
                    core_id=first * 4, physical_package_id=8 * package, die_id=-1,
                )  # fmt: skip
            for odd in (0, 1):
                made.cache(0, 1, "Data", range(first + odd, first + 8, 2), size="32K")
                made.cache(2, 2, "Unified", range(first + odd, first + 8, 2), size="512K")
            made.cache(3, 3, "Unified", core, size="10240K")
        made.node(8 * package, members, 128 * _GIB, "10 40 80" if package == 0 else "40 10 80")
    for cpu in range(16, 24):
        made.files[f"{_CPU}/cpu{cpu}/online"] = "0\n"
    made.node(255, (), 16 * _GIB, "80 80 10")
    made.nodes_online("0,8,255", "0,8,255")
    made.cpuinfo("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n")
    made.files["proc/version"] = "Linux version 6.1 (powerpc64le-linux-gnu-gcc-12) #1 SMP\n"
    return made.files


SHAPES: Mapping[str, Callable[[], Tree]] = {
    "xeon-2s-smt2": xeon_2s_smt2,
    "hybrid-pe": hybrid_pe,
    "snc-interleaved": snc_interleaved,
    "power-smt4": power_smt4,
    "power-smt8": power_smt8,
    "memory-only-nodes": memory_only_nodes,
    "ids-with-holes": ids_with_holes,
    "epyc-ccd": epyc_ccd,
    "arm-no-nodes": arm_no_nodes,
    "s390-books": s390_books,
}


def to_directory(tree: Tree, top: Path) -> Path:
    """The tree as files below a directory."""
    for name, content in tree.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("->"):
            path.symlink_to(content[2:])
        else:
            path.write_text(content, encoding="utf-8")
    return top


def to_index(tree: Tree) -> tarindex.ArchiveEntry:
    """The tree as an archive's index, without an archive."""
    top = tarindex.ArchiveEntry(root.FileKind.DIRECTORY, inode=1)
    for name, content in tree.items():
        here = top
        *folders, last = name.split("/")
        for part in folders:
            here = here.children.setdefault(
                part, tarindex.ArchiveEntry(root.FileKind.DIRECTORY, inode=2)
            )
        entry = tarindex.ArchiveEntry(
            root.FileKind.FILE, inode=3, data=content.encode("utf-8", "replace")
        )
        if content.startswith("->"):
            entry = tarindex.ArchiveEntry(root.FileKind.LINK, inode=3, link=content[2:])
        here.children[last] = entry
    return top


def to_host(tree: Tree) -> root.HostRoot:
    """A machine that answers from the tree, without a disk."""
    return archive.ArchiveHost(to_index(tree))


def to_archive(tree: Tree) -> bytes:
    """The tree as a gzip tar without anything of the machine or time that made it."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for name in sorted(tree):
            member = tarfile.TarInfo(name)
            content = tree[name].encode()
            if content.startswith(b"->"):
                member.type, member.linkname = tarfile.SYMTYPE, content[2:].decode()
                out.addfile(member)
            else:
                member.size = len(content)
                out.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def main(top: Path) -> None:
    """Write the archives."""
    for name, shape in SHAPES.items():
        (top / f"{name}.tar.gz").write_bytes(to_archive(shape()))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "fixtures/sysfs"))
