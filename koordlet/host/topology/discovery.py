"""Discovery of the machine, straight from sysfs: scanners in order, one immutable value.

Covers: the order of the scanners, cores and sockets from what the CPUs say, a cheap look for
change. Does not cover: the CPU lists (``cpulists``), one CPU (``processor``),
caches (``caches``), NUMA nodes (``numa_nodes``), PCI devices (``devices``), cpuinfo
(``cpuinfo``).

Rules:
1. The kernel's sibling sets decide, cut to online CPUs. Ids repeat across packages and core types,
   are -1 or missing: they only serve where no sibling file does.
2. Nothing in the files raises. What cannot be known is ``None``, with a warning that says why.
3. Each file is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from koordlet.host.fs import root, sysfs
from koordlet.host.topology import (
    caches,
    cpu_groups,
    cpuinfo,
    cpulists,
    devices,
    numa_nodes,
    processor,
)
from koordlet.model import cpuset, topology

_SMT = frozenset({"on", "off", "forceoff", "notsupported", "notimplemented"})


#: Result of comparing the CPUs, by field of ``topology.Cpu``: a number for each CPU that has one.
_Columns = Mapping[str, Mapping[int, int]]
#: Columns that are unknown for some CPUs are named so.
_NAMED = {"core": "core", "socket": "socket", "l3": "L3", "node": "NUMA node"}


def discover(host: root.HostRoot) -> topology.Topology:
    """Read everything. Never raises for what the files hold."""
    reader = sysfs.SysfsReader(host)
    lists, listed = cpulists.scan(reader)
    cache_scan = caches.Scan(reader, lists.online)
    raws: dict[int, processor.Raw] = {}
    for cpu in lists.present & listed:
        raws[cpu] = processor.read(reader, cpu, lists.online)
        if raws[cpu].has_cache:
            cache_scan.add(cpu)
    _fill_from_cpuinfo(reader, raws, lists.online)
    nodes, memory_nodes = numa_nodes.scan(reader)
    instances, l3_columns = cache_scan.finish()
    columns = _compare(reader, raws, lists.online, l3_columns, nodes)
    info = cpuinfo.read(reader)
    return replace(
        lists,
        cpus=tuple(
            _cpu(cpu, raws.get(cpu, processor.NOTHING), columns, online=cpu in lists.online)
            for cpu in lists.present
        ),
        nodes=tuple(_without_others(node, columns["node"]) for node in nodes),
        caches=instances,
        devices=devices.scan(reader),
        memory_nodes=memory_nodes,
        smt=_smt(reader),
        turbo=_turbo(reader),
        vendor=info.vendor,
        model_name=info.model_name,
        arch=info.arch,
        flags=info.flags,
        warnings=reader.warnings(),
        unread=frozenset(reader.unread),
    )


def first(host: root.HostRoot) -> topology.Topology:
    """Read everything, for the first time; ``HostError`` where there was no room for questions.

    A file that is broken costs what it says. A machine without CPUs there is not.
    """
    shape = discover(host)
    silent = host.silence.so_far()
    if any(host.silence.is_short(error.errno) for error in silent) or (silent and not shape.online):
        raise host.silence.problem()
    return shape


def rescan(host: root.HostRoot, previous: topology.Topology) -> topology.Topology:
    """Rescan; returns the same object if CPUs and nodes are unchanged, after three reads."""
    reader = sysfs.SysfsReader(host)
    node_ids = reader.cpus(host.sys("devices", "system", "node", "online"))
    if (
        cpulists.raw(reader, "online") == previous.online
        and cpulists.raw(reader, "present") == previous.present
        and (node_ids or cpuset.CPUSet()) == cpuset.CPUSet.of(node.node for node in previous.nodes)
        and not _answers(reader, previous.unread)
    ):
        return previous
    if reader.unread - previous.unread:
        return previous
    fresh = discover(host)
    if not fresh.unread <= previous.unread:
        fresh = _held(host, previous, fresh)
    # A machine whose files contradict each other is read anew each time, and stays the same.
    return previous if fresh == previous else fresh


def renew(host: root.HostRoot, previous: topology.Topology) -> topology.Topology:
    """Read what changes without a CPU that comes or goes: memory, huge pages, devices, turbo.

    The same object if nothing did, or if a read got no answer.
    """
    reader = sysfs.SysfsReader(host)
    nodes, memory_nodes = numa_nodes.amounts(reader, previous.nodes)
    fresh = replace(
        previous,
        nodes=nodes,
        memory_nodes=memory_nodes,
        devices=devices.scan(reader),
        turbo=_turbo(reader),
    )
    return previous if reader.unread - previous.unread or fresh == previous else fresh


def _answers(reader: sysfs.SysfsReader, unread: Iterable[str]) -> bool:
    """True if a file that did not answer answers now."""
    silent = len(reader.unread)
    for path in unread:
        reader.text(reader.host.at(path))
        if len(reader.unread) == silent:
            return True
        silent = len(reader.unread)
    return False


def _held(
    host: root.HostRoot, previous: topology.Topology, fresh: topology.Topology
) -> topology.Topology:
    """Previous topology without removed CPUs; new CPUs wait for a full read.

    The columns of two looks do not mix: their numbers of cores and sockets are dense.
    """
    if str(host.sys(processor.DIR, "online")) in fresh.unread:
        return previous
    gone = previous.online - fresh.online
    lost: dict[str, Any] = dict.fromkeys(("core", "socket", "node", "l3", "l3_id"), None)
    online = previous.online - gone
    return replace(
        previous,
        online=online,
        offline=previous.offline | gone,
        cpus=tuple(
            replace(cpu, online=False, **lost) if cpu.cpu in gone else cpu for cpu in previous.cpus
        ),
        nodes=tuple(replace(node, cpus=node.cpus - gone) for node in previous.nodes),
        caches=tuple(
            replace(cache, cpus=cache.cpus - gone) for cache in previous.caches if cache.cpus - gone
        ),
    )


def _fill_from_cpuinfo(
    reader: sysfs.SysfsReader, raws: dict[int, processor.Raw], online: cpuset.CPUSet
) -> None:
    """Ids from cpuinfo for online CPUs of which sysfs says nothing at all."""
    bare = [
        cpu
        for cpu in online
        if (raw := raws.get(cpu, processor.NOTHING)).core is None
        and raw.socket is None
        and raw.row.core_id is None
        and raw.row.package_id is None
    ]
    if not bare:
        return
    ids = cpuinfo.processors(reader)
    for cpu in bare:
        if cpu in ids and ids[cpu].physical is not None:
            raw = raws.get(cpu, processor.NOTHING)
            row = replace(raw.row, package_id=ids[cpu].physical, core_id=ids[cpu].core)
            raws[cpu] = replace(raw, row=row)


# Comparing CPUs ---------------------------------------------------------------------------------


def _compare(
    reader: sysfs.SysfsReader,
    raws: Mapping[int, processor.Raw],
    online: cpuset.CPUSet,
    l3_columns: _Columns,
    nodes: Sequence[topology.Node],
) -> _Columns:
    sockets = {cpu: raw.socket for cpu, raw in raws.items() if cpu in online}
    packages = {cpu: _package(raw.row) for cpu, raw in raws.items()}
    socket = _number(reader, "socket", sockets, packages)
    cores = {cpu: raw.core for cpu, raw in raws.items() if cpu in online}
    core_keys = {cpu: _core(raw.row, socket.get(cpu)) for cpu, raw in raws.items()}
    core = _number(reader, "core", cores, core_keys)
    node = _node_of(reader, raws, nodes)
    columns = {"core": core, "socket": socket, **l3_columns, "node": node}
    _explain(reader, columns, online, has_nodes=bool(nodes))
    return columns


def _number(
    reader: sysfs.SysfsReader,
    what: str,
    sets: Mapping[int, cpuset.CPUSet | None],
    keys: Mapping[int, tuple[int | None, ...] | None],
) -> Mapping[int, int]:
    """Number groups by sibling sets; CPUs in no set are grouped by their ids."""
    claims = {cpu: cpus for cpu, cpus in sets.items() if cpus is not None}
    named = cpuset.union(claims.values())
    by_key: dict[tuple[int | None, ...], list[int]] = {}
    for cpu, cpus in sets.items():
        key = keys[cpu]
        if cpus is None and key is not None and cpu not in named:
            by_key.setdefault(key, []).append(cpu)
    for members in by_key.values():
        claims.update(dict.fromkeys(members, cpuset.CPUSet.of(members)))
    formed = cpu_groups.form(claims)
    for cpu in formed.refused:
        reader.warn(
            f"/sys/{processor.DIR}/cpu{cpu}/topology: its {what} is '{claims[cpu]}',"
            " which other CPUs contradict"
        )
    return _by_ids(formed, keys) if formed.refused else formed.number


def _by_ids(
    formed: cpu_groups.Groups, keys: Mapping[int, tuple[int | None, ...] | None]
) -> Mapping[int, int]:
    """CPUs whose set was refused, by their ids: into the one group that has these, or a new one."""
    number = dict(formed.number)
    having: dict[tuple[int | None, ...], set[int]] = {}
    for cpu, group in formed.number.items():
        key = keys.get(cpu)
        if key is not None:
            having.setdefault(key, set()).add(group)
    made: dict[tuple[int | None, ...], int] = {}
    for cpu in formed.refused:
        key = keys.get(cpu)
        known = having.get(key, set()) if key is not None else set()
        if key is None or len(known) > 1:
            continue
        free = len(formed.number) + len(made)
        number[cpu] = next(iter(known)) if known else made.setdefault(key, free)
    return cpu_groups.dense(number)


def _package(row: topology.Cpu) -> tuple[int | None, ...] | None:
    return None if row.package_id is None else (row.drawer_id, row.book_id, row.package_id)


def _core(row: topology.Cpu, socket: int | None) -> tuple[int | None, ...] | None:
    if row.core_id is None:
        return None
    return (socket, row.drawer_id, row.book_id, row.package_id, row.die_id, row.core_id)


def _node_of(
    reader: sysfs.SysfsReader, raws: Mapping[int, processor.Raw], nodes: Sequence[topology.Node]
) -> Mapping[int, int]:
    """The node of each CPU; its own link serves where no node names it, or more than one.

    Without a link it is where the other threads of its core are.
    """
    owner, claims = numa_nodes.assign(reader, nodes)
    sure = dict(owner)
    for cpu, claimed in claims.items():
        raw = raws.get(cpu, processor.NOTHING)
        linked = claimed.intersection(raw.nodes)
        mates = claimed.intersection(sure[sibling] for sibling in raw.core or () if sibling in sure)
        for candidates in (linked, mates):
            if len(candidates) == 1:
                owner.setdefault(cpu, *candidates)
    named = cpuset.union(node.cpus for node in nodes)
    ids = {node.node for node in nodes}
    for cpu, raw in raws.items():
        if cpu not in named and len(raw.nodes) == 1 and raw.nodes[0] in ids:
            owner[cpu] = raw.nodes[0]
    return owner


def _without_others(node: topology.Node, owner: Mapping[int, int]) -> topology.Node:
    """A node without the CPUs that turned out to be another's."""
    others = cpuset.CPUSet.of(cpu for cpu in node.cpus if owner.get(cpu, node.node) != node.node)
    return replace(node, cpus=node.cpus - others) if others else node


