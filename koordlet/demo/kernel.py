"""A kernel for the recorded demo: cgroup v2 in memory, over the files of a recorded machine.

Covers: groups that come and go, sets and what is in effect of them, limits, processes that move.
Does not cover: what the processes do and what is counted of them (``story``).

As much of cgroup-v2.rst as the demo's own groups need: the controllers are handed down everywhere,
and nobody but the agent writes. The kernel of the tests, which is proved against recorded answers
of real ones, is another one and far stricter.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from koordlet.host.fs import root
from koordlet.host.recording import player, tarindex
from koordlet.model import cpuset

TOP = "/sys/fs/cgroup"
_MOUNT = f"31 23 0:27 / {TOP} rw,nosuid,nodev,noexec shared:4 - cgroup2 cgroup2 rw\n"
_CONTROLLERS = "cpuset cpu io memory pids"
_NO_STALL = "avg10=0.00 avg60=0.00 avg300=0.00 total=0"
STALLS = f"some {_NO_STALL}\nfull {_NO_STALL}\n"
#: What every group is born with; the sets come from its parent.
_FILES = {
    "cgroup.controllers": f"{_CONTROLLERS}\n",
    "cgroup.subtree_control": f"{_CONTROLLERS}\n",
    "cgroup.events": "populated 0\nfrozen 0\n",
    "cgroup.procs": "",
    "cpuset.cpus": "\n",
    "cpuset.mems": "\n",
    "cpuset.cpus.partition": "member\n",
    "cpu.max": "max 100000\n",
    "cpu.max.burst": "0\n",
    "cpu.weight": "100\n",
    "cpu.idle": "0\n",
    "cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0\n",
    "cpu.pressure": STALLS,
    "io.pressure": STALLS,
    "io.stat": "",
    "memory.pressure": STALLS,
    "memory.current": "0\n",
    "memory.stat": "anon 0\nfile 0\ninactive_anon 0\nactive_anon 0\ninactive_file 0\n"
    "active_file 0\nunevictable 0\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n",
    "memory.min": "0\n",
    "memory.low": "0\n",
    "memory.high": "max\n",
    "memory.max": "max\n",
    "memory.oom.group": "0\n",
    "pids.current": "0\n",
    "pids.max": "max\n",
}
#: The root group has no limits of its own.
_ROOT = (
    *("cgroup.controllers", "cgroup.subtree_control", "cgroup.procs"),
    *(f"{name}.{kind}" for name in ("cpu", "io", "memory") for kind in ("stat", "pressure")),
)
#: Blocks, free ones, inodes and number of the file systems by mount point.
_BLOCK = 4096
_DISKS = {"/": (5 << 20, 3 << 20, 1 << 20, 1), "/var/lib": (25 << 20, 17 << 20, 6 << 20, 2)}


class DemoMachine(player.PlayedHost):
    """A recorded machine whose cgroups can be written."""

    def __init__(
        self, top: tarindex.ArchiveEntry, online: cpuset.CPUSet, memory_nodes: str
    ) -> None:
        super().__init__(top)
        self.change("/proc/self/mountinfo", data=_MOUNT.encode())
        for name in _ROOT:
            self.change(f"{TOP}/{name}", data=_FILES[name].encode())
        self.change(f"{TOP}/cpuset.cpus.effective", data=f"{online}\n".encode())
        self.change(f"{TOP}/cpuset.mems.effective", data=f"{memory_nodes}\n".encode())

    def statvfs(self, path: root.HostPath) -> os.statvfs_result:
        blocks, free, inodes, number = _DISKS.get(path, (0, 0, 0, 0))
        if not blocks:
            raise root.fail(errno.ENOENT, path)
        room = (_BLOCK, _BLOCK, blocks, free, free)
        return os.statvfs_result((*room, inodes, inodes - inodes // 8, inodes, 0, 255, number))

    def run(self, pid: int) -> None:
        """A process begins, in the root group."""
        self.change(f"/proc/{pid}/cgroup", data=b"0::/\n")
        self._put(TOP, sorted({*self.pids(TOP), pid}))

    def pids(self, group: str) -> tuple[int, ...]:
        """The processes of a group; none where it is not there."""
        try:
            return tuple(map(int, self.text(self.at(f"{group}/cgroup.procs")).split()))
        except OSError:
            return ()

    def cpus(self, group: str) -> cpuset.CPUSet:
        """The CPUs that its processes may run on."""
        return cpuset.CPUSet.parse(self.text(self.at(f"{group}/cpuset.cpus.effective")))

    # The calls that change something -------------------------------------------------------------

    def mkdir(self, path: root.HostPath) -> None:
        above, _, _ = path.rpartition("/")
        if self.exists(path):
            raise root.fail(errno.EEXIST, path)
        for name, text in _FILES.items():
            self.change(f"{path}/{name}", data=text.encode())
        for name in ("cpus", "mems"):
            inherited = self.read(self.at(f"{above}/cpuset.{name}.effective"))
            self.change(f"{path}/cpuset.{name}.effective", data=inherited)

    def rmdir(self, path: root.HostPath) -> None:
        if self.pids(path) or next(self._below(path), None) is not None:
            raise root.fail(errno.EBUSY, path)
        for name in self.list(path):
            self.remove(f"{path}/{name}")

    def write(self, path: root.HostPath, data: bytes) -> None:
        folder, _, name = path.rpartition("/")
        text = data.decode().strip()
        before = self.text(path)
        match name:
            case "cgroup.procs":
                self._move(folder, text, path)
            case "cgroup.subtree_control":
                self.change(path, data=f"{_handed(before, text)}\n".encode())
            case "cpuset.cpus":
                self.change(path, data=f"{_set(text, path)}\n".encode())
                self._spread(folder)
            case "cpu.max":
                words = text.split() + before.split()[1:]
                self.change(path, data=f"{words[0]} {words[1]}\n".encode())
            case _:
                self.change(path, data=f"{text}\n".encode())

    def _move(self, group: str, text: str, path: str) -> None:
        pid = int(text)
        home = self.at(f"/proc/{pid}/cgroup")
        if not self.exists(home):
            raise root.fail(errno.ESRCH, path)
        left = TOP + self.text(home).strip().removeprefix("0::").rstrip("/")
        self._put(left, [member for member in self.pids(left) if member != pid])
        self._put(group, sorted({*self.pids(group), pid}))
        self.change(home, data=f"0::{group.removeprefix(TOP) or '/'}\n".encode())

    def _put(self, group: str, pids: list[int]) -> None:
        self.change(f"{group}/cgroup.procs", data="".join(f"{pid}\n" for pid in pids).encode())
        if group != TOP:
            state = f"populated {int(bool(pids))}\nfrozen 0\n"
            self.change(f"{group}/cgroup.events", data=state.encode())

    def _spread(self, group: str) -> None:
        """Effective cpuset of a group and below: its own set within its parent's set."""
        above = self.cpus(group.rpartition("/")[0])
        wanted = cpuset.CPUSet.parse(self.text(self.at(f"{group}/cpuset.cpus")).strip())
        effective = wanted & above or above
        self.change(f"{group}/cpuset.cpus.effective", data=f"{effective}\n".encode())
        for child in self._below(group):
            self._spread(child)

    def _below(self, group: str) -> Iterator[str]:
        here = self.at(group)
        for name in self.list(here):
            if self.stat(self.below(here, name)).kind is root.FileKind.DIRECTORY:
                yield f"{group}/{name}"


def _handed(before: str, words: str) -> str:
    names = dict.fromkeys(before.split())
    for word in words.split():
        if word.startswith("-"):
            names.pop(word[1:], None)
        else:
            names[word.removeprefix("+")] = None
    return " ".join(names)


def _set(text: str, path: str) -> cpuset.CPUSet:
    try:
        return cpuset.CPUSet.parse(text)
    except ValueError:
        raise root.fail(errno.EINVAL, path) from None
