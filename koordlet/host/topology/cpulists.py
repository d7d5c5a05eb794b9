"""Present and online CPUs.

Covers: possible, present, online, offline, isolated, nohz_full, each with its fallbacks.
Does not cover: how they are connected (``discovery``).

Kernel facts: the lists came with 2.6.27, ``isolated`` with 4.1; ``nohz_full`` prints ``(null)``
when unset; ``offline`` also names CPUs that can never be; ``cpuN/online`` is missing for a CPU that
cannot be taken offline.
"""

from __future__ import annotations

from koordlet.host.fs import sysfs
from koordlet.host.topology import cpuinfo
from koordlet.model import cpuset, topology

_DIR = "devices/system/cpu"


def scan(reader: sysfs.SysfsReader) -> tuple[topology.Topology, cpuset.CPUSet]:
    """The sets alone of a machine, made consistent: online CPUs are present, present ones possible.

    Beside them the CPUs that have a directory. What is missing in the lists comes from these, then
    from cpuinfo.
    """
    listed = sysfs.numbered(reader.names(reader.host.sys(_DIR)), "cpu")
    possible = _some(reader, "possible")
    present = _some(reader, "present") or listed or possible
    online = _online(reader, listed)
    if not present:
        present = online or cpuset.CPUSet.of(cpuinfo.processors(reader))
        reader.warn(f"/sys/{_DIR}: lists no CPU; {len(present)} found elsewhere")
    online = present if online is None else _agree(reader, online, present, listed)
    present |= online
    if possible is not None and present - possible:
        reader.damage(
            reader.host.sys(_DIR, "possible"), str(possible), f"lacks the CPUs {present - possible}"
        )
    possible = present if possible is None else possible | present
    lists = topology.Topology(
        possible=possible,
        present=present,
        online=online,
        offline=_offline(reader, possible, online),
        isolated=_isolated(reader),
        nohz_full=_optional(reader, "nohz_full") or cpuset.CPUSet(),
    )
    return lists, listed


def raw(reader: sysfs.SysfsReader, name: str) -> cpuset.CPUSet | None:
    """One file alone, for noticing a change cheaply."""
    return reader.cpus(reader.host.sys(_DIR, name))


def _some(reader: sysfs.SysfsReader, name: str) -> cpuset.CPUSet | None:
    """A list that cannot be empty on a machine that runs."""
    path = reader.host.sys(_DIR, name)
    cpus = reader.cpus(path)
    if cpus is not None and not cpus:
        reader.damage(path, "", "names no CPU")
        return None
    return cpus


def _online(reader: sysfs.SysfsReader, listed: cpuset.CPUSet) -> cpuset.CPUSet | None:
    online = _some(reader, "online")
    if online is not None or not listed:
        return online
    bits = 0
    for cpu in listed:
        path = reader.host.sys(_DIR, f"cpu{cpu}", "online")
        text = reader.text(path)
        if text not in (None, "0", "1"):
            reader.damage(path, text or "", "neither 0 nor 1")
        if text != "0":
            bits |= 1 << cpu
    return cpuset.CPUSet(bits)


def _agree(
    reader: sysfs.SysfsReader, online: cpuset.CPUSet, present: cpuset.CPUSet, listed: cpuset.CPUSet
) -> cpuset.CPUSet:
    """Online CPUs that nothing else knows of are not there."""
    strange = online - present
    if not strange:
        return online
    reader.damage(reader.host.sys(_DIR, "online"), str(online), f"CPUs {strange} are not present")
    return online & (present | listed)


def _offline(
    reader: sysfs.SysfsReader, possible: cpuset.CPUSet, online: cpuset.CPUSet
) -> cpuset.CPUSet:
    offline = _optional(reader, "offline")
    if offline is None:
        return possible - online
    if offline & online:
        reader.damage(
            reader.host.sys(_DIR, "offline"), str(offline), f"CPUs {offline & online} are online"
        )
        return possible - online
    return offline


def _optional(reader: sysfs.SysfsReader, name: str) -> cpuset.CPUSet | None:
    path = reader.host.sys(_DIR, name)
    if reader.text(path) == "(null)":
        return cpuset.CPUSet()
    return reader.cpus(path)


def _isolated(reader: sysfs.SysfsReader) -> cpuset.CPUSet:
    """The file, or on older kernels the boot parameter."""
    isolated = _optional(reader, "isolated")
    if isolated is not None:
        return isolated
    for word in (reader.text(reader.host.proc("cmdline")) or "").split():
        if word.startswith("isolcpus="):
            # Flags such as "domain,managed_irq," come before the list.
            items = [part for part in word[9:].split(",") if part[:1].isdigit()]
            try:
                return cpuset.CPUSet.parse(",".join(items))
            except ValueError:
                reader.damage(reader.host.proc("cmdline"), word, "not a CPU list")
    return cpuset.CPUSet()