def _explain(
    reader: sysfs.SysfsReader, columns: _Columns, online: cpuset.CPUSet, *, has_nodes: bool
) -> None:
    """One line for each column that stays unknown for online CPUs."""
    if not has_nodes:
        reader.warn("/sys/devices/system/node: has no nodes; CPUs have no NUMA node")
    for name, what in _NAMED.items():
        missing = cpuset.CPUSet.of(cpu for cpu in online if cpu not in columns[name])
        if missing and (has_nodes or name != "node"):
            reader.warn(f"/sys/{processor.DIR}: {what} unknown for CPUs {missing}")


def _cpu(cpu: int, raw: processor.Raw, columns: _Columns, *, online: bool) -> topology.Cpu:
    """One row; an offline CPU keeps only what its own files say."""
    numbers: dict[str, Any] = {name: column.get(cpu) for name, column in columns.items()}
    return replace(raw.row, cpu=cpu, online=online, **(numbers if online else {}))


def _smt(reader: sysfs.SysfsReader) -> str | None:
    at = reader.host.sys
    path = at(processor.DIR, "smt", "control")
    text = reader.text(path)
    if text in _SMT:
        return text
    if text is not None and text.isdigit():
        # Where threads can be switched one by one (6.6), the number that run per core.
        return "on"
    if text is not None:
        reader.damage(path, text, "not a state of SMT")
    # ``active`` says 0 both for "off" and for "never had it".
    return "on" if reader.text(at(processor.DIR, "smt", "active")) == "1" else None


def _turbo(reader: sysfs.SysfsReader) -> bool | None:
    """Whether turbo is allowed (Documentation/admin-guide/pm/{cpufreq,intel_pstate}.rst).

    ``boost`` is there with the drivers that have one switch for all CPUs, but not with
    ``intel_pstate``, whose switch says the opposite.
    """
    at = reader.host.sys
    for place, allowed in ((("cpufreq", "boost"), "1"), (("intel_pstate", "no_turbo"), "0")):
        text = reader.text(at(processor.DIR, *place))
        if text in ("0", "1"):
            return text == allowed
    return None
