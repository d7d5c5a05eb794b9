"""Builds a stand-in machine: hardware, cgroup mounts, sysfs, procfs.

Covers: the three ways Linux mounts cgroups (v1, v2, hybrid) and the shape of the machine.
Does not cover: what the mounted file systems do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from koordlet.model.cpuset import CPUSet
from tests.kit.kernel import procfs, sysfs
from tests.kit.kernel.block import Blkio1, Io2
from tests.kit.kernel.cgroup1 import Bare, Hierarchy1, Pids
from tests.kit.kernel.cgroup2 import Hierarchy2
from tests.kit.kernel.cpu import Cpu1, Cpu2, Cpuacct
from tests.kit.kernel.cpuset1 import Cpuset1
from tests.kit.kernel.cpuset2 import Cpuset2
from tests.kit.kernel.group import Controller, Hierarchy
from tests.kit.kernel.hardware import Hardware, hardware
from tests.kit.kernel.host import KernelHost
from tests.kit.kernel.memory import Memory1, Memory2
from tests.kit.kernel.resctrl import Resctrl
from tests.kit.kernel.resctrl_wish import Wish
from tests.kit.kernel.tree import Directory, Link, ReadOnly, Tree

Cgroup = Literal["v1", "v2", "hybrid"]

ROOT = "/sys/fs/cgroup"
#: How systemd mounts v1: which controllers share a hierarchy.
JOINED = ("cpuset", "cpu,cpuacct", "memory", "pids", "freezer", "blkio", "devices")
SEPARATE = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")
#: All controllers of v2 in the kernel's order (``cgroup_subsys.h``).
UNIFIED = ("cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma", "misc")


def Machine(  # noqa: N802 - reads as a noun in tests; each property is independent
    cpus: str = "0-7",
    nodes: Mapping[int, str] | None = None,
    *,
    cgroup: Cgroup = "v1",
    memory_nodes: str | None = None,
    possible: str | None = None,
    present: str | None = None,
    threads: int = 1,
    split: bool = False,
    node_bytes: int = 16 << 30,
    kernel: tuple[int, int] = (6, 1),
    joined: bool = True,
    passed_down: Iterable[str] = UNIFIED,
    rdt: str | None = None,
    l3: Mapping[int, str] | None = None,
) -> KernelHost:
    """A machine that answers as a kernel would.

    ``cpus`` are online; ``threads`` and ``split`` number the siblings; ``joined`` mounts v1 as
    systemd does (``cpu,cpuacct`` with links) instead of one mount per controller; ``passed_down``
    is the v2 root's ``cgroup.subtree_control``. ``rdt`` gives resource control, in the words of
    ``resctrl.Wish``, not yet mounted; ``l3`` are its domains (one for each node unless told).
    """
    shape = hardware(
        cpus,
        nodes,
        memory_nodes=memory_nodes,
        possible=possible,
        present=present,
        threads=threads,
        split=split,
        node_bytes=node_bytes,
        kernel=kernel,
    )
    if cgroup == "v2":
        mounts = {ROOT: _unified(shape, passed_down)}
    else:
        mounts = _legacy(shape, JOINED if joined else SEPARATE)
    if cgroup == "hybrid":
        mounts[f"{ROOT}/unified"] = Hierarchy2((), kernel)
    wish = None if rdt is None else Wish.parse(rdt)
    if wish is not None:
        shape.vendor, shape.flags = wish.vendor, wish.flags
        shape.file_systems = ("resctrl",)
    host = _assemble(shape, mounts)
    if wish is not None:
        domains = {domain: CPUSet.parse(text) for domain, text in l3.items()} if l3 else None
        host.resctrl = Resctrl(wish, shape, host.processes, domains)
        host.tree.directory("/sys/fs/resctrl")
    return host


def _assemble(shape: Hardware, mounts: dict[str, Hierarchy]) -> KernelHost:
    tree = Tree()
    tree.directory("/sys/fs")
    _mount(tree, mounts)
    host = KernelHost(shape, tree, list(mounts.values()))
    host.mounts = mounts
    host.mount_table = _mount_table(mounts)
    procfs.build(tree, shape, host.processes, host.mount_table)
    sysfs.build(tree, shape, host.set_online)
    host.on_hotplug = lambda: sysfs.refresh(tree, shape)
    for name in ("etc", "dev", "run", "var", "tmp"):
        tree.directory(f"/{name}")
    return host


def _unified(shape: Hardware, passed_down: Iterable[str]) -> Hierarchy:
    real: dict[str, Controller] = {
        "cpuset": Cpuset2(shape),
        "cpu": Cpu2(shape.kernel),
        "memory": Memory2(shape.kernel),
        "pids": Pids(),
        "io": Io2(shape),
    }
    hierarchy = Hierarchy2((real.get(name) or Bare(name) for name in UNIFIED), shape.kernel)
    words = " ".join(f"+{name}" for name in passed_down)
    hierarchy.pass_down(hierarchy.root, words)
    return hierarchy


def _legacy(shape: Hardware, mounts: Iterable[str]) -> dict[str, Hierarchy]:
    made: dict[str, Hierarchy] = {}
    for number, names in enumerate(mounts, start=1):
        controllers = [_controller1(name, shape) for name in names.split(",")]
        made[f"{ROOT}/{names}"] = Hierarchy1(number, names, controllers)
    made[f"{ROOT}/systemd"] = Hierarchy1(len(made) + 1, "name=systemd", ())
    return made


def _controller1(name: str, shape: Hardware) -> Controller:
    if name == "cpuset":
        return Cpuset1(shape)
    if name == "blkio":
        return Blkio1(shape)
    known: dict[str, Callable[[], Controller]] = {
        "cpu": Cpu1,
        "cpuacct": Cpuacct,
        "memory": Memory1,
        "pids": Pids,
    }
    return known[name]() if name in known else Bare(name)


def _mount(tree: Tree, mounts: Mapping[str, Hierarchy]) -> None:
    if ROOT in mounts:
        tree.put(ROOT, mounts[ROOT].root)
        return
    entries: dict[str, Directory | Link] = {}
    for target, hierarchy in mounts.items():
        name = target.removeprefix(f"{ROOT}/")
        entries[name] = hierarchy.root
        if "," in name:
            entries |= {part: Link(name) for part in name.split(",")}
    tree.put(ROOT, ReadOnly(entries))


def _mount_table(mounts: Mapping[str, Hierarchy]) -> list[tuple[str, str, str]]:
    table = [] if ROOT in mounts else [(ROOT, "tmpfs", "ro,mode=755")]
    for target, hierarchy in mounts.items():
        if isinstance(hierarchy, Hierarchy1):
            table.append((target, "cgroup", f"rw,{hierarchy.name}"))
        else:
            table.append((target, "cgroup2", "rw"))
    return table
