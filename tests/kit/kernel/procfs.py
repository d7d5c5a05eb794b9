"""What ``/proc`` says on a stand-in machine.

Covers: mounts, the groups and CPUs of each process, identity and age of the boot, memory, counters.
Does not cover: further threads, maps, networking. Formats as proc(5), kernel 6.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.kit.kernel.group import Hierarchy, Process, Processes
from tests.kit.kernel.hardware import Hardware
from tests.kit.kernel.tree import Directory, File, Link, Node, Text, Tree

_FILE_SYSTEMS = ("sysfs", "proc", "cgroup", "cgroup2")
BOOT_ID = "5f0c7a3e-9d43-4a1c-8f55-2b8f6d0e7a11"


class Proc(Directory):
    """``/proc`` itself: one directory per process beside the fixed entries."""

    def __init__(self, entries: Mapping[str, Node], processes: Processes) -> None:
        super().__init__(entries)
        self._processes = processes
        self._known: dict[int, Directory] = {}

    @property
    def entries(self) -> Mapping[str, Node]:
        table = self._processes.table
        self._known = {
            pid: self._known.get(pid) or _process(process) for pid, process in table.items()
        }
        return {
            **self._entries,
            **{str(pid): node for pid, node in self._known.items()},
        }


def build(
    tree: Tree,
    machine: Hardware,
    processes: Processes,
    mounts: Sequence[tuple[str, str, str]],
) -> None:
    """``mounts`` are (target, type, options) of the kernel file systems."""
    proc = Proc({"self": Link(str(processes.agent.pid))}, processes)
    tree.put("/proc", proc)
    agent = proc.entries[str(processes.agent.pid)]
    assert isinstance(agent, Directory)
    agent.put("mountinfo", File(lambda: _mountinfo(mounts)))
    agent.put("mounts", Text("".join(f"{t} {t} {k} {o} 0 0\n" for t, k, o in mounts)))
    tree.put("/proc/mounts", Link("self/mounts"))
    release = "{}.{}.0".format(*machine.kernel)
    fixed = {
        "sys/kernel/random/boot_id": BOOT_ID,
        "sys/kernel/osrelease": release,
        "sys/kernel/ostype": "Linux",
        "sys/kernel/hostname": "stand-in",
        "sys/kernel/arch": "x86_64",
        "sys/kernel/sched_rt_runtime_us": "950000",
        "sys/kernel/sched_rt_period_us": "1000000",
        "locks": "",
        "version": f"Linux version {release} (stand-in)",
        "uptime": "86400.00 0.00",
        "loadavg": "0.00 0.00 0.00 1/100 1",
        "cmdline": "root=/dev/vda ro",
        "filesystems": "\n".join(f"nodev\t{name}" for name in _FILE_SYSTEMS + machine.file_systems),
    }
    for name, text in fixed.items():
        tree.text(f"/proc/{name}", f"{text}\n" if text else "")
    tree.text("/proc/cpuinfo", "".join(_cpuinfo(machine, cpu) for cpu in machine.online))
    tree.text("/etc/machine-id", "0b5c2a6f4d8e4b7a9c1d3e5f7a9b1c2d\n")
    tree.computed("/proc/stat", lambda: _stat(machine, processes))
    tree.text("/proc/meminfo", _meminfo(machine))
    for name in ("cpu", "io", "memory"):
        line = "avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        tree.text(f"/proc/pressure/{name}", f"some {line}full {line}")
    tree.computed("/proc/cgroups", lambda: _cgroups(processes.agent.groups))


def _process(process: Process) -> Directory:
    return Directory(
        {
            "cgroup": File(lambda: _groups(process)),
            "status": File(lambda: _status(process)),
            "comm": Text(f"{process.name}\n"),
            "cmdline": Text(f"{process.name}\0"),
            "schedstat": Text("0 0 0\n"),
            "task": Directory({str(process.pid): Directory({})}),
        }
    )


def _groups(process: Process) -> str:
    """Highest hierarchy number first; the unified one is 0 and last."""
    rows = sorted(process.groups.items(), key=lambda item: -_number(item[0]))
    return "".join(f"{hierarchy.label}:{group.path}\n" for hierarchy, group in rows)


def _number(hierarchy: Hierarchy) -> int:
    return int(hierarchy.label.split(":", 1)[0])


def _status(process: Process) -> str:
    return (
        f"Name:\t{process.name}\nState:\tS (sleeping)\nTgid:\t{process.pid}\nPid:\t{process.pid}\n"
        f"PPid:\t1\nVmRSS:\t{process.memory // 1024:>8} kB\nThreads:\t1\n"
        f"Cpus_allowed:\t{process.allowed.mask()}\nCpus_allowed_list:\t{process.allowed}\n"
    )


def _mountinfo(mounts: Sequence[tuple[str, str, str]]) -> str:
    rows = ["1 0 254:0 / / rw,relatime - ext4 /dev/vda rw"]
    rows += ["22 1 0:21 / /proc rw,relatime - proc proc rw"]
    rows += ["23 1 0:22 / /sys rw,relatime - sysfs sysfs rw"]
    for number, (target, kind, options) in enumerate(mounts, start=31):
        parent = 23 if target == "/sys/fs/cgroup" else 31
        rows.append(
            f"{number} {parent} 0:{number} / {target} rw,relatime - {kind} {kind} {options}"
        )
    return "\n".join(rows) + "\n"


def _stat(machine: Hardware, processes: Processes) -> str:
    row = "0 0 0 0 0 0 0 0 0 0"
    rows = [f"cpu  {row}", *(f"cpu{cpu} {row}" for cpu in machine.online)]
    running = len(processes.table)
    rows += ["intr 0", "ctxt 0", "btime 1700000000", f"processes {running}"]
    return "\n".join([*rows, "procs_running 1", "procs_blocked 0"]) + "\n"


def _meminfo(machine: Hardware) -> str:
    total = machine.node_bytes // 1024 * len(machine.memory_nodes)
    rows = {"MemTotal": total, "MemFree": total // 2, "MemAvailable": total * 3 // 4}
    rows |= {"Buffers": 0, "Cached": total // 4, "SwapTotal": 0, "SwapFree": 0}
    return "".join(f"{name + ':':<16}{value:>8} kB\n" for name, value in rows.items())


def _cpuinfo(machine: Hardware, cpu: int) -> str:
    rows = {
        "processor": cpu,
        "vendor_id": machine.vendor,
        "cpu family": 6,
        "model": 106,
        "model name": "Stand-in CPU @ 2.00GHz",
        "stepping": 6,
        "physical id": machine.node_of(cpu),
        "core id": machine.core(cpu),
        "flags": machine.flags,
    }
    return "".join(f"{name}\t: {value}\n" for name, value in rows.items()) + "\n"


def _cgroups(groups: Mapping[Hierarchy, object]) -> str:
    rows = ["#subsys_name\thierarchy\tnum_cgroups\tenabled"]
    for hierarchy in groups:
        count = sum(1 for _ in hierarchy.root.walk())
        rows += [f"{name}\t{_number(hierarchy)}\t{count}\t1" for name in hierarchy.controllers]
    return "\n".join(rows) + "\n"
