"""The syscall port on a machine in memory.

Covers: every call of ``HostRoot``, processes, CPU hotplug, injected refusals, a log of writes.
Does not cover: what the files mean (the controllers), how a machine is put together (``machine``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import itertools
import os
from collections.abc import Callable, Iterator, Sequence

from koordlet.host.fs.root import FileKind, HostPath, HostRoot, Stat, fail
from koordlet.model.cpuset import CPUSet
from tests.kit.kernel import affinity
from tests.kit.kernel.cpuset1 import Cpuset1
from tests.kit.kernel.cpuset2 import Cpuset2
from tests.kit.kernel.group import Controller, Group, Hierarchy, Process, Processes
from tests.kit.kernel.hardware import Hardware
from tests.kit.kernel.resctrl import Resctrl
from tests.kit.kernel.scheduling import Scheduling
from tests.kit.kernel.tree import Directory, File, Link, Node, Tree, refused

#: What statvfs answers everywhere: 64 GiB in 4 KiB blocks, three quarters free.
_SPACE = os.statvfs_result(
    (4096, 4096, 1 << 24, 3 << 22, 3 << 22, 1 << 20, 1 << 19, 1 << 19, 0, 255)
)
_NO_ACCESS_BITS = 0o222


@dataclasses.dataclass(frozen=True)
class Call:
    """One call that changes the machine, as it was made and answered."""

    kind: str
    path: str
    data: bytes = b""
    #: 0 when it was taken.
    errno: int = 0

    @property
    def text(self) -> str:
        """The data of a write."""
        return self.data.decode()


@dataclasses.dataclass
class _Refusal:
    number: int
    times: int
    kinds: frozenset[str]


class KernelHost(HostRoot):
    """A machine that lives in memory and answers as a kernel does."""

    live = True

    def __init__(self, machine: Hardware, tree: Tree, hierarchies: Sequence[Hierarchy]) -> None:
        self.machine = machine
        self.tree = tree
        self.hierarchies = list(hierarchies)
        self.processes = Processes(hierarchies, lambda: machine.online)
        for hierarchy in hierarchies:
            hierarchy.processes = self.processes
        #: Every write, mkdir and rmdir in their order, refused ones too.
        self.calls: list[Call] = []
        #: Where each hierarchy is mounted.
        self.mounts: dict[str, Hierarchy] = {}
        #: (target, type, options) of every kernel file system, as mountinfo shows them.
        self.mount_table: list[tuple[str, str, str]] = []
        #: Resource control, where this machine has any.
        self.resctrl: Resctrl | None = None
        #: Who may share a core, and who is in which scheduling class.
        self.scheduling = self.cookies = Scheduling(self.processes, machine)
        #: Called after the set of online CPUs changed, to bring sysfs up to date.
        self.on_hotplug: Callable[[], None] = lambda: None
        self._handles: dict[int, File] = {}
        self._next_handle = 3
        self._refusals: dict[str, _Refusal] = {}

    # What tests do to the machine -----------------------------------------------------------------

    @property
    def writes(self) -> list[Call]:
        """Every write in order, refused ones too."""
        return [call for call in self.calls if call.kind == "write"]

    def spawn(self, *groups: str, name: str = "sleep", memory: int = 0) -> int:
        """Starts a process and moves it into the groups (paths); raises as the kernel refuses."""
        process = self.processes.spawn(name, memory)
        try:
            for path in groups:
                with _named(path):
                    group = self.group(path)
                    group.hierarchy.attach(group, process)
        except OSError:
            self.processes.end(process)
            raise
        return process.pid

    def exit(self, pid: int) -> None:
        """A process ends."""
        self.processes.end(self.processes.table[pid])

    def hold(self, pid: int, size: int) -> None:
        """A process holds so many bytes of memory from now on."""
        self.processes.table[pid].memory = size

    def move(self, pid: int, group: str) -> None:
        """Somebody else moves a process."""
        with _named(group):
            target = self.group(group)
            target.hierarchy.attach(target, self.processes.table[pid])

    def plug(self) -> str:
        """A loop device more: its number."""
        number = next(f"7:{n}" for n in itertools.count() if f"7:{n}" not in self.machine.disks)
        self.machine.disks.add(number)
        return number

    def unplug(self, number: str) -> None:
        """One less."""
        self.machine.disks.discard(number)

    def scheduler(self) -> Scheduling:
        """The calls of this machine's kernel."""
        return self.scheduling

    def alive(self, pid: int) -> bool:
        """Whether a process still runs."""
        return pid in self.processes.table

    def affinity(self, pid: int) -> CPUSet:
        """sched_getaffinity(2); offline CPUs are left out, as the kernel does."""
        return self.processes.table[pid].allowed & self.machine.online

    def pin(self, pid: int, cpus: CPUSet) -> None:
        """sched_setaffinity(2)."""
        process = self.processes.table[pid]
        affinity.ask(process, cpus, self._cpuset_of(process))

    def set_online(self, cpu: int, online: bool) -> None:
        """CPU hotplug with all that follows from it."""
        cpus = CPUSet.of([cpu])
        if not cpus <= self.machine.present:
            msg = f"CPU {cpu} is not present"
            raise ValueError(msg)
        self.machine.online = self.machine.online | cpus if online else self.machine.online - cpus
        for hierarchy in self.hierarchies:
            cpuset: Controller | None = hierarchy.controllers.get("cpuset")
            if isinstance(cpuset, Cpuset1 | Cpuset2):
                cpuset.hotplug()
        if self.resctrl is not None:
            self.resctrl.hotplug()
        self.on_hotplug()

    def refuse(
        self,
        path: str,
        number: int,
        times: int = 1,
        kinds: Sequence[str] = ("write", "mkdir", "rmdir"),
    ) -> None:
        """The next calls on this path fail with an error; ``kinds`` may also name ``read``."""
        self._refusals[path] = _Refusal(number, times, frozenset(kinds))

    def group(self, path: str) -> Group:
        """The group at a path."""
        node = self.tree.find(path)
        if not isinstance(node, Group):
            raise refused(errno.ENOENT)
        return node

    def pids(self, path: str) -> list[int]:
        """The processes of a group."""
        return sorted(process.pid for process in self.group(path).members)

    def _cpuset_of(self, process: Process) -> CPUSet:
        for hierarchy in self.hierarchies:
            cpuset: Controller | None = hierarchy.controllers.get("cpuset")
            if isinstance(cpuset, Cpuset1):
                return cpuset.of[process.groups[hierarchy]].cpus
            if isinstance(cpuset, Cpuset2):
                return cpuset.of[cpuset.holder(process.groups[hierarchy])].effective
        return self.machine.online

    # The port -------------------------------------------------------------------------------------

    def read(self, path: HostPath) -> bytes:
        with _named(path):
            self._maybe_refuse("read", path)
            return self._file(path).read()

    def write(self, path: HostPath, data: bytes) -> None:
        with self._logged("write", path, data):
            self._file(path).write(data)

    def open(self, path: HostPath) -> int:
        with _named(path):
            self._maybe_refuse("open", path)
            file = self._file(path)
        self._next_handle += 1
        self._handles[self._next_handle] = file
        return self._next_handle

    def pread(self, handle: int, size: int) -> bytes:
        if handle not in self._handles:
            raise refused(errno.EBADF)
        return self._handles[handle].read()[:size]

    def close(self, handle: int) -> None:
        if self._handles.pop(handle, None) is None:
            raise refused(errno.EBADF)

    @property
    def open_handles(self) -> int:
        """How many handles were not given back."""
        return len(self._handles)

    def list(self, path: HostPath) -> list[str]:
        with _named(path):
            return sorted(self._directory(path).entries)

    def stat(self, path: HostPath, *, follow: bool = True) -> Stat:
        with _named(path):
            node = self.tree.find(path, follow=follow)
        size = len(node.target) if isinstance(node, Link) else 0
        return Stat(node.kind, node.inode, node.links, node.mode, size, 0.0)

    def readlink(self, path: HostPath) -> str:
        with _named(path):
            node = self.tree.find(path, follow=False)
            if not isinstance(node, Link):
                raise refused(errno.EINVAL)
            return node.target

    def mkdir(self, path: HostPath) -> None:
        with self._logged("mkdir", path):
            parent, name = self._split(path)
            parent.mkdir(name)

    def rmdir(self, path: HostPath) -> None:
        with self._logged("rmdir", path):
            if any(row[0] == path for row in self.mount_table):
                raise refused(errno.EBUSY)
            parent, name = self._split(path)
            parent.rmdir(name)

    def statvfs(self, path: HostPath) -> os.statvfs_result:
        with _named(path):
            self.tree.find(path)
        return _SPACE

    def access(self, path: HostPath, mode: int) -> bool:
        """Root may do everything that the mount allows."""
        try:
            node = self.tree.find(path)
        except OSError:
            return False
        if mode & os.W_OK and isinstance(node, Directory):
            return node.closed != errno.EROFS
        return not mode & os.X_OK or node.kind is FileKind.DIRECTORY or bool(node.mode & 0o111)

    def mount(self, source: str, target: HostPath, fstype: str, options: str) -> None:
        """resctrl, where there is some; any other file system is ENODEV."""
        del source
        with self._logged("mount", target, options.encode()):
            if fstype != "resctrl" or self.resctrl is None:
                raise refused(errno.ENODEV)
            self._directory(target)
            self.tree.put(target, self.resctrl.mount(options))
        words = ",".join(["rw", *filter(None, [options])])
        self.mount_table.append((target, "resctrl", words))

    def unmount(self, target: HostPath) -> None:
        with self._logged("umount", target):
            kept = [row for row in self.mount_table if row[:2] != (target, "resctrl")]
            if self.resctrl is None or len(kept) == len(self.mount_table):
                raise refused(errno.EINVAL)
            self.resctrl.unmount()
            self.tree.put(target, Directory())
        self.mount_table[:] = kept

    # Inside ---------------------------------------------------------------------------------------

    def _split(self, path: str) -> tuple[Directory, str]:
        parent, _, name = path.rstrip("/").rpartition("/")
        return self._directory(parent or "/"), name

    def _directory(self, path: str) -> Directory:
        node: Node = self.tree.find(path)
        if not isinstance(node, Directory):
            raise refused(errno.ENOTDIR)
        return node

    def _file(self, path: str) -> File:
        node = self.tree.find(path)
        if isinstance(node, Directory):
            raise refused(errno.EISDIR)
        if not isinstance(node, File):
            raise refused(errno.ENXIO)
        return node

    def _maybe_refuse(self, kind: str, path: str) -> None:
        refusal = self._refusals.get(path)
        if refusal is not None and kind in refusal.kinds and refusal.times:
            refusal.times -= 1
            raise refused(refusal.number)

    @contextlib.contextmanager
    def _logged(self, kind: str, path: str, data: bytes = b"") -> Iterator[None]:
        number = 0
        try:
            with _named(path):
                self._maybe_refuse(kind, path)
                yield
        except OSError as error:
            number = error.errno or errno.EIO
            raise
        finally:
            self.calls.append(Call(kind, path, data, number))


@contextlib.contextmanager
def _named(path: str) -> Iterator[None]:
    """Errors get the name of what was asked for, as the port promises."""
    try:
        yield
    except OSError as error:
        raise fail(error.errno or errno.EIO, path) from None
