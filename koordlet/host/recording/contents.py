"""Contents of a recording: only the files that the agent reads.

Covers: which files and links below /sys, /proc and the cgroup mounts, as a stream of items.
Does not cover: what must not leave the machine (``redaction``), writing the archive
(``cli.record``).

Rules:
1. Names are allowed, not forbidden: a file that nobody thought of is not recorded. So no serial
   numbers (``topology/ppin``), no addresses (``crash_notes``), no environment, no MAC addresses.
2. A file that cannot be read, or vanished, is left out, as it would be missing for the agent.
3. A link is kept as a link, if it stays inside the recorded tree.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator

from koordlet.host.cgroup import hierarchies
from koordlet.host.fs import root
from koordlet.host.recording import redaction
from koordlet.host.topology import devices
from koordlet.model.record import dataclass

#: More than ``tarindex`` accepts would be unreadable.
MAX_ITEMS = 150_000
_MAX_DEPTH = 32
_MAX_FILE = 4 << 20

_CPU_FILE = re.compile(
    r"(?:possible|present|online|offline|isolated|nohz_full|kernel_max|smt/\w+|cpufreq/boost|intel_pstate/no_turbo"
    r"|cpu\d+/(?:online|cpu_capacity|node\d+|cpufreq"
    r"|topology/(?:\w+_id|\w+_siblings(?:_list)?|\w+_cpus(?:_list)?)"
    r"|cache/index\d+/(?:id|level|size|type|ways_of_associativity|shared_cpu_\w+"
    r"|coherency_line_size|number_of_sets|physical_line_partition))"
    r"|cpufreq/policy\d+/(?:cpuinfo_m\w+_freq|scaling_m\w+_freq|scaling_governor|scaling_driver"
    r"|related_cpus|affected_cpus|base_frequency))\Z"
)
_NODE_FILE = re.compile(
    r"(?:possible|online|has_\w+|node\d+/(?:cpulist|cpumap|meminfo|distance|numastat|vmstat"
    r"|cpu\d+|hugepages/hugepages-\d+kB/(?:nr|free|surplus)_hugepages"
    r"|access\d/initiators/(?:read|write)_(?:latency|bandwidth)|memory_side_cache/index\d+/size))\Z"
)
_CONTROL_FILE = re.compile(
    r"(?:cgroup|cpu|cpuset|cpuacct|memory|io|blkio|pids|hugetlb|misc|rdma)\.[\w.-]+\Z|tasks\Z"
)
#: Slow for the kernel to print, or a wait rather than a value.
_SLOW = frozenset(
    {"memory.kmem.slabinfo", "memory.pressure_level", "cgroup.event_control", "memory.reclaim"}
)
_RESCTRL_FILE = re.compile(r"(?!.*(?:^|/)(?:mbm_\w+_config|rmid|closid)\Z).+\Z")
_NET_FILE = re.compile(r"(?:operstate|speed|mtu|type|flags)\Z")
_PCI_FILES = ("class", "vendor", "device", "numa_node")
_PROC = (
    "cgroups",
    "cmdline",
    "cpuinfo",
    "diskstats",
    "filesystems",
    "loadavg",
    "meminfo",
    "pressure/cpu",
    "pressure/io",
    "pressure/irq",
    "pressure/memory",
    "self/cgroup",
    "self/mountinfo",
    "stat",
    "uptime",
    "version",
    "vmstat",
    "sys/kernel/arch",
    "sys/kernel/osrelease",
    "sys/kernel/ostype",
    "sys/kernel/pid_max",
    "sys/kernel/threads-max",
    "sys/kernel/numa_balancing",
    "sys/kernel/random/boot_id",
    "sys/vm/overcommit_memory",
    "sys/vm/swappiness",
    "sys/vm/zone_reclaim_mode",
)


@dataclass(frozen=True, slots=True)
class Item:
    """A file with its redacted content, or a link with its text."""

    path: root.HostPath
    data: bytes
    link: str | None = None


def items(host: root.HostRoot) -> Iterator[Item]:
    """Everything to record now; each path once."""
    seen: set[root.HostPath] = set()
    for item in _all(host):
        if item.path not in seen:
            seen.add(item.path)
            yield item
            if len(seen) >= MAX_ITEMS:
                return


def _all(host: root.HostRoot) -> Iterator[Item]:
    for name in _PROC:
        yield from _file(host, host.proc(*name.split("/")))
    yield from _tree(host, host.sys("devices/system/cpu"), _CPU_FILE.match)
    yield from _tree(host, host.sys("devices/system/node"), _NODE_FILE.match)
    yield from _cgroups(host)
    yield from _tree(host, host.sys("fs/resctrl"), _RESCTRL_FILE.match)
    yield from _network(host)
    yield from _linked(host, host.sys("bus", "pci", "devices"), lambda _: _PCI_FILES, "driver")
    yield from _names_of_devices(host)


def _tree(
    host: root.HostRoot, top: root.HostPath, wanted: Callable[[str], object], below: str = ""
) -> Iterator[Item]:
    """The wanted files and links of a tree; links are not descended."""
    if below.count("/") > _MAX_DEPTH:
        return
    for name in _names(host, root.HostRoot.below(top, below)):
        inside = f"{below}/{name}" if below else name
        path = root.HostRoot.below(top, inside)
        kind = _kind(host, path)
        if kind is root.FileKind.DIRECTORY:
            yield from _tree(host, top, wanted, inside)
        elif kind is root.FileKind.LINK and wanted(inside):
            yield from _link(host, path)
        elif kind is root.FileKind.FILE and wanted(inside):
            yield from _file(host, path)


def _cgroups(host: root.HostRoot) -> Iterator[Item]:
    mounts = sorted({hierarchy.mount for hierarchy in hierarchies.discover(host).hierarchies})
    for parent in sorted({posixpath.dirname(mount) for mount in mounts}):
        # On v1 ``cpu`` is a link to ``cpu,cpuacct`` beside it.
        for name in _names(host, host.at(parent)):
            path = root.HostRoot.below(host.at(parent), name)
            if _kind(host, path) is root.FileKind.LINK and parent.startswith("/sys/fs/cgroup"):
                yield from _link(host, path)
    for mount in mounts:
        yield from _groups(host, host.at(mount), 0)


def _groups(host: root.HostRoot, group: root.HostPath, depth: int) -> Iterator[Item]:
    """One group and those below it. Names tell most files from groups: no ``stat`` for those."""
    for name in _names(host, group):
        path = root.HostRoot.below(group, name)
        if _CONTROL_FILE.match(name):
            if name not in _SLOW:
                yield from _file(host, path)
        elif depth < _MAX_DEPTH and _kind(host, path) is root.FileKind.DIRECTORY:
            yield from _groups(host, path, depth + 1)


def _network(host: root.HostRoot) -> Iterator[Item]:
    """The links of the interfaces, what they say of themselves, the node of their device."""

    def leaves(target: root.HostPath) -> Iterable[str]:
        return filter(_NET_FILE.match, _names(host, target))

    return _linked(host, host.sys("class", "net"), leaves, "device")


def _linked(
    host: root.HostRoot,
    folder: root.HostPath,
    leaves: Callable[[root.HostPath], Iterable[str]],
    beside: str,
) -> Iterator[Item]:
    """The links of a folder, some files of what each leads to, and a link there."""
    for name in _names(host, folder):
        path = root.HostRoot.below(folder, name)
        if _kind(host, path) is not root.FileKind.LINK:
            continue
        yield from _link(host, path)
        target = _target(path, host.readlink(path))
        if target is None:
            continue
        for leaf in leaves(target):
            yield from _file(host, root.HostRoot.below(target, leaf))
        further = root.HostRoot.below(target, beside)
        if _kind(host, further) is root.FileKind.LINK:
            yield from _link(host, further)


def _names_of_devices(host: root.HostRoot) -> Iterator[Item]:
    """The links by which ``host.topology.devices`` finds what a device is called."""
    for folder, wanted in devices.CLASSES:
        for name in _names(host, host.sys("class", folder)):
            path = host.sys("class", folder, name)
            if wanted.match(name) and _kind(host, path) is root.FileKind.LINK:
                yield from _link(host, path)


# One thing --------------------------------------------------------------------------------------


def _file(host: root.HostRoot, path: root.HostPath) -> Iterator[Item]:
    try:
        if not host.live and host.stat(path).kind is not root.FileKind.FILE:
            return
        data = host.read(path)
    except OSError:
        return
    if len(data) <= _MAX_FILE:
        yield Item(path, redaction.redact(path, data))


def _link(host: root.HostRoot, path: root.HostPath) -> Iterator[Item]:
    try:
        text = host.readlink(path)
    except OSError:
        return
    if _target(path, text) is not None:
        yield Item(path, b"", text)


def _target(path: root.HostPath, text: str) -> root.HostPath | None:
    """Target of a link; ``None`` if it is outside the recorded tree."""
    depth = 0 if text.startswith("/") else path.count("/") - 1
    for step in text.split("/"):
        depth += (step not in ("", ".", "..")) - (step == "..")
        if depth < 0:
            return None
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
    return root.HostPath(end) if end.startswith(("/sys/", "/proc/")) else None


def _names(host: root.HostRoot, path: root.HostPath) -> list[str]:
    try:
        return host.list(path)
    except OSError:
        return []


def _kind(host: root.HostRoot, path: root.HostPath) -> root.FileKind:
    try:
        return host.stat(path, follow=False).kind
    except OSError:
        return root.FileKind.OTHER
