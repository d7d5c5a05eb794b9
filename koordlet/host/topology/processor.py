"""One CPU: what its own directory says, before CPUs are compared.

Covers: sibling sets with their fallbacks, raw ids, capacity, frequency, governor.
Does not cover: caches (``caches``), what the sets of all CPUs add up to (``discovery``).

Kernel facts (Documentation/admin-guide/cputopology.rst): ``core_cpus``/``package_cpus`` are 5.3
names of ``thread_siblings``/``core_siblings``; the ``_list`` forms came with 2.6.26; an offline CPU
usually has no topology directory; ``cpu_capacity`` exists where CPUs differ.
"""

from __future__ import annotations

from koordlet.host.fs import sysfs
from koordlet.model import cpuset, topology
from koordlet.model.record import dataclass

DIR = "devices/system/cpu"

#: In order of preference; each is a bitmap, and a list where the kernel has one.
_CORE = ("core_cpus", "thread_siblings")
_SOCKET = ("package_cpus", "core_siblings")


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """The files of one CPU as values. Sets are cut to online CPUs, and contain the CPU itself."""

    #: Its raw ids and properties; the rest of the row follows from all CPUs.
    row: topology.Cpu
    core: cpuset.CPUSet | None = None
    socket: cpuset.CPUSet | None = None
    #: From the links ``cpuN/nodeM``; one on a sane machine.
    nodes: tuple[int, ...] = ()
    has_cache: bool = False


NOTHING = Raw(row=topology.Cpu(cpu=-1))


def read(reader: sysfs.SysfsReader, cpu: int, online: cpuset.CPUSet) -> Raw:
    """Read one CPU. Directories are listed first: a miss costs more than a name in a list."""
    base = f"{DIR}/cpu{cpu}"
    at = reader.host.sys
    names = frozenset(reader.names(at(base)))
    where = f"{base}/topology"
    inside = frozenset(reader.names(at(where))) if "topology" in names else frozenset[str]()
    running = cpu in online
    scaled = running and "cpufreq" in names

    def ident(name: str) -> int | None:
        return reader.ident(at(where, name)) if name in inside else None

    def siblings(stems: tuple[str, str]) -> cpuset.CPUSet | None:
        forms = ((f"{stem}{end}", not end) for stem in stems for end in ("_list", ""))
        usable = [form for form in forms if form[0] in inside] if running else []
        return reader.siblings(cpu, where, usable, online)

    return Raw(
        core=siblings(_CORE),
        socket=siblings(_SOCKET),
        row=topology.Cpu(
            cpu=cpu,
            core_id=ident("core_id"),
            package_id=ident("physical_package_id"),
            die_id=ident("die_id"),
            cluster_id=ident("cluster_id"),
            book_id=ident("book_id"),
            drawer_id=ident("drawer_id"),
            capacity=reader.integer(at(base, "cpu_capacity")) if "cpu_capacity" in names else None,
            max_khz=reader.integer(at(base, "cpufreq", "cpuinfo_max_freq")) if scaled else None,
            governor=_word(reader, f"{base}/cpufreq/scaling_governor") if scaled else None,
        ),
        nodes=tuple(sysfs.numbered(names, "node")),
        has_cache=running and "cache" in names,
    )


def _word(reader: sysfs.SysfsReader, where: str) -> str | None:
    """One short word, such as the name of a governor."""
    path = reader.host.sys(where)
    text = reader.text(path)
    if not text:
        return None
    if len(text) <= 32 and text.isascii() and text.isprintable() and " " not in text:
        return text
    reader.damage(path, text, "not a name")
    return None
